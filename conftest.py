"""What pytest leaves out everywhere: the kernels' examples where there is no Triton to run them."""

from importlib.util import find_spec

if find_spec("triton") is None:
    collect_ignore_glob = ["src/convgrad/kernels/*.py"]
