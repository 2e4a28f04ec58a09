"""Every address outside the project, in one list: `python -m tools.links [--list]`.

The list is read from the sources: the pages of the book, its references, the documents at the top
of the tree, the docstrings.  Without `--list` each address is asked for over the network, and what
does not answer is printed with the places that name it.  Nothing but the standard library is
needed, so a job on a timer can run it on a bare machine.
"""

from __future__ import annotations

import argparse
import re
import socket
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "_config.yml"),
    *("pyproject.toml", "book/**/*.md", "book/**/*.bib", "book/_templates/**/*.html"),
    "src/**/*.py",
)
# Names that look like addresses and lead nowhere: this machine, namespaces, examples.
NO_LINK = re.compile(r"https?://(?:127\.0\.0\.1|localhost|www\.w3\.org|example\.(?:org|com))\b")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`{}|\\^]+")
_DOI = re.compile(r"\bdoi\s*[=:]\s*[{\"]?(10\.\d{4,}/[^\s{}\",]+)", re.I)

Links = dict[str, list[str]]  # address: the places that name it, as file:line

# A server that knows the address and does not want to be asked by a program has not lost it.
SHY = {401, 403, 405, 406, 429, 999}
LOST = {404, 410}


def find(root: Path = ROOT, sources: Iterable[str] = SOURCES) -> Links:
    """Every outside address of the sources, in alphabetical order, with its places."""
    found: dict[str, list[str]] = defaultdict(list)
    for pattern in sources:
        for file in sorted(root.glob(pattern)):
            for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
                for address in addresses(line):
                    found[address].append(f"{file.relative_to(root).as_posix()}:{number}")
    return {address: found[address] for address in sorted(found)}


def addresses(line: str) -> Iterator[str]:
    """The outside addresses of a line; a DOI is one too."""
    for match in _ADDRESS.finditer(line):
        if not NO_LINK.match(match[0]):
            yield _trimmed(match[0])
    for match in _DOI.finditer(line):
        yield f"https://doi.org/{_trimmed(match[1])}"


def _trimmed(address: str) -> str:
    """Without what the sentence around it adds: a full stop, a bracket that it did not open."""
    while True:
        short = address.rstrip(".,;:!?*_")
        for opens, closes in ("()", "[]"):
            if short.endswith(closes) and short.count(closes) > short.count(opens):
                short = short[:-1]
        if short == address:
            return address
        address = short


def complaints(links: Links) -> list[str]:
    """What is wrong with the form of these addresses, each in a sentence."""
    found, spellings = [], defaultdict(list)
    for address, places in links.items():
        where = f"{address} ({', '.join(places)})"
        parts = urlsplit(address)
        if parts.scheme != "https":
            found.append(f"{where}: write https://")
        if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc):
            found.append(
                f"{where}: its host is not a name in small letters such as docs.python.org"
            )
        if not address.isascii():
            found.append(f"{where}: write what is not ASCII with percent signs")
        spellings[_same(address)].append(where)
    found += [
        f"one place, spelled in two ways: {' and '.join(many)}"
        for many in spellings.values()
        if len(many) > 1
    ]
    return found


def _same(address: str) -> str:
    """What two spellings of one place have in common."""
    parts = urlsplit(address)
    host = parts.netloc.lower().removeprefix("www.")
    path = re.sub(r"/(?:index\.html)?$", "", parts.path)
    if host == "github.com":  # which forwards from one to the other
        path = re.sub(r"/(?:issues|pull)/(\d+)$", r"/#\1", path).lower()
    if host == "arxiv.org":
        path = re.sub(r"^/(?:pdf|abs)/([\d.]+?)(?:v\d+)?(?:\.pdf)?$", r"/\1", path)
    return f"{host}{path}?{parts.query}#{parts.fragment}"


def ask(address: str, *, timeout: float = 20, tries: int = 3, pause: float = 2) -> str:
    """ "" if somebody answers, else why not.  What may pass, such as a timeout, is tried again."""
    request = urllib.request.Request(
        address,
        headers={"User-Agent": "Mozilla/5.0 (compatible; a check of links)", "Accept": "*/*"},
    )
    said = ""
    for attempt in range(tries):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        try:
            with urllib.request.urlopen(request, timeout=timeout):
                return ""
        except urllib.error.HTTPError as error:
            if error.code in SHY:
                return ""
            said = f"answers {error.code} {error.reason}".rstrip()
            if error.code in LOST:
                return said
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            timed = isinstance(reason, TimeoutError | socket.timeout)
            said = f"no answer within {timeout:g} s" if timed else f"no answer: {reason}"
    return f"{said} ({tries} tries)"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.links", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the list and ask nobody")
    parser.add_argument("--timeout", type=float, default=20, help="seconds for an answer (20)")
    parser.add_argument("--tries", type=int, default=3, help="how often to ask (3)")
    options = parser.parse_args(arguments)
    links = find(root)
    if options.list:
        for address, places in links.items():
            print(f"{address}  {', '.join(places)}")
        return 0
    broken = complaints(links)

    def answer(address: str) -> str:
        return ask(address, timeout=options.timeout, tries=options.tries)

    with ThreadPoolExecutor(4) as pool:  # few: many of the addresses are of one host
        for (address, places), said in zip(links.items(), pool.map(answer, links), strict=True):
            if said:
                broken.append(f"{address}: {said}, named in {', '.join(places)}")
    print("\n".join([*broken, f"links: {len(links)} addresses, {len(broken)} to mend"]))
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
