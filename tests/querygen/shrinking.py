"""A failing case made smaller while it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from querygen.cases import Case, View
from querygen.nodes import smaller
from querygen.runner import Failure

Fails = Callable[[Case], "Failure | None"]
"""Plays a case; the failure of the view in question, if there is one."""


def shrink(
    case: Case, failure: Failure, fails: Fails, accepts: Callable[[str, list[View]], str | None], tries: int
) -> Case:
    """The smallest case found by playing at most so many in which the view fails as it did.

    First go the other views and the epochs behind the failure, then whole epochs and statements, then parts of queries.
    """
    case = case.needed_for(failure.view)
    case = replace(case, epochs=case.epochs[: failure.epoch + 1])
    found = fails(case)
    if found is None or found.kind != failure.kind:
        return case  # it fails only beside the others
    about = case.about_its_views()
    if about != case and (found := fails(about)) is not None and found.kind == failure.kind:
        case = about
    progress = True
    while progress:
        progress = False
        for candidate in candidates(case):
            if not _is_valid(candidate, accepts):
                continue
            if not tries:
                return case
            tries -= 1
            found = fails(candidate)
            if found is not None and found.kind == failure.kind:
                case, progress = candidate, True
                break
    return case


def candidates(case: Case) -> Iterator[Case]:
    """Cases that are smaller by one thing, the largest things first."""
    yield from _without_epochs(case)
    yield from _simpler_queries(case)
    yield from _without_statements(case)


def _without_epochs(case: Case) -> Iterator[Case]:
    for number in range(len(case.epochs)):
        yield replace(case, epochs=case.epochs[:number] + case.epochs[number + 1 :])


def _without_statements(case: Case) -> Iterator[Case]:
    for number in range(len(case.first.statements)):
        yield replace(case, first=case.first.without(number))
    for place, epoch in enumerate(case.epochs):
        if len(epoch.statements) > 1:
            for number in range(len(epoch.statements)):
                yield replace(case, epochs=(*case.epochs[:place], epoch.without(number), *case.epochs[place + 1 :]))


def _simpler_queries(case: Case) -> Iterator[Case]:
    for place in reversed(range(len(case.views))):
        view = case.views[place]
        for tree in smaller(view.tree):
            less = replace(view, tree=tree)
            yield replace(case, views=(*case.views[:place], less, *case.views[place + 1 :]))


def _is_valid(case: Case, accepts: Callable[[str, list[View]], str | None]) -> bool:
    return all(accepts(view.text, list(case.views[:place])) is None for place, view in enumerate(case.views))
