"""The page: a report as one HTML file that loads nothing and opens from a disk.

Whatever comes from a report is escaped here, or handed to the page's script as JSON, which puts it in as text. The
page's own policy holds besides: it runs the scripts written here, by their hashes, and makes no request at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from stepwell.web.drawing import draw_graph
from stepwell.web.facts import Bar, Level, Report, ReportEpoch, ReportNode
from stepwell.web.vendor import LIGHTWEIGHT_CHARTS, read_vendored


def render_report(report: Report) -> str:
    """The whole page as text, to be written as UTF-8.

    What a report does not have is left out: the chart without levels, the graph without nodes, the table without
    epochs. Raises ValueError for nodes that read each other in a circle.
    """
    scripts = [_resource("page.js")]
    if report.levels:
        scripts.insert(0, read_vendored(LIGHTWEIGHT_CHARTS.script).decode())
    sections = [
        _chart() if report.levels else "",
        _graph(report.nodes) if report.nodes else "",
        _epochs(report.epochs) if report.epochs else "",
        _notes(report.notes) if report.notes else "",
    ]
    return Template(_resource("page.html")).substitute(
        title=escape(report.title),
        policy=_policy(scripts),
        style=_resource("page.css"),
        facts=_facts(report),
        sections="\n".join(filter(None, sections)) or '<p class="card">There is nothing to show yet.</p>',
        attribution=_attribution() if report.levels else "",
        data=_json(report),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _resource(name: str) -> str:
    return (files("stepwell.web") / name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str]) -> str:
    """Only these very scripts, only styles of the page itself, and nothing from anywhere else."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _json(report: Report) -> str:
    """What the script needs, in a text that cannot end the element it stands in."""
    content = {
        "levels": [_level(level) for level in report.levels],
        "nodes": [
            {
                "name": node.name,
                "kind": node.kind,
                "state": node.state,
                "timeColumn": node.time_column,
                "watermark": node.watermark,
                "lag": node.lag,
                "rows": node.rows,
                "behind": node.behind,
                "query": node.query,
                "columns": node.columns,
                "firstRows": node.first_rows,
                "refreshes": node.refreshes,
                "lateRows": node.late_rows,
                "lineage": node.lineage,
                "rules": node.rules,
                "parents": node.parents,
            }
            for node in report.nodes
        ],
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _level(level: Level) -> dict[str, object]:
    # Symbols are a list, not keys: one may be named like something that every object of JavaScript has.
    return {
        "name": level.name,
        "label": level.label,
        "symbols": [{"name": symbol, "bars": _columns(bars)} for symbol, bars in level.bars.items()],
    }


def _columns(bars: Sequence[Bar]) -> dict[str, list[float] | list[int]]:
    """Bars by column, for names would take more room than numbers; of corrections, their places."""
    return {
        "time": [bar.time for bar in bars],
        "open": [bar.open for bar in bars],
        "high": [bar.high for bar in bars],
        "low": [bar.low for bar in bars],
        "close": [bar.close for bar in bars],
        "volume": [bar.volume for bar in bars],
        "corrected": [index for index, bar in enumerate(bars) if bar.corrected],
    }


def _facts(report: Report) -> str:
    facts = {
        "warehouse": report.warehouse,
        "epoch": f"{report.epoch:,}",
        "tables and views": f"{len(report.nodes):,}",
        "made at": report.made_at,
    }
    return "\n".join(f"    <div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())


def _chart() -> str:
    return """\
<section class="card" id="bars" aria-labelledby="bars-title" hidden>
  <div class="head">
    <h2 id="bars-title">Bars</h2>
    <div class="controls">
      <div class="switch" id="levels" role="group" aria-label="Level"></div>
      <label id="symbol-label">Symbol <select id="symbol"></select></label>
      <button type="button" id="fit">Show all</button>
    </div>
  </div>
  <p class="legend" id="legend"></p>
  <div id="chart" role="group" aria-describedby="bars-summary"></div>
  <p class="under" id="bars-summary" aria-live="polite"></p>
  <details id="corrections">
    <summary><span class="dot" aria-hidden="true"></span><span id="corrections-count"></span></summary>
    <ol id="corrections-list"></ol>
  </details>
</section>"""


def _graph(nodes: Sequence[ReportNode]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(node.name)}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in (node.kind, node.state or "–", node.time_column or "–"))
        + "".join(f"<td>{escape(text)}</td>" for text in (node.watermark or "–", node.lag or "–"))
        + f'<td class="number">{"–" if node.rows is None else f"{node.rows:,}"}</td>'
        + f'<td class="number">{"–" if node.behind is None else f"{node.behind:,}"}</td>'
        + f"<td>{escape(', '.join(node.parents)) or '–'}</td><td>{escape('; '.join(node.rules)) or '–'}</td></tr>"
        for node in nodes
    )
    headings = ("name", "kind", "state", "time column", "watermark", "lag", "rows", "behind", "reads", "rules")
    return f"""\
<section class="card" id="graph" aria-labelledby="graph-title">
  <h2 id="graph-title">Graph of tables and views</h2>
  <div class="panes">
    <div class="scroll drawing" tabindex="0" role="region" aria-label="Drawing of the graph">
{draw_graph(nodes)}
    </div>
    <div class="details" id="node-details" aria-live="polite" hidden>
      <p class="hint">Choose a table or a view to see how it fares.</p>
    </div>
  </div>
  <details>
    <summary>The graph as a table</summary>
    <div class="scroll" tabindex="0" role="region" aria-label="Table of tables and views">
      <table class="relations">
        <thead><tr>{"".join(f'<th scope="col">{heading}</th>' for heading in headings)}</tr></thead>
        <tbody>
{rows}
        </tbody>
      </table>
    </div>
  </details>
</section>"""


