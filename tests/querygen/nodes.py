"""SQL text as a small tree: enough structure to take parts away, and none beyond that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from querygen.types import LITERALS

Piece = "str | Node"


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of SQL: texts and smaller nodes, one behind the other.

    `sort` is the type of an expression, `query` for whatever stands where a query may stand, and any other word for the
    rest. A node may be replaced by one inside of it that is of the same sort. An `optional` one may be left out. Of a
    node with a `separator`, each piece may be left out but the last.
    """

    sort: str
    pieces: tuple[str | Node, ...]
    optional: bool = False
    separator: str = ""

    @property
    def text(self) -> str:
        return self.separator.join(piece if isinstance(piece, str) else piece.text for piece in self.pieces)

    def inside(self) -> Iterator[Node]:
        """All nodes below this one, the nearest first."""
        children = [piece for piece in self.pieces if isinstance(piece, Node)]
        yield from children
        for child in children:
            yield from child.inside()

    def as_optional(self) -> Node:
        return replace(self, optional=True)


def node(sort: str, *pieces: str | Node | None) -> Node:
    """A node of the pieces that are there."""
    return Node(sort, tuple(piece for piece in pieces if piece is not None and piece != ""))


def clause(*pieces: str | Node | None) -> Node:
    """A node that may be left out."""
    return node("clause", *pieces).as_optional()


def listed(pieces: list[Node], separator: str = ", ") -> Node:
    return Node("list", tuple(pieces), separator=separator)


def smaller(tree: Node) -> Iterator[Node]:
    """What `tree` can become in one step, the largest steps first; not all of it is SQL that Spark takes."""
    if tree.sort == "query" or tree.sort in LITERALS:
        for below in tree.inside():
            if below.sort == tree.sort and len(below.text) < len(tree.text):
                yield replace(below, optional=tree.optional)
    if tree.sort in LITERALS:
        for literal in LITERALS[tree.sort]:
            if len(literal) < len(tree.text):
                yield replace(tree, pieces=(literal,), separator="")
    for number, piece in enumerate(tree.pieces):
        if isinstance(piece, Node) and (piece.optional or (tree.separator and len(tree.pieces) > 1)):
            yield replace(tree, pieces=(*tree.pieces[:number], *tree.pieces[number + 1 :]))
    for number, piece in enumerate(tree.pieces):
        if isinstance(piece, Node):
            for less in smaller(piece):
                yield replace(tree, pieces=(*tree.pieces[:number], less, *tree.pieces[number + 1 :]))
