"""A case: views and what happens to the tables below them. All of it follows from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from querygen.dice import Dice
from querygen.histories import Epoch, first_rows, history, table_of
from querygen.nodes import Node
from querygen.queries import Queries
from querygen.schema import TABLES, Relation


@dataclass(frozen=True, slots=True)
class View:
    """A view: its name, its query, and the views among its parents."""

    name: str
    tree: Node
    parents: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.tree.text


@dataclass(frozen=True, slots=True)
class Case:
    """Rows to begin with, views in the order of their creation, and epochs."""

    first: Epoch
    views: tuple[View, ...]
    epochs: tuple[Epoch, ...]

    def only(self, names: set[str]) -> Case:
        return replace(self, views=tuple(view for view in self.views if view.name in names))

    def needed_for(self, name: str) -> Case:
        """This case with nothing but a view and what it reads."""
        wanted = {name}
        for view in reversed(self.views):
            if view.name in wanted:
                wanted |= set(view.parents)
        return self.only(wanted)

    def tables(self) -> list[Relation]:
        """The tables that views or statements are about."""
        texts = [*(view.text for view in self.views), *self.first.statements, *(epoch.text for epoch in self.epochs)]
        return [table for table in TABLES if any(table.is_named_in(text) for text in texts)]

    def about_its_views(self) -> Case:
        """Without the statements about tables that no view names."""
        named = [table.name for table in TABLES if any(table.is_named_in(view.text) for view in self.views)]

        def kept(epoch: Epoch) -> Epoch:
            return Epoch(tuple(each for each in epoch.statements if table_of(each) in named))

        epochs = tuple(epoch for epoch in map(kept, self.epochs) if epoch.statements)
        return replace(self, first=kept(self.first), epochs=epochs)


@dataclass(frozen=True, slots=True)
class Made:
    """A case, and how many queries were thrown away on the way because Spark would not take them."""

    case: Case
    discarded: tuple[str, ...]


def make_case(seed: int, views: int, epochs: int, accepts: Callable[[str, list[View]], str | None]) -> Made:
    """A case of so many views and epochs. `accepts` says of a query over some views why Spark refuses it, or None."""
    rng = Dice(seed)
    made: list[View] = []
    relations: list[Relation] = []
    discarded: list[str] = []
    while len(made) < views:
        rng.plain = rng.chance(0.55)
        above = [rng.choice(relations)] if relations and rng.chance(0.22) else []
        query = Queries(rng, [*TABLES, *above * 3]).view()
        text = query.tree.text
        parents = tuple(each.name for each in above if f"{each.name} " in f"{text} " or f"{each.name})" in text)
        view = View(f"v{len(made)}", query.tree, parents)
        reason = accepts(text, made)
        if reason is not None:
            discarded.append(f"{reason} | {text}")
            continue
        made.append(view)
        relations.append(Relation(view.name, query.columns))
    rng.plain = True
    return Made(Case(first_rows(rng), tuple(made), tuple(history(rng, epochs))), tuple(discarded))
