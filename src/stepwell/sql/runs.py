"""Runs: the statements of a text that are carried out together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from stepwell.sql.statements import CreateTable, CreateView, Statement


def runs_of(statements: Iterable[Statement]) -> list[list[Statement]]:
    """Consecutive CREATEs together, every other statement by itself; in their order."""
    runs: list[list[Statement]] = []
    for creates, group in groupby(statements, key=lambda each: isinstance(each.body, CreateTable | CreateView)):
        together = list(group)
        runs += [together] if creates else [[each] for each in together]
    return runs
