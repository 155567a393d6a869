"""Drawing: the graph as lines of text for a terminal, and as SVG for everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape


@dataclass(frozen=True, slots=True)
class DrawnRelation:
    """A relation to draw: its name, what it is, and the names of its parents."""

    name: str
    label: str
    parents: tuple[str, ...] = ()


def draw_text(nodes: Sequence[DrawnRelation]) -> list[str]:
    """Every relation below one that it reads; where it reads several, it is drawn once and named elsewhere."""
    children: dict[str, list[DrawnRelation]] = {node.name: [] for node in nodes}
    for node in nodes:
        for parent in node.parents:
            children[parent].append(node)
    drawn: set[str] = set()
    lines: list[str] = []
    for node in nodes:
        if not node.parents:
            lines.extend(_branch(node, children, drawn, "", ""))
    return lines


def _branch(
    node: DrawnRelation, children: Mapping[str, Sequence[DrawnRelation]], drawn: set[str], first: str, rest: str
) -> Iterator[str]:
    if node.name in drawn:
        yield f"{first}{node.name} (above)"
        return
    drawn.add(node.name)
    yield f"{first}{node.name}  {node.label}"
    below = children[node.name]
    for index, child in enumerate(below):
        last = index == len(below) - 1
        yield from _branch(child, children, drawn, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 190, 46, 60, 22, 16


def draw_svg(nodes: Sequence[DrawnRelation]) -> str:
    """Tables on the left, and every view one column right of the last relation that it reads."""
    depth: dict[str, int] = {}
    for node in nodes:  # parents come before children
        depth[node.name] = max((depth[parent] + 1 for parent in node.parents), default=0)
    columns: dict[int, list[DrawnRelation]] = {}
    for node in nodes:
        columns.setdefault(depth[node.name], []).append(node)
    place = {
        node.name: (_MARGIN + level * (_WIDTH + _GAP_X), _MARGIN + row * (_HEIGHT + _GAP_Y))
        for level, column in columns.items()
        for row, node in enumerate(column)
    }
    width = max((x for x, _ in place.values()), default=0) + _WIDTH + _MARGIN
    height = max((y for _, y in place.values()), default=0) + _HEIGHT + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">',
        '<defs><marker id="end" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#667"/></marker></defs>',
    ]
    for node in nodes:
        x, y = place[node.name]
        for parent in node.parents:
            from_x, from_y = place[parent]
            start, end, middle = from_x + _WIDTH, from_y + _HEIGHT / 2, (from_x + _WIDTH + x) / 2
            parts.append(
                f'<path d="M{start},{end} C{middle},{end} {middle},{y + _HEIGHT / 2} {x},{y + _HEIGHT / 2}"'
                ' fill="none" stroke="#667" marker-end="url(#end)"/>'
            )
    for node in nodes:
        x, y = place[node.name]
        fill = "#dfe8f7" if node.parents else "#eee6d6"
        parts.append(f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{fill}" stroke="#667"/>')
        parts.append(f'<text x="{x + 10}" y="{y + 20}" font-size="14" font-weight="bold">{escape(node.name)}</text>')
        parts.append(f'<text x="{x + 10}" y="{y + 37}" font-size="11" fill="#445">{escape(node.label)}</text>')
    return "\n".join([*parts, "</svg>", ""])
