"""nbgrader for the course: the same file for teacher and learners.

It lies at /etc/jupyter/nbgrader_config.py, where everybody's nbgrader looks.
"""

import getpass

c = get_config()  # noqa: F821 - nbgrader puts it here

COURSE = "conv2d"

# Everybody may write into the exchange folder; what a learner hands in there,
# only the learner and the teacher can read.
c.Exchange.root = "/srv/nbgrader/exchange"
c.Exchange.timezone = "UTC"
c.CourseDirectory.course_id = COURSE

# The teacher's folder has names of its own where convgrad writes.
if getpass.getuser() == "teacher":
    c.CourseDirectory.root = f"/home/teacher/{COURSE}"

# What a learner fetches lies in a folder of its own.
c.Exchange.path_includes_course = True
