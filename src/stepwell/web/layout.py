"""Layout: where the relations of a graph stand, in layers from the tables on, and which way the edges go.

The direction of the drawing is left open: a place says how many layers *along* the flow, and how far *across* it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from statistics import fmean

from stepwell.web.facts import ReportNode

_SWEEPS = 8


@dataclass(frozen=True, slots=True, order=True)
class _Station:
    """What takes up room in a layer: the box of a relation, or where its edges to later layers pass between boxes.

    All edges of a relation pass through the same place: they look like a stem with branches.
    """

    layer: int
    name: str
    passes: bool = False

    def reach(self, breadth: float) -> float:
        """How far it extends to either side."""
        return 0.0 if self.passes else breadth / 2


_Neighbours = dict[_Station, dict[_Station, None]]  # sets that keep their order


@dataclass(frozen=True, slots=True)
class Route:
    """An edge: from a parent to a child, through the layers between them, each as (layer, across)."""

    parent: str
    child: str
    bends: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The layer of each relation and the middle of its box across the flow; all lies in [0, extent]."""

    layer: dict[str, int]
    across: dict[str, float]
    routes: tuple[Route, ...]
    layers: int
    extent: float


def lay_out(nodes: Sequence[ReportNode], breadth: float, gap: float) -> Layout:
    """Every relation one layer after the last of its parents; boxes `breadth` wide lie `gap` or more apart.

    Parents that are not among the nodes are left out. Raises graphlib.CycleError, a ValueError, for a cycle.
    """
    known = {node.name: node for node in nodes}
    parents = {name: [each for each in dict.fromkeys(node.parents) if each in known] for name, node in known.items()}
    layer: dict[str, int] = {}
    for name in TopologicalSorter(parents).static_order():
        layer[name] = max((layer[parent] + 1 for parent in parents[name]), default=0)

    layers: list[list[_Station]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    before: _Neighbours = {}
    after: _Neighbours = {}
    chains: dict[tuple[str, str], list[_Station]] = {}
    for name in known:
        layers[layer[name]].append(_Station(layer[name], name))
    for child in known:
        for parent in parents[child]:
            bends = [_Station(each, parent, passes=True) for each in range(layer[parent] + 1, layer[child])]
            chain = [_Station(layer[parent], parent), *bends, _Station(layer[child], child)]
            chains[parent, child] = bends
            for first, second in pairwise(chain):
                if second.passes and second not in before:
                    layers[second.layer].append(second)
                after.setdefault(first, {})[second] = None
                before.setdefault(second, {})[first] = None

    _untangle(layers, before, after)
    place = _spread(layers, before, after, breadth, gap)
    least = min((middle - station.reach(breadth) for station, middle in place.items()), default=0.0)
    most = max((middle + station.reach(breadth) for station, middle in place.items()), default=0.0)
    return Layout(
        layer=layer,
        across={name: place[_Station(layer[name], name)] - least for name in known},
        routes=tuple(
            Route(parent, child, tuple((bend.layer, place[bend] - least) for bend in bends))
            for (parent, child), bends in chains.items()
        ),
        layers=len(layers),
        extent=most - least,
    )


def _untangle(layers: list[list[_Station]], before: _Neighbours, after: _Neighbours) -> None:
    """Order each layer by the middle of what it is joined to, to and fro: few edges cross after some sweeps."""
    rank = {station: float(index) for stations in layers for index, station in enumerate(stations)}
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        joined = before if forward else after
        for stations in layers if forward else reversed(layers):
            wishes = {station: _mean(rank, joined.get(station, ()), rank[station]) for station in stations}
            stations.sort(key=wishes.__getitem__)
            rank.update((station, float(index)) for index, station in enumerate(stations))


def _spread(
    layers: list[list[_Station]], before: _Neighbours, after: _Neighbours, breadth: float, gap: float
) -> dict[_Station, float]:
    """Pull stations towards what they are joined to, without a change of order and never too close.

    The last sweep goes along the flow and looks at parents alone: a chain of views comes out straight.
    """
    place = {station: index * (breadth + gap) for stations in layers for index, station in enumerate(stations)}
    for sweep in range(_SWEEPS + 1):
        forward = sweep % 2 == 0
        joined = before if forward else after
        for stations in layers if forward else reversed(layers):
            wishes = [_mean(place, joined.get(station, ()), place[station]) for station in stations]
            rooms = [first.reach(breadth) + gap + second.reach(breadth) for first, second in pairwise(stations)]
            # Pushing everything one way keeps the distances, and so does pushing the other way: so does the mean.
            up = _push(wishes, rooms)
            down = [-each for each in reversed(_push([-wish for wish in reversed(wishes)], rooms[::-1]))]
            place.update((station, (one + other) / 2) for station, one, other in zip(stations, up, down, strict=True))
    return place


def _push(wishes: Sequence[float], rooms: Sequence[float]) -> list[float]:
    """The wishes in ascending order, each raised as far as its distance from the one before demands."""
    placed: list[float] = []
    for index, wish in enumerate(wishes):
        placed.append(max(wish, placed[-1] + rooms[index - 1]) if placed else wish)
    return placed


def _mean(values: dict[_Station, float], stations: Iterable[_Station], default: float) -> float:
    found = [values[station] for station in stations]
    return fmean(found) if found else default
