"""What save_html writes, opened from the disk in Chromium: it lives, and asks for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from contents import FAINT_TEXT
from playwright.sync_api import Browser, BrowserContext, Page, expect

from convgrad import example, widgets
from convgrad.widgets import ContributionPlayer, Predict, save_html
from convgrad.widgets.base import Explorable

pytestmark = pytest.mark.browser

NASTY = '</script><img src=x onerror="window.broken = 1"> & <b>'


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Saves a widget and opens the file; at the end nothing has been asked for or complained of."""
    contexts: list[BrowserContext] = []
    asked: list[str] = []
    said: list[str] = []

    def open_saved(
        widget: Explorable, *, width=1280, dark=False, javascript=True, title=None
    ) -> Page:
        path = save_html(widget, tmp_path / f"saved {len(contexts)}.html", title=title)
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda m: said.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield open_saved
    for context in contexts:
        context.close()
    elsewhere = [url for url in asked if not url.startswith(("file:", "blob:", "data:"))]
    files = [url for url in asked if url.startswith("file:")]
    assert not elsewhere
    assert len(files) == len(contexts), f"more than the file itself: {files}"
    assert not said


def test_it_mounts_and_plays(show) -> None:
    page = show(ContributionPlayer(example("B"), target="weight", step=18), title="Nine fall")
    player = page.get_by_role("region", name="Contribution player")
    expect(player.locator("output")).to_have_text("18 / 81")
    player.get_by_label("speed, products a second").select_option("60")
    player.get_by_role("button", name="play").click()
    expect(player.locator("output")).to_have_text("81 / 81", timeout=10_000)
    expected = ContributionPlayer(example("B")).gradients.grad_weight[0, 0]
    cells = player.get_by_role("grid", name="grad_weight").locator(".cg-cell").all_inner_texts()
    assert [float(text.replace("−", "-")) for text in cells] == expected.ravel().tolist()
    assert page.title() == "Nine fall"


def test_knobs_and_undo_are_in_it(show) -> None:
    page = show(ContributionPlayer(example("B")))
    player = page.get_by_role("region", name="Contribution player")
    player.get_by_text("change the convolution").click()
    player.get_by_label("padding", exact=True).fill("1")
    player.get_by_label("padding", exact=True).press("Tab")
    expect(player.locator("output")).to_have_text("0 / 225")
    player.get_by_role("button", name="undo").click()
    expect(player.locator("output")).to_have_text("0 / 81")


# Every widget there is, showing something small.
KINDS = {
    "BreakTheGradient": lambda: widgets.BreakTheGradient(example("B")),
    "ContributionPlayer": lambda: ContributionPlayer(example("B")),
    "GeometryExplorer": lambda: widgets.GeometryExplorer(example("C")),
    "GradientViews": lambda: widgets.GradientViews(example("D")),
    "GroupBlocks": lambda: widgets.GroupBlocks(example("D")),
    "Predict": lambda: Predict("What is $2 + 3$?", 5),
    "Roofline": lambda: widgets.Roofline(example("F")),
    "ShardSum": lambda: widgets.ShardSum(example("D")),
    "SlidingWindow": lambda: widgets.SlidingWindow(example("B")),
    "ThreadGrid": lambda: widgets.ThreadGrid(example("B")),
    "UnfoldMatrix": lambda: widgets.UnfoldMatrix(example("B")),
}


def test_no_widget_is_forgotten() -> None:
    names = [n for n in widgets.__all__ if isinstance(getattr(widgets, n), type)]
    assert sorted(KINDS) == sorted(names)


@pytest.mark.parametrize("kind", KINDS)
def test_every_widget_lives_in_its_file_and_asks_for_nothing(show, kind) -> None:
    """It mounts; where it has tools, a knob is turned and taken back. `show` counts requests."""
    page = show(KINDS[kind]())
    root = page.locator(".cg-live .cg").first
    expect(root).to_be_visible()
    expect(page.locator(".cg-widget > .cg-fallback")).to_be_hidden()
    if kind == "Predict":
        root.get_by_role("textbox").fill("5")
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_role("status")).to_contain_text("Right")
        return
    expect(root.get_by_role("button", name="copy as PyTorch code")).to_be_visible()
    knobs = root.locator("details.cg-knobs")
    if knobs.count():
        knobs.locator("summary").click()
    name = "image H = W" if kind == "Roofline" else "height H"
    height = root.get_by_label(name, exact=True).filter(visible=True)
    before = int(height.input_value())
    height.fill(str(before + 1))
    height.press("Tab")
    undo = root.get_by_role("button", name="undo", exact=True)
    expect(undo).to_have_attribute("aria-disabled", "false")
    undo.click()
    expect(height).to_have_value(str(before))


def test_hostile_texts_stay_texts(show) -> None:
    page = show(
        Predict(f"Is `{NASTY}` text?", 4, hints=[f"`{NASTY}`"], explanation=NASTY), title=NASTY
    )
    assert page.title() == NASTY
    expect(page.locator(".cg-live").get_by_role("textbox")).to_be_visible()
    page.locator(".cg-live").get_by_role("textbox").fill("4")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status")).to_contain_text(NASTY)
    assert page.evaluate("window.broken") is None
    assert page.locator("img").count() == 0


def test_without_javascript_picture_and_numbers_stand_there(show) -> None:
    page = show(ContributionPlayer(example("B")), javascript=False)
    expect(page.get_by_role("img")).to_be_visible()
    expect(page.locator(".cg-formula")).to_contain_text("grad_weight[0,0,0,0]")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_it_can_be_read_in_both_modes_and_on_a_phone(show, axe, dark, width) -> None:
    page = show(ContributionPlayer(example("D"), step=40), dark=dark, width=width, title="D")
    expect(page.locator(".cg-tool").first).to_be_visible()
    room, needed = page.evaluate(
        "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
    )
    assert room == needed
    background = page.locator(".cg-page").evaluate("(el) => getComputedStyle(el).backgroundColor")
    assert (background == "rgb(255, 255, 255)") != dark
    assert not page.evaluate(FAINT_TEXT)["faint"]
    assert not axe(page.locator(":root"))
