"""The life of a view: what it is called, and what statements and epochs make of it."""

from __future__ import annotations

import pytest

from stepwell.model.epochs import Epoch
from stepwell.model.lifecycle import (
    Building,
    ByParent,
    ByUser,
    Failed,
    Life,
    Outcome,
    Owed,
    Paused,
    Running,
    Serving,
    Unpopulated,
    ViewState,
    failed,
    is_due,
    owing,
    paused,
    reflected,
    replaced,
    resumed,
    runs,
    settled,
    state_of,
    stopped_by,
    stopped_with,
    waits_for_parent,
    why_stopped,
)
from stepwell.model.views import RelationId

VIEW, PARENT = RelationId(7), RelationId(3)
BY_USER, BY_PARENT = Paused(ByUser()), Paused(ByParent(PARENT))


def serving(reflects: int, condition: Running | Paused | Failed | None = None, owed: Owed = Owed.NOTHING) -> Serving:
    return Serving(Epoch(reflects), condition or Running(), owed)


@pytest.mark.parametrize(
    ("life", "state", "why", "does_run", "due"),
    [
        (Building(), ViewState.CREATING, None, True, True),
        (Building(failed="by zero"), ViewState.ERROR, "by zero", False, False),
        (Unpopulated(), ViewState.UNPOPULATED, None, False, False),
        (serving(4), ViewState.RUNNING, None, True, False),
        (serving(4, owed=Owed.CATCH_UP), ViewState.RUNNING, None, True, True),
        (serving(4, BY_USER), ViewState.PAUSED, "paused by a user", False, False),
        (serving(4, BY_PARENT, Owed.RECOMPUTE), ViewState.PAUSED, '"prices" does not run', False, False),
        (serving(4, Failed("by zero")), ViewState.ERROR, "by zero", False, False),
    ],
)
def test_a_life_is_told_in_a_word_and_a_reason(
    life: Life, state: ViewState, why: str | None, does_run: bool, due: bool
) -> None:
    assert state_of(life) == state
    assert why_stopped(life, {PARENT: "prices"}.__getitem__) == why
    assert runs(life) == does_run
    assert is_due(life) == due
    assert waits_for_parent(life) == (why == '"prices" does not run')
    assert reflected(life) == (4 if isinstance(life, Serving) else None)


def test_a_view_that_was_stopped_catches_up_and_keeps_what_it_was_owed_besides() -> None:
    assert paused(serving(4)) == serving(4, BY_USER)
    assert resumed(serving(4, BY_USER)) == serving(4, owed=Owed.CATCH_UP)
    for owed in (Owed.RECOMPUTE, Owed.REWRITE):
        assert resumed(paused(serving(4, owed=owed))) == serving(4, owed=owed)
        assert resumed(failed(serving(4, owed=owed), "by zero")) == serving(4, owed=owed)


def test_a_view_without_rows_is_built_or_left_empty() -> None:
    assert paused(Building()) == Unpopulated()
    assert resumed(Unpopulated()) == replaced(Unpopulated()) == Building()
    assert resumed(failed(Building(), "by zero")) == Building()
    assert owing(Building(), Owed.REWRITE) == Building()
    assert stopped_by(Building(), PARENT) == Building()


def test_a_replacement_is_computed_whatever_the_view_was() -> None:
    assert replaced(serving(4, Failed("by zero"), Owed.CATCH_UP)) == serving(4, owed=Owed.RECOMPUTE)
    assert replaced(serving(4, owed=Owed.REWRITE)) == serving(4, owed=Owed.REWRITE)
    assert owing(serving(4, BY_USER), Owed.RECOMPUTE) == serving(4, BY_USER, Owed.RECOMPUTE)


def test_a_view_fares_as_the_part_of_it_that_does_not_run() -> None:
    assert stopped_by(serving(4), PARENT) == serving(4, BY_PARENT)
    assert stopped_with(serving(4), serving(4, BY_PARENT)) == serving(4, BY_PARENT)
    assert stopped_with(serving(4), serving(4, Failed("by zero"))) == serving(4, Failed("by zero"))
    assert stopped_with(Building(), Building(failed="by zero")) == Building(failed="by zero")
    assert stopped_with(serving(4), Building(failed="by zero")) == serving(4, Failed("by zero"))
    assert stopped_with(serving(4, owed=Owed.RECOMPUTE), Building()) == serving(4, owed=Owed.RECOMPUTE)


@pytest.mark.parametrize(
    ("was", "said", "after"),
    [
        (serving(4), serving(4, BY_USER), serving(5, BY_USER)),
        (serving(4), serving(4, owed=Owed.CATCH_UP), serving(5, owed=Owed.CATCH_UP)),
        (serving(4), serving(4, owed=Owed.RECOMPUTE), serving(5, owed=Owed.RECOMPUTE)),
        (serving(4, owed=Owed.RECOMPUTE), serving(4, owed=Owed.RECOMPUTE), serving(5, owed=Owed.RECOMPUTE)),
        (Building(), Building(), serving(5, owed=Owed.RECOMPUTE)),
        (Building(), Unpopulated(), serving(5, BY_USER)),
    ],
)
def test_what_was_said_during_an_epoch_holds_with_the_rows_of_that_epoch(was: Life, said: Life, after: Life) -> None:
    assert settled(Outcome(VIEW, was, serving(5)), said) == after
    for stopped in (failed(was, "by zero"), stopped_by(was, PARENT)):
        assert settled(Outcome(VIEW, was, stopped), said) == said, "the epoch has given it no rows"


def test_an_epoch_that_only_moves_a_view_on_changes_nothing_else() -> None:
    assert Outcome(VIEW, serving(4), serving(5)).only_advances
    assert not Outcome(VIEW, serving(4, owed=Owed.CATCH_UP), serving(5)).only_advances
    assert not Outcome(VIEW, serving(4), serving(4, BY_PARENT)).only_advances
    assert not Outcome(VIEW, Building(), serving(5)).only_advances
