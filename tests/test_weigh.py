"""What is measured of the pages: when it is too much, and what is said where nothing came."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("playwright", reason="the tests' packages are in requirements.txt")
from tools import lighthouse
from tools.weigh import READY, REQUESTS, WITH_PICTURES, WITHOUT, Weight


@pytest.mark.parametrize(
    ("weight", "over"),
    [
        (Weight("a.html", REQUESTS, WITHOUT, READY, False), []),
        (Weight("a.html", REQUESTS + 1, WITHOUT, READY, False), ["requests"]),
        (Weight("a.html", REQUESTS, WITHOUT + 1, READY + 1, False), ["bytes", "time"]),
        (Weight("a.html", 1, WITHOUT + 1, 1, True), []),
        (Weight("a.html", 1, WITH_PICTURES + 1, 1, True), ["bytes"]),
    ],
)
def test_a_page_is_told_what_is_too_much(weight, over):
    assert weight.over == over


REPORT = {
    "categories": {
        name: {"score": score, "auditRefs": [{"id": "slow", "weight": weight}]}
        for name, score, weight in [
            ("accessibility", 1, 0),
            ("best-practices", 1, 0),
            ("seo", 0.996, 0),
            ("performance", 0.871, 10),
        ]
    },
    "audits": {"slow": {"title": "First paint", "score": 0.5, "displayValue": "2.4 s"}},
}


def test_the_marks_are_read_and_what_cost_them(monkeypatch, capsys, tmp_path):
    asked = []
    monkeypatch.setattr(lighthouse, "run", lambda page, report: asked.append(page) or REPORT)
    assert lighthouse.main(["book/a.html", "--runs=2", "--keep", str(tmp_path / "new")]) == 0
    head, marks, lost = capsys.readouterr().out.splitlines()
    assert head.split()[1:] == list(lighthouse.WANTED)
    assert marks.split() == ["book/a.html", "100", "100", "100", "87"]
    assert lost.split() == ["First", "paint", "2.4", "s"]
    assert len(asked) == 2 and (tmp_path / "new").is_dir()


def test_without_a_report_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(lighthouse, "program", lambda: "no/such/script.js")
    monkeypatch.setattr(lighthouse.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(lighthouse, "find_chromium", lambda: "chromium")
    monkeypatch.setattr(lighthouse.nodes, "take", lambda: SimpleNamespace(node="node"))
    assert lighthouse.main(["book/a.html"]) == 2
    assert "Lighthouse wrote no report of http://127.0.0.1:" in capsys.readouterr().err
