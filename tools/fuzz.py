"""Arbitrary arguments by the thousand: `python -m tools.fuzz [--draws 3000] [--seed 1]`.

Runs tests/test_fuzz.py with many draws from one seed.  Who gives the seed that was printed gets
the same draws again, with the failure cut down to its smallest form.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--draws", type=_some, default=3000, help="per test (default 3000)")
    parser.add_argument("--seed", type=int, help="where the draws begin (default: a new one)")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    again = f"python -m tools.fuzz --draws {options.draws} --seed {seed}"
    print(f"fuzz: {options.draws} draws a test, seed {seed}; the same again: {again}", flush=True)
    environment = os.environ | {"HYPOTHESIS_PROFILE": "fuzz", "FUZZ_DRAWS": str(options.draws)}
    environment.setdefault("OMP_NUM_THREADS", "1")
    words = [sys.executable, "-m", "pytest", "-n2", "-q", f"--hypothesis-seed={seed}"]
    status = subprocess.run(
        [*words, "tests/test_fuzz.py"], cwd=ROOT, env=environment, check=False
    ).returncode
    if status:
        print(f"fuzz: something fell through; the same again: {again}", file=sys.stderr)
    return status


def _some(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("needed is at least 1")
    return number


if __name__ == "__main__":
    raise SystemExit(main())
