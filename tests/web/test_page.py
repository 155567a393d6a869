"""The report page in a browser: what is really drawn, by every switch, in light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from browser import Browser, find_chromium
from reports import CORRECTED, COUNTS, make_node, make_report
from stepwell.web import Level, Report, render_report

BUILD = Path(__file__).parents[2] / "build"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    profile = tmp_path_factory.mktemp("profile")
    with Browser(find_chromium(), profile) as started:
        yield started
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if f"--user-data-dir={profile}" in line], "the browser has outlived its test"


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The usual report, opened from the disk on a screen of usual size; nothing may be said about it at the end."""
    browser.resize(1280, 900)
    browser.prefer("light")
    show(browser, tmp_path, make_report())
    yield browser
    assert browser.complaints() == []


def show(browser: Browser, where: Path, report: Report) -> None:
    load(browser, where, report)
    browser.settle()


def load(browser: Browser, where: Path, report: Report) -> None:
    file = where / "report.html"
    file.write_text(render_report(report), encoding="utf-8")
    browser.open(file.as_uri())
    assert browser.requests() == [file.as_uri()]


def seen(page: Browser) -> dict[str, Any]:
    """What the page says that it shows now."""
    names = ("level", "symbol", "candles", "corrected", "nodes")
    expression = ", ".join(f"{name}: stepwellReport.{name}()" for name in names)
    found: dict[str, Any] = page.evaluate(f"({{{expression}}})")
    return found


def choose_symbol(page: Browser, index: int) -> None:
    page.evaluate(
        f"{{ const list = document.getElementById('symbol'); list.selectedIndex = {index};"
        " list.dispatchEvent(new Event('change')); }"
    )
    page.settle()


def text(page: Browser, selector: str) -> str:
    return str(page.evaluate(f"document.querySelector({selector!r}).innerText"))


def test_every_switch_shows_the_bars_of_its_level_and_symbol(page: Browser) -> None:
    levels = ("minutes", "quarters", "hours")
    for index, level in enumerate(levels):
        page.evaluate(f"document.querySelectorAll('#levels button')[{index}].click()")
        for number, symbol in enumerate(("ACME", "GLOBEX")):
            choose_symbol(page, number)
            assert seen(page) == {
                "level": level,
                "symbol": symbol,
                "candles": COUNTS[level, symbol],
                "corrected": CORRECTED[level, symbol],
                "nodes": 8,
            }
            assert text(page, "#corrections-count") == f"corrected bars: {CORRECTED[level, symbol]}"


def test_keys_switch_levels_and_the_symbol_stays(page: Browser) -> None:
    choose_symbol(page, 1)
    page.press("3", 51, "3")
    assert (seen(page)["level"], seen(page)["symbol"]) == ("hours", "GLOBEX")
    page.press("ArrowLeft", 37)
    assert seen(page)["level"] == "quarters"
    page.press("ArrowRight", 39)
    page.press("ArrowRight", 39)  # there is nothing beyond the last
    assert seen(page)["level"] == "hours"
    page.press("9", 57, "9")
    assert seen(page)["level"] == "hours"
    page.press("1", 49, "1")
    assert seen(page) == {"level": "minutes", "symbol": "GLOBEX", "candles": 300, "corrected": 0, "nodes": 8}


def test_the_chart_has_ink_on_it(page: Browser) -> None:
    colours = page.evaluate(
        "[...document.querySelectorAll('#chart canvas')].reduce((most, canvas) => {"
        " const data = canvas.width && canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
        " const found = new Set(); for (let i = 0; i < data.length; i += 4) found.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);"
        " return Math.max(most, found.size); }, 0)"
    )
    assert colours > 5
    assert page.evaluate("document.querySelector('#tv-attr-logo').href").startswith("https://www.tradingview.com/")


def test_corrected_bars_can_be_gone_to(page: Browser) -> None:
    page.evaluate("document.getElementById('corrections').open = true")
    page.evaluate("document.querySelectorAll('#corrections-list button')[12].click()")
    page.settle()
    assert "corrected" in text(page, "#legend")


