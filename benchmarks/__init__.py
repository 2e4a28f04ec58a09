"""Measurements: each module prints a table and keeps it as JSON beside itself.

Everything here runs on one thread, so that a comparison does not depend on how many cores a
library thinks it may take.
"""

import os

# the matrix products behind NumPy read these once, when NumPy is imported
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
