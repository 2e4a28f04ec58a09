"""The policy of a page names every script in it, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the book's packages are in requirements.txt")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "book" / "_ext"))

from policy import guarded, hashes, policy

PAGE = """<!DOCTYPE html>
<html><head>
<meta charset="utf-8" />
<script>one()</script>
<script src="two.js"></script>
<script type="application/json">{"three": 3}</script>
</head><body><script type="module">four()
</script><script>one()</script></body></html>"""


def named(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def test_scripts_in_the_page_are_named_once_data_and_files_are_not():
    assert set(hashes(PAGE)) == {named("one()"), named("four()\n")} and len(hashes(PAGE)) == 2


def test_a_policy_comes_first_and_is_renewed():
    page = guarded(PAGE)
    assert page.index("Content-Security-Policy") < page.index("<script>")
    assert guarded(page) == page
    other = guarded(page.replace("four()", "five()"))
    assert other.count("Content-Security-Policy") == 1 and named("five()\n") in other
    assert named("four()\n") not in other


def test_nothing_from_elsewhere_is_allowed():
    for rule in policy(PAGE).split("; "):
        _, *sources = rule.split()
        assert set(sources) - {"data:", "'unsafe-inline'", *hashes(PAGE)} <= {"'self'", "'none'"}
    assert "script-src 'self' 'sha256" in policy(PAGE)
