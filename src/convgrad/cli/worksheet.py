"""``convgrad worksheet``: paper exercises to print, and the key to them."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..worksheet import LEVELS, TOPICS, Worksheet, worksheet
from ..worksheet.printing import NoBrowser, find_browser, pdf
from .words import RIGHT, Misuse, Voice, plural

__all__ = ["HELP", "add_to", "run"]

HELP = "make a page of paper exercises, and a separate answer key"

_DESCRIPTION = """\
Makes a page of exercises with small whole numbers, to print and to do with a pencil, and a separate
key: the answers, the sums spelled out, and what the usual mistakes lead to. The numbers come from
the seed: the same seed gives the same page, another seed another one.
"""
_EXAMPLES = """\
examples:
  convgrad worksheet                              four questions on the weight gradient
  convgrad worksheet --topic input-gradient --seed 7 --level 2
  convgrad worksheet --topic all --count 10 --out handouts
  convgrad worksheet --topic bias --format pdf    printed by the Chromium on this machine
  convgrad worksheet --list                       the topics

Two files come: worksheet-TOPIC-SEED.html and worksheet-TOPIC-SEED-key.html, for A4 or Letter.
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    levels = "; ".join(f"{level}: {what}" for level, what in LEVELS.items())
    parser = commands.add_parser(
        "worksheet",
        help=HELP,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--topic",
        default="weight-gradient",
        metavar="TOPIC",
        help=f"one of {', '.join(TOPICS)}; all mixes them (default weight-gradient)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the numbers (default 0)")
    parser.add_argument("--level", type=int, default=1, help=f"{levels} (default 1)")
    parser.add_argument("--count", type=int, default=4, help="questions (default 4)")
    parser.add_argument("--out", default=".", metavar="DIR", help="where the files go (default .)")
    parser.add_argument("--format", choices=("html", "pdf"), default="html", help="(default html)")
    parser.add_argument("--list", action="store_true", help="say which topics there are")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    voice = Voice(options.quiet)
    if options.list:
        _list()
        return RIGHT
    try:
        sheet = worksheet(options.topic, options.seed, options.level, options.count)
    except ValueError as complaint:
        raise Misuse(str(complaint)) from None
    folder = _folder(options.out)
    # the browser first: without one no file is written
    browser = _browser(sheet, options) if options.format == "pdf" else None
    files = {f"{sheet.name}.{options.format}": sheet.html}
    files[f"{sheet.name}-key.{options.format}"] = sheet.key
    for name, text in files.items():
        _write(folder / name, _printed(text, browser, sheet, options) if browser else text.encode())
    sheet_file, key_file = (folder / name for name in files)
    questions = plural(len(sheet.questions), "question")
    voice.say(f"{sheet_file}: {questions} on {plural(sheet.pages, 'page')}")
    voice.say(f"{key_file}: the key")
    return RIGHT


def _list() -> None:
    width = max(map(len, TOPICS))
    for key, topic in TOPICS.items():
        print(f"{key:<{width}}  {topic.title}")
    print(f"{'all':<{width}}  a mixture")


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as trouble:
        raise Misuse(f"--out {name}: no folder can be made there ({trouble.strerror})") from None
    return folder


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as trouble:
        raise Misuse(f"{path} cannot be written ({trouble.strerror}): use another --out") from None


def _browser(sheet: Worksheet, options: argparse.Namespace) -> str:
    try:
        return find_browser()
    except NoBrowser as complaint:
        raise Misuse(_instead(complaint, sheet, options)) from None


def _printed(text: str, browser: str, sheet: Worksheet, options: argparse.Namespace) -> bytes:
    try:
        return pdf(text, browser)
    except NoBrowser as complaint:
        raise Misuse(_instead(complaint, sheet, options)) from None


def _instead(complaint: NoBrowser, sheet: Worksheet, options: argparse.Namespace) -> str:
    where = "" if options.out == "." else f" --out {options.out}"
    return (
        f"--format pdf: {complaint}. Make the HTML instead, with `{sheet.command}{where}`, open it "
        "in any browser and print it there: A4 or Letter, 100 %, without headers and footers"
    )