def test_a_node_tells_all_by_click_and_by_keyboard(page: Browser) -> None:
    assert page.evaluate("document.querySelectorAll('.node[tabindex=\"0\"]').length") == 16  # both drawings
    visible = "[...document.querySelectorAll('.node')].filter(each => each.getClientRects().length)"
    page.evaluate(f"{visible}[6].dispatchEvent(new MouseEvent('click'))")
    panel = text(page, "#node-details")
    assert panel.startswith("sectors")
    for fact in ("paused", "2024-05-01 08:00:00", "1 min", "1,234", "symbols", "aggregate: groups that changed"):
        assert fact in panel
    page.evaluate("document.querySelectorAll('#node-details details').forEach(each => { each.open = true })")
    panel = text(page, "#node-details")
    for fact in (
        "3 epochs behind",
        "7",
        "SELECT minute, count(*) AS n",
        "TIMESTAMP",
        "120",
        "sectors.n -> hours.price",
    ):
        assert fact in panel
    page.evaluate(f"{visible}[3].focus()")
    assert text(page, "#node-details").startswith("minutes")
    page.press("Tab", 9)
    assert text(page, "#node-details").startswith("quarters")
    page.press("Enter", 13, "\r")
    assert page.evaluate("document.querySelectorAll('.edge.near').length") == 6  # three edges, in both drawings


def test_colours_follow_the_system_until_the_button_is_used(page: Browser) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.prefer("dark")
    dark = page.evaluate(ground)
    assert light != dark
    page.evaluate("document.getElementById('theme').click()")
    assert page.evaluate(ground) == light
    page.prefer("light")
    page.evaluate("document.getElementById('theme').click()")
    page.settle()
    assert page.evaluate(ground) == dark
    assert seen(page)["candles"] == 480
    page.screenshot(BUILD / "report-dark.png")


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_the_page_is_never_wider_than_the_screen(page: Browser, width: int) -> None:
    page.resize(width, 740)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    page.evaluate("document.querySelectorAll('.node')[7].dispatchEvent(new MouseEvent('click'))")
    page.settle()
    wide, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert room == width
    assert wide <= room
    if width == 1280:
        scrolled = (
            "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth).length"
        )
        assert page.evaluate(scrolled) == 0, "nothing on a desk has to be scrolled sideways"
    assert seen(page)["nodes"] == 8


def test_a_picture_is_kept(page: Browser) -> None:
    page.screenshot(BUILD / "report.png")
    assert (BUILD / "report.png").stat().st_size > 20_000
    page.resize(360, 740)
    page.screenshot(BUILD / "report-phone.png")


def test_hostile_names_run_nothing(page: Browser, tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=\"document.title='harm'\">"
    usual = make_report()
    report = replace(
        usual,
        title="Title",
        levels=(Level(bad, bad, {bad: usual.levels[0].bars["ACME"]}),),
        nodes=(
            replace(make_node(bad), kind=bad, state=bad, watermark=bad, lag=bad, rules=(bad,)),
            make_node("__proto__", bad),
        ),
        notes=(bad,),
    )
    show(page, tmp_path, report)
    page.evaluate("document.querySelector('.node').dispatchEvent(new MouseEvent('click'))")
    page.settle()
    assert seen(page) == {"level": bad, "symbol": bad, "candles": 480, "corrected": 13, "nodes": 2}
    assert page.evaluate("[document.title, document.images.length]") == ["Title", 0]


def test_a_report_may_lack_everything(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, Report("Nothing", "now", "warehouse", 0, (), (), ()))
    assert seen(page) == {"level": "", "symbol": "", "candles": 0, "corrected": 0, "nodes": 0}
    show(page, tmp_path, replace(make_report(), levels=(Level("none", "None", {}),)))
    assert seen(page) == {"level": "none", "symbol": "", "candles": 0, "corrected": 0, "nodes": 8}
    assert text(page, "#bars-summary") == "None: no bars yet"


def test_without_scripts_the_graph_and_the_tables_are_there(page: Browser, tmp_path: Path) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        load(page, tmp_path, make_report())
        found = page.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        html = page.call("DOM.getOuterHTML", nodeId=found)["outerHTML"]
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert '<p class="card missing">' in html
    assert 'id="bars" aria-labelledby="bars-title" hidden' in html
    assert html.count('<g class="node"') == 16
