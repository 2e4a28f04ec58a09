"""What every test may ask for: hypothesis profiles and the project's Node."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# pytest looks for doctests in every Python file; these two are its own.
collect_ignore = ["conftest.py", "browser/conftest.py"]

# Four ways to draw examples.  `ci` draws the same ones every time, so that a red run can be
# repeated; `fast` draws few; `dev` draws new ones each time and remembers what failed; `fuzz` draws
# thousands from the seed that tools/fuzz.py prints.
# No deadline: the first call of a rung pays for imports, and two cores may be busy.
_SLOW_MACHINES = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("dev", deadline=None, suppress_health_check=_SLOW_MACHINES)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("fast", settings.get_profile("ci"), max_examples=25)
settings.register_profile(
    "fuzz",
    settings.get_profile("dev"),
    max_examples=int(os.environ.get("FUZZ_DRAWS") or 3000),
    print_blob=True,
    database=None,
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)


@pytest.fixture(scope="session")
def node():
    """The project's Node: ``node.node`` (the program), ``node.npm`` (first words of a command)
    and ``node.environment()`` (an environment in which both are found first)."""
    from tools.node import take

    return take()
