"""Removes what was built (`make clean`) and, with --all, what was installed (`make distclean`)."""

import os
import shutil
import sys

BUILT = ["_build", ".cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "dist"]
INSTALLED = [".venv", "node_modules"]


def main() -> None:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in BUILT + (INSTALLED if "--all" in sys.argv[1:] else []):
        path = os.path.join(root, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
            print("removed " + name)
    for folder in ("src", "tests", "tools", "book", "benchmarks"):
        for path, folders, _ in os.walk(os.path.join(root, folder)):
            for name in [f for f in folders if f in ("__pycache__", ".ipynb_checkpoints")]:
                shutil.rmtree(os.path.join(path, name))
                folders.remove(name)


if __name__ == "__main__":
    main()
