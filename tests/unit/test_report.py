"""The report page, by its text alone: what it loads, what it says, and what hostile content does to it."""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest

from reports import make_bars, make_node, make_report
from stepwell.web import Bar, Level, Report, render_report
from stepwell.web.layout import lay_out
from stepwell.web.vendor import LIGHTWEIGHT_CHARTS, read_vendored

EMPTY = Report("Nothing", "now", "warehouse", 0, (), (), ())
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onload='alert(1)' x=\"",
    "<!--<script>",
    "$title ${sections} &amp; {0} %s",
    "__proto__",
    "\u2028]]>",
)


class Page(HTMLParser):
    """A page taken apart: its elements with their attributes, and the texts in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self._inside, data))

    def ids(self) -> set[str | None]:
        return {attributes["id"] for _, attributes in self.elements if "id" in attributes}

    def count(self, tag: str) -> int:
        return sum(each == tag for each, _ in self.elements)

    def data(self) -> Any:
        place = [tag for tag, _ in self.elements if tag == "script"]
        scripts = [text for tag, text in self.texts if tag == "script"]
        assert len(place) == len(scripts)
        return json.loads(scripts[0])


def own_text(page: str) -> str:
    """The page without the vendored script."""
    return page.replace(read_vendored(LIGHTWEIGHT_CHARTS.script).decode(), "")


def test_the_page_loads_nothing() -> None:
    text = render_report(make_report())
    page = Page(text)
    for tag, attributes in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "source", "video", "audio"}
        assert not {"src", "srcset", "data", "action", "background", "xlink:href"} & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes), tag
        if "href" in attributes:
            assert tag == "a"
    own = own_text(text)
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttpRequest|WebSocket|import\(|innerHTML|eval\(", own)
    assert set(re.findall(r"https?://[^\s\"'<]+", own)) == {"https://www.tradingview.com/"}
    assert len(own) < len(text)


def test_the_page_forbids_itself_all_but_its_own_scripts() -> None:
    page = Page(render_report(make_report()))
    policies = [attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes]
    assert len(policies) == 1
    assert str(policies[0]).startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in str(policies[0]).split(";")[1]


def test_the_chart_library_is_named_with_its_notice() -> None:
    text = own_text(render_report(make_report()))
    assert "TradingView Lightweight Charts Copyright" in text
    assert '<a href="https://www.tradingview.com/"' in text
    assert "attributionLogo: true" in text


def test_content_is_in_the_page_without_any_script() -> None:
    report = make_report()
    page = Page(render_report(report))
    texts = {text.strip() for _, text in page.texts}
    assert {node.name for node in report.nodes} <= texts
    assert {f"{epoch.number}" for epoch in report.epochs} <= texts
    assert set(report.notes) <= texts
    assert page.count("noscript") == 1
    assert [attributes.get("lang") for tag, attributes in page.elements if tag == "html"] == ["en"]


def test_epochs_are_listed_from_the_last() -> None:
    text = render_report(make_report())
    assert text.index("08:54:04") < text.index("08:53:04") < text.index("08:30:04")


def test_bars_arrive_as_they_are() -> None:
    bars = (Bar(60, 1.5, 2.5, 0.25, 2.0, 10.0, False), Bar(120, 2.0, 2.0, 1e-9, 1.0, 1e12, True))
    data = Page(render_report(replace(EMPTY, levels=(Level("m", "Minute", {"": bars}),)))).data()
    assert data["levels"] == [
        {
            "name": "m",
            "label": "Minute",
            "symbols": [
                {
                    "name": "",
                    "bars": {
                        "time": [60, 120],
                        "open": [1.5, 2.0],
                        "high": [2.5, 2.0],
                        "low": [0.25, 1e-9],
                        "close": [2.0, 1.0],
                        "volume": [10.0, 1e12],
                        "corrected": [1],
                    },
                }
            ],
        }
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_content_stays_text(text: str) -> None:
    usual = make_report()
    bars = make_bars(3, 1, 1)
    hostile = Report(
        title=text,
        made_at=text,
        warehouse=text,
        epoch=1,
        levels=(Level(text, text, {text: bars}),),
        nodes=(
            replace(make_node("a"), name=text, kind=text, state=text, time_column=text, watermark=text, lag=text),
            replace(make_node("b", text), rules=(text, text)),
        ),
        epochs=(replace(usual.epochs[0], readable_at=text),),
        notes=(text,),
    )
    harmless = "word"
    page = Page(render_report(hostile))
    same = Page(
        render_report(
            replace(
                hostile,
                nodes=(
                    replace(hostile.nodes[0], name=harmless, kind=harmless, state=harmless, watermark="w", lag="w"),
                    replace(hostile.nodes[1], parents=(harmless,)),
                ),
                title=harmless,
                made_at=harmless,
                warehouse=harmless,
                levels=(Level(harmless, harmless, {harmless: bars}),),
                # as many words as the hostile text has, for a word is an element of its own there
                epochs=(replace(usual.epochs[0], readable_at=" ".join("w" for _ in text.split())),),
                notes=(harmless,),
            )
        )
    )
    shape = [(tag, sorted(attributes)) for tag, attributes in page.elements]
    assert shape == [(tag, sorted(attributes)) for tag, attributes in same.elements]
    assert page.data()["levels"][0]["symbols"][0]["name"] == text
    assert page.data()["nodes"][0]["name"] == text
    assert text in {each.strip(" \n") for _, each in page.texts}


def test_what_a_report_does_not_have_is_left_out() -> None:
    page = Page(render_report(EMPTY))
    assert not {"bars", "graph", "epochs", "notes"} & page.ids()
    assert "There is nothing to show yet." in {text for _, text in page.texts}
    assert LIGHTWEIGHT_CHARTS.name not in render_report(EMPTY)

    usual = make_report()
    assert {"bars", "graph", "epochs", "notes"} <= Page(render_report(usual)).ids()
    assert "bars" not in Page(render_report(replace(usual, levels=()))).ids()
    assert "graph" not in Page(render_report(replace(usual, nodes=()))).ids()
    assert "epochs" not in Page(render_report(replace(usual, epochs=()))).ids()


def test_a_level_may_have_no_bars_and_an_epoch_no_rows() -> None:
    usual = make_report()
    idle = replace(usual.epochs[0], inserted=0, retracted=0, jobs=0, milliseconds=0.0, views=0)
    levels = (Level("none", "None", {}), Level("empty", "Empty", {"ACME": ()}))
    page = Page(render_report(replace(usual, levels=levels, epochs=(idle,))))
    assert [level["name"] for level in page.data()["levels"]] == ["none", "empty"]


def test_many_bars_make_a_page_of_bearable_size_in_bearable_time() -> None:
    level = Level("minutes", "1 minute", {"ACME": make_bars(20_000, 1, 500)})
    started = time.monotonic()
    text = render_report(replace(make_report(), levels=(level,)))
    assert time.monotonic() - started < 5
    assert len(text.encode()) < 5_000_000


def test_bars_guard_themselves() -> None:
    with pytest.raises(ValueError, match="finite"):
        Bar(0, 1.0, float("nan"), 1.0, 1.0, 1.0, False)
    first, second = make_bars(2, 1, 0)
    with pytest.raises(ValueError, match=r'bars of "ACME" in level "m" are out of order'):
        Level("m", "Minute", {"ACME": (second, first)})
    with pytest.raises(ValueError, match="out of order"):
        Level("m", "Minute", {"ACME": (first, first)})


def test_the_names_of_nodes_are_their_own() -> None:
    with pytest.raises(ValueError, match='two nodes named "a"'):
        replace(EMPTY, nodes=(make_node("a"), make_node("a")))


def test_children_come_after_their_parents_whatever_the_order_of_nodes() -> None:
    nodes = tuple(reversed(make_report().nodes))
    layout = lay_out(nodes, breadth=100, gap=10)
    for node in nodes:
        assert all(layout.layer[parent] < layout.layer[node.name] for parent in node.parents)
    assert layout.layers == 6
    assert len(layout.routes) == sum(len(node.parents) for node in nodes)


def test_boxes_and_edges_keep_their_distance() -> None:
    layout = lay_out(make_report().nodes, breadth=100, gap=10)
    for layer in range(layout.layers):
        boxes = sorted(layout.across[name] for name, each in layout.layer.items() if each == layer)
        bends = [across for route in layout.routes for each, across in route.bends if each == layer]
        assert all(later - earlier >= 109.9 for earlier, later in pairwise(boxes))
        assert all(abs(bend - box) >= 59.9 for bend in bends for box in boxes)
        assert all(49.9 <= box <= layout.extent - 49.9 for box in boxes)


def test_a_chain_is_drawn_straight() -> None:
    chain = (make_node("a"), make_node("b", "a"), make_node("c", "b"), make_node("d", "c"))
    assert len(set(lay_out(chain, breadth=100, gap=10).across.values())) == 1


def test_a_parent_that_is_not_shown_has_no_edge() -> None:
    page = Page(render_report(replace(EMPTY, nodes=(make_node("a", "hidden", "b"), make_node("b", "hidden")))))
    edges = {(each["data-from"], each["data-to"]) for _, each in page.elements if each.get("class") == "edge"}
    assert edges == {("1", "0")}
    assert page.data()["nodes"][0]["parents"] == ["hidden", "b"]


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        render_report(replace(EMPTY, nodes=(make_node("a", "b"), make_node("b", "a"))))


def test_vendored_files_are_as_they_were_taken_over() -> None:
    stored = {each.name for each in (files("stepwell.web") / "vendor").iterdir()}
    assert stored == set(LIGHTWEIGHT_CHARTS.checksums)
    for name, checksum in LIGHTWEIGHT_CHARTS.checksums.items():
        assert hashlib.sha256(read_vendored(name)).hexdigest() == checksum, name
    script = read_vendored(LIGHTWEIGHT_CHARTS.script).decode()
    assert f"v{LIGHTWEIGHT_CHARTS.version}" in script[:200]
    assert "</script" not in script.lower()
    assert "<!--" not in script
