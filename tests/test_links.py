"""The addresses outside the project: their form here, and whether one is told when they break."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from tools import links

FOUND = links.find()


def test_every_address_has_a_valid_form_and_one_spelling():
    assert links.complaints(FOUND) == []


def test_the_list_has_the_references_and_the_documents():
    assert len(FOUND) > 80
    assert "https://doi.org/10.1038/323533a0" in FOUND
    files = {place.partition(":")[0] for places in FOUND.values() for place in places}
    assert {"README.md", "CHANGELOG.md", "book/references.bib"} <= files
    bib = (links.ROOT / "book" / "references.bib").read_text("utf-8")
    named = Counter(place.partition(":")[0] for places in FOUND.values() for place in places)
    assert named["book/references.bib"] == bib.count("url  ") + bib.count("doi  ")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("see <https://a.org/b>.", ["https://a.org/b"]),
        ("[a](https://a.org/b_(c)), and so on", ["https://a.org/b_(c)"]),
        ("(https://a.org/b.)", ["https://a.org/b"]),
        ("url = {https://a.org/x#y}", ["https://a.org/x#y"]),
        ("  doi     = {10.1162/neco.1989.1.4.541}", ["https://doi.org/10.1162/neco.1989.1.4.541"]),
        ("`https://a.org` http://b.org", ["https://a.org", "http://b.org"]),
        ("http://127.0.0.1:8000 and http://www.w3.org/2000/svg", []),
        ("nothing", []),
    ],
)
def test_addresses_are_cut_out_of_their_sentence(line, found):
    assert list(links.addresses(line)) == found


@pytest.mark.parametrize(
    ("addresses", "words"),
    [
        (["http://a.org"], "write https://"),
        (["https://a"], "host is not a name"),
        (["https://me@a.org/x"], "host is not a name"),
        (["https://A.org/x"], "small letters"),
        (["https://a.org/ä"], "percent signs"),
        (["https://a.org/x", "https://a.org/x/"], "two ways"),
        (["https://a.org/x", "https://www.a.org/x"], "two ways"),
        (["https://github.com/a/b/pull/7", "https://github.com/A/b/issues/7"], "two ways"),
        (
            ["https://arxiv.org/abs/1603.07285", "https://arxiv.org/pdf/1603.07285v2.pdf"],
            "two ways",
        ),
    ],
)
def test_a_bad_form_is_named_with_its_place(addresses, words):
    (said,) = links.complaints({address: ["x.md:3"] for address in addresses})
    assert words in said and "x.md:3" in said


def test_different_places_are_no_two_spellings():
    some = ["https://a.org/x", "https://a.org/y", "https://a.org/x?b=1", "https://b.org/x"]
    assert links.complaints({address: [] for address in some}) == []


# ---- over the network, to a server of our own ------------------------------------------------


class Server(BaseHTTPRequestHandler):
    asked: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        self.asked[self.path] += 1
        path = self.path.strip("/")
        if path == "slow":
            time.sleep(1)
        if path == "moved":
            self.send_response(302)
            self.send_header("Location", "/200")
        elif path == "late":  # right at the third time
            self.send_response(200 if self.asked[self.path] == 3 else 503)
        else:
            self.send_response(int(path) if path.isdigit() else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def base() -> Iterator[str]:
    Server.asked = Counter()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "said", "asked"),
    [
        ("/200", "", 1),
        ("/moved", "", 1),
        ("/403", "", 1),  # it is there, and does not like programs
        ("/429", "", 1),
        ("/404", "answers 404 Not Found", 1),
        ("/410", "answers 410 Gone", 1),
        ("/500", "answers 500 Internal Server Error (3 tries)", 3),
        ("/late", "", 3),
        ("/slow", "no answer within 0.2 s (3 tries)", 3),
    ],
)
def test_what_is_lost_is_told_and_what_may_pass_is_tried_again(base, path, said, asked):
    assert links.ask(base + path, timeout=0.2, pause=0.01) == said
    assert Server.asked[path] == asked


def test_a_server_that_is_not_there():
    said = links.ask("http://127.0.0.1:9", timeout=0.2, tries=2, pause=0.01)
    assert said.startswith("no answer: ") and said.endswith("(2 tries)")


def test_the_command_prints_what_is_broken_with_its_places(base, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(links, "NO_LINK", links.re.compile("no link"))
    monkeypatch.setattr(links, "complaints", lambda found: [])
    (tmp_path / "README.md").write_text(f"a <{base}/200> b\nand <{base}/404>.\n")
    assert links.main(["--tries=1"], tmp_path) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        f"{base}/404: answers 404 Not Found, named in README.md:2",
        "links: 2 addresses, 1 to mend",
    ]
    (tmp_path / "README.md").write_text(f"<{base}/200>\n")
    assert links.main([], tmp_path) == 0
    assert capsys.readouterr().out == "links: 1 addresses, 0 to mend\n"
    assert links.main(["--list"], tmp_path) == 0
    assert capsys.readouterr().out == f"{base}/200  README.md:1\n"
