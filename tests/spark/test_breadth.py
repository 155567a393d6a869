"""Bugs seeded in the rules of subqueries, set operations, grouping sets and windows: each must be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import stepwell
from corpus import ANEW, QUERIES
from law import is_seen, prepared
from stepwell.engine.maintain.maintenance import Refresher
from stepwell.plan import groups, render
from stepwell.plan.render import Mode

EVERY = {**QUERIES, **ANEW}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with prepared(tmp_path_factory.mktemp("breadth")) as db:
        yield db


def _partitions_untouched(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        render, "same_keys", lambda block, left, right: f"{left}._sw_g0 <=> {right}._sw_g0 AND {left}._sw_g0 > 1"
    )


def _counted_once(patch: pytest.MonkeyPatch) -> None:
    merged = groups.Folding.merged
    patch.setattr(
        groups.Folding, "merged", lambda self, partial, state: merged(self, partial, state).replace(" + ", " * 0 + ")
    )


def _partner_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(render, "_touched", lambda before, index, moves: [])


def _first_of_the_old(patch: pytest.MonkeyPatch) -> None:
    whole = Refresher.whole
    patch.setattr(Refresher, "whole", lambda self, mode=Mode.AFTER: whole(self, Mode.BEFORE))


BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "window functions": (_partitions_untouched, "ranked"),
    "top of a group": (_partitions_untouched, "groups_ranked"),
    "in": (_partner_forgotten, "is_in"),
    "not exists": (_partner_forgotten, "not_exist"),
    "value of a subquery": (_partner_forgotten, "of_its_group"),
    "in under or": (_partner_forgotten, "either_in"),
    "except": (_counted_once, "excepted"),
    "grouping sets": (_counted_once, "rolled_up"),
    "limit": (_first_of_the_old, "most"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_seeded_bug_is_seen(small: stepwell.Database, bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, name = BUGS[bug]
    assert is_seen(small, name, EVERY[name], seed, monkeypatch), bug
