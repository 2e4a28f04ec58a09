"""What Lighthouse says of a page: `python -m tools.lighthouse [PAGE …] [--keep FOLDER]`.

It plays a phone of the middle class on a slow network.  Lighthouse is large and serves here alone,
so it is no dependency of the project: the first call gets it into `.cache`.  Its times depend on
what else the machine does; of several runs the middle one counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from tools import node as nodes
from tools.chromium import find_chromium
from tools.serve import make_server

ROOT = Path(__file__).resolve().parent.parent
VERSION = "12.2.3"
HOME = ROOT / ".cache" / f"lighthouse-{VERSION}"
PAGE = "book/part2/weight_gradient.html"
WANTED = {"accessibility": 100, "best-practices": 100, "seo": 100, "performance": 95}


class LighthouseError(RuntimeError):
    """There is no Lighthouse, or it said nothing: what to do."""


def program() -> Path:
    """Lighthouse's own script, installed if it is not there yet."""
    script = HOME / "node_modules" / "lighthouse" / "cli" / "index.js"
    if not script.is_file():
        print(f"Getting Lighthouse {VERSION} into .cache.", flush=True)
        HOME.mkdir(parents=True, exist_ok=True)
        (HOME / "package.json").write_text('{"private": true}\n')
        install = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
        words = [sys.executable, "-m", "tools.node", *install, f"--prefix={HOME}"]
        if subprocess.run([*words, f"lighthouse@{VERSION}"], cwd=ROOT, check=False).returncode:
            raise LighthouseError("npm could not bring Lighthouse (its message stands above)")
    return script


def run(address: str, report: Path) -> dict[str, Any]:
    """One run; the report is kept as ``report.json`` and ``report.html``."""
    flags = "--headless --no-sandbox --disable-gpu"
    command: list[str | Path] = [nodes.take().node, program(), address, "--quiet"]
    command += ["--output=json", "--output=html", f"--output-path={report}"]
    subprocess.run(
        [*command, f"--chrome-flags={flags}"],
        env=os.environ | {"CHROME_PATH": str(find_chromium())},
        check=False,
    )
    written = report.with_name(f"{report.name}.report.json")
    if not written.is_file():
        raise LighthouseError(f"Lighthouse wrote no report of {address}: its message stands above")
    return json.loads(written.read_text("utf-8"))


def scores(report: dict[str, Any]) -> dict[str, int]:
    """Of 100 each."""
    return {name: round(100 * report["categories"][name]["score"]) for name in WANTED}


def lost(report: dict[str, Any], names: list[str]) -> list[str]:
    """What took points in these categories, with what it says in numbers."""
    audits = report["audits"]
    found = []
    for name in names:
        for each in report["categories"][name]["auditRefs"]:
            audit = audits[each["id"]]
            if each["weight"] and audit["score"] is not None and audit["score"] < 0.9:
                found.append(f"{audit['title']} {audit.get('displayValue', '')}".rstrip())
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lighthouse", description=__doc__)
    parser.add_argument("pages", nargs="*", default=[PAGE], metavar="PAGE", help=PAGE)
    parser.add_argument("--runs", type=int, default=3, help="how often (3)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the reports stay")
    options = parser.parse_args(arguments)
    server = make_server(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"{'page':<40} " + " ".join(f"{name:>14}" for name in WANTED))
    try:
        with server, tempfile.TemporaryDirectory() as folder:
            place = (options.keep or Path(folder)).resolve()
            place.mkdir(parents=True, exist_ok=True)
            for page in options.pages:
                address = f"http://127.0.0.1:{server.server_port}/{page}"
                name = page.removesuffix(".html").replace("/", "-")
                reports = [run(address, place / f"{name}-{k}") for k in range(options.runs)]
                each = [scores(report) for report in reports]
                middle = {key: round(statistics.median(one[key] for one in each)) for key in WANTED}
                print(f"{page:<40} " + " ".join(f"{middle[key]:>14}" for key in WANTED))
                under = [key for key, wanted in WANTED.items() if middle[key] < wanted]
                for line in lost(reports[-1], under):
                    print(f"  {line}")
            server.shutdown()
    except (LighthouseError, nodes.NodeMissing) as error:
        print(f"lighthouse: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