def _epochs(epochs: Sequence[ReportEpoch]) -> str:
    most_rows = max(max(epoch.inserted, epoch.retracted) for epoch in epochs)
    most_time = max(epoch.milliseconds for epoch in epochs)
    rows = "\n".join(
        f'<tr><th scope="row" class="number">{epoch.number:,}</th><td>{_words(epoch.readable_at)}</td>'
        + _measure("in", f"{epoch.inserted:,}", epoch.inserted, most_rows)
        + _measure("out", f"{epoch.retracted:,}", epoch.retracted, most_rows)
        + f'<td class="number views">{epoch.views:,}</td><td class="number">{epoch.jobs:,}</td>'
        + _measure("took", f"{epoch.milliseconds:,.0f}", epoch.milliseconds, most_time)
        + "</tr>"
        for epoch in sorted(epochs, key=lambda each: each.number, reverse=True)
    )
    return f"""\
<section class="card" id="epochs" aria-labelledby="epochs-title">
  <h2 id="epochs-title">Last epochs</h2>
  <div class="scroll tall" tabindex="0" role="region" aria-labelledby="epochs-title">
    <table class="epochs">
      <thead><tr>
        <th scope="col" class="number">epoch</th><th scope="col">readable at</th>
        <th scope="col" class="number">rows in</th><th scope="col" class="number">rows out</th>
        <th scope="col" class="number views">views</th><th scope="col" class="number">jobs</th>
        <th scope="col" class="number"><abbr title="milliseconds">ms</abbr></th>
      </tr></thead>
      <tbody>
{rows}
      </tbody>
    </table>
  </div>
</section>"""


def _measure(name: str, text: str, value: float, most: float) -> str:
    """A number with a bar below it, as long as its share of the greatest."""
    share = 100 * value / most if most else 0
    bar = f'<span class="measure" aria-hidden="true" style="width: {share:.1f}%"></span>'
    return f'<td class="number {name}">{text}{bar}</td>'


def _words(text: str) -> str:
    """A text that is broken between words alone, so that a date stays in one piece."""
    return " ".join(f'<span class="whole">{escape(word)}</span>' for word in text.split())


def _notes(notes: Iterable[str]) -> str:
    items = "\n".join(f"    <li>{escape(note)}</li>" for note in notes)
    return f"""\
<section class="card" id="notes" aria-labelledby="notes-title">
  <h2 id="notes-title">Notes</h2>
  <ul>
{items}
  </ul>
</section>"""


def _attribution() -> str:
    library = LIGHTWEIGHT_CHARTS
    notice = " ".join(read_vendored(library.notice).decode().replace(library.homepage, "").split())
    return (
        f"<p>{escape(notice)} "
        f'<a href="{library.homepage}" rel="noopener noreferrer">{library.homepage}</a> '
        f"Version {library.version}, licensed under {library.licence}.</p>"
    )
