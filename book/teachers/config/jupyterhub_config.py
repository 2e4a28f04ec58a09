"""JupyterHub for a class: one machine, accounts of the system, the book beside.

Start it with `jupyterhub -f jupyterhub_config.py`, as root or as a service.
"""

from pathlib import Path

c = get_config()  # noqa: F821 - JupyterHub puts it here

BOOK = Path("/srv/convgrad")  # the clone, after `make setup` in it
TEACHERS = {"teacher"}

# Everybody who may log in to the machine may log in to the hub.
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.admin_users = TEACHERS
c.Authenticator.allow_existing_users = True
c.Authenticator.allow_all = True

# The kernels are those of the book's environment, and so is the program that
# each learner gets: convgrad, nbgrader and nbgitpuller are installed there.
c.Spawner.cmd = [str(BOOK / ".venv/bin/jupyterhub-singleuser")]
c.Spawner.default_url = "/lab"
c.Spawner.environment = {"OMP_NUM_THREADS": "1"}


# Servers that nobody has used for an hour make room for others.
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "scopes": [
            "list:users",
            "read:users:activity",
            "read:servers",
            "delete:servers",
        ],
        "services": ["idle-culler"],
    }
]
c.JupyterHub.services = [
    {
        "name": "idle-culler",
        "command": [
            str(BOOK / ".venv/bin/python"),
            "-m",
            "jupyterhub_idle_culler",
            "--timeout=3600",
        ],
    }
]
