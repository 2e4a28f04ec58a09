"""Whether a weakness is known in what the project is pinned to: `python -m tools.audit`.

pip-audit asks for every Python package, npm for the JavaScript ones; both need the network.  They
are tools of this one job, so pip-audit is not among the requirements: it gets a folder of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools import pins
from tools.setup import NODE_WHEEL

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "audit"
PIP_AUDIT = "pip-audit==2.10.1"


def listing(folder: Path) -> Path:
    """Every pinned Python package in one file, as pip-audit reads it."""
    texts = [(ROOT / name).read_text("utf-8") for name in ("requirements.txt", "constraints.txt")]
    versions = pins.pinned(*texts, f"{NODE_WHEEL}\n")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "pinned.txt"
    lines = sorted(f"{name}=={version}" for name, version in versions.items())
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def main() -> int:
    python = CACHE / "venv" / "bin" / "python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", CACHE / "venv"], cwd=ROOT, check=False)
    install = [str(python), "-m", "pip", "install", "--quiet", PIP_AUDIT]
    of_python = [str(python), "-m", "pip_audit", "--no-deps", "--disable-pip"]
    of_python += ["--progress-spinner=off", f"--requirement={listing(CACHE)}"]
    of_node = [sys.executable, "-m", "tools.node", "npm", "audit", "--package-lock-only"]
    ran = [
        subprocess.run(command, cwd=ROOT, check=False).returncode
        for command in (install, of_python, of_node)
    ]
    if any(ran):
        print(
            "audit: what is named above has a known weakness, or could not be asked about; "
            '`make pins RENEW="its-name"` takes the newest version that requirements.in allows'
        )
        return 1
    print("audit: no weakness is known in what is pinned")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
