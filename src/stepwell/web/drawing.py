"""Drawing: the graph of a report as SVG, twice: across, and down for where that would not fit.

Which of the two is seen is up to the browser, by the room that it has. The colours are the page's, which finds each
relation by `data-node`, its place among the nodes, and each edge by `data-from` and `data-to`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from unicodedata import east_asian_width

from stepwell.web.facts import ReportNode
from stepwell.web.layout import Route, lay_out

_WIDTH, _HEIGHT, _MARGIN, _PADDING = 236, 94, 8, 14
_LONGEST_NAME, _LONGEST_LINE = 23, 31  # in characters, wide ones counting twice
_SMALLEST = 0.85  # of its size, to which a drawing may shrink before it has to be scrolled


@dataclass(frozen=True, slots=True)
class _Direction:
    """How a layout lies on paper: the size of a box and the gaps, both along and across the flow."""

    name: str
    length: float
    breadth: float
    gap_along: float
    gap_across: float
    point: Callable[[float, float], tuple[float, float]]

    def start(self, layer: int) -> float:
        """Where the boxes of a layer begin, along the flow."""
        return _MARGIN + layer * (self.length + self.gap_along)


_ACROSS = _Direction("across", _WIDTH, _HEIGHT, 48, 20, lambda along, across: (along, across))
_DOWN = _Direction("down", _HEIGHT, _WIDTH, 40, 18, lambda along, across: (across, along))


def draw_graph(nodes: Sequence[ReportNode]) -> str:
    """Tables on the left and every view right of all that it reads; on narrow screens from top to bottom instead."""
    across, width = _draw(nodes, _ACROSS)
    down, _ = _draw(nodes, _DOWN)
    rule = "svg.across { display: block } svg.down { display: none }"
    return f"<style>@container (min-width: {width * _SMALLEST:g}px) {{ {rule} }}</style>\n{across}\n{down}"


def _draw(nodes: Sequence[ReportNode], direction: _Direction) -> tuple[str, float]:
    """The drawing, and how wide it is."""
    layout = lay_out(nodes, direction.breadth, direction.gap_across)
    number = {node.name: index for index, node in enumerate(nodes)}
    width, height = direction.point(
        direction.start(layout.layers) - direction.gap_along + _MARGIN, layout.extent + 2 * _MARGIN
    )
    arrow = f"arrow-{direction.name}"
    parts = [
        f'<svg class="graph {direction.name}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
        f' style="min-width: {width * _SMALLEST:g}px" role="group" aria-label="Graph of tables and views">',
        f'<defs><marker id="{arrow}" viewBox="0 0 8 8" markerWidth="9" markerHeight="9" refX="7" refY="4"'
        ' markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0.5 L8,4 L0,7.5 z"/></marker></defs>',
    ]
    for route in layout.routes:
        path = _path(route, layout.layer[route.parent], layout.layer[route.child], layout.across, direction)
        parts.append(
            f'<path class="edge" data-from="{number[route.parent]}" data-to="{number[route.child]}" d="{path}"'
            f' marker-end="url(#{arrow})"/>'
        )
    for index, node in enumerate(nodes):
        across = _MARGIN + layout.across[node.name] - direction.breadth / 2
        x, y = direction.point(direction.start(layout.layer[node.name]), across)
        parts.extend(_box(index, node, x, y))
    return "\n".join([*parts, "</svg>"]), width


def _path(route: Route, first: int, last: int, across: dict[str, float], direction: _Direction) -> str:
    """A curve from box to box, straight wherever it passes between the boxes of a layer."""
    here = (direction.start(first) + direction.length, _MARGIN + across[route.parent])
    text = f"M{_pair(direction, *here)}"
    for layer, place in [*route.bends, (last, across[route.child])]:
        there = (direction.start(layer), _MARGIN + place)
        middle = (here[0] + there[0]) / 2
        text += f" C{_pair(direction, middle, here[1])} {_pair(direction, middle, there[1])} {_pair(direction, *there)}"
        here = (there[0] + direction.length, there[1])
        if layer != last:
            text += f" L{_pair(direction, *here)}"
    return text


def _pair(direction: _Direction, along: float, across: float) -> str:
    x, y = direction.point(along, across)
    return f"{x:.1f},{y:.1f}"


def _box(index: int, node: ReportNode, x: float, y: float) -> list[str]:
    left, right = x + _PADDING + 2, x + _WIDTH - _PADDING
    rows = "" if node.rows is None else f"{node.rows:,} {'row' if node.rows == 1 else 'rows'}"
    lines = [
        f'<g class="node" data-node="{index}" data-kind="{escape(node.kind)}" data-state="{escape(node.state or "")}">',
        f"<title>{escape(node.name)}</title>",
        f'<rect class="box" x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="9"/>',
        f'<rect class="stripe" x="{x:g}" y="{y + 14:g}" width="4" height="{_HEIGHT - 28}" rx="2"/>',
        f'<text class="name" x="{left:g}" y="{y + 25:g}">{_cut(node.name, _LONGEST_NAME)}</text>',
        f'<text x="{left:g}" y="{y + 43:g}">{_cut(node.kind, _LONGEST_LINE - len(node.state or "") - 3)}</text>',
        f'<text x="{left:g}" y="{y + 63:g}"><tspan class="label">watermark </tspan>'
        f"{_cut(node.watermark or '–', _LONGEST_LINE - 10)}</text>",
        f'<text x="{left:g}" y="{y + 81:g}"><tspan class="label">lag </tspan>'
        f"{_cut(node.lag or '–', max(_LONGEST_LINE - 6 - len(rows), 4))}</text>",
    ]
    if node.state is not None:
        state = _cut(node.state, 12)
        lines.append(f'<text class="state" text-anchor="end" x="{right:g}" y="{y + 43:g}">{state}</text>')
    if rows:
        lines.append(f'<text class="rows" text-anchor="end" x="{right:g}" y="{y + 81:g}">{rows}</text>')
    return [*lines, "</g>"]


def _cut(text: str, longest: int) -> str:
    """As much of a text as fits, escaped."""
    ends = list(accumulate(2 if east_asian_width(character) in "WF" else 1 for character in text))
    if ends and ends[-1] > longest:
        text = text[: max(bisect_right(ends, longest - 1), 1)] + "…"
    return escape(text)
