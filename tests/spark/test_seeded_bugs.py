"""Bugs seeded on purpose, one in every rule: each gives wrong rows, or stops the epoch, and VERIFY reports it.

A view that has merely stopped does not count as seen. The same check without a seed passes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import stepwell
from law import TABLES
from stepwell.algebra import expressions
from stepwell.algebra.nodes import Moment, relations_of
from stepwell.engine.maintain.maintenance import Refresher
from stepwell.plan import groups, render
from stepwell.rules import deltas, identity
from views import answer, wrong_views

QUERIES = {
    "filtered": "SELECT a, b, s FROM t WHERE a > 1",
    "unnested": "SELECT a, explode(xs) AS x FROM t",
    "united": "SELECT a, s FROM t UNION ALL SELECT a, s FROM t WHERE a > 1",
    "self_join": "SELECT x.a, y.s FROM t AS x JOIN t AS y ON x.a = y.g",
    "left_join": "SELECT t.a, t.s, u.c FROM t LEFT JOIN u ON t.a = u.a",
    "full_join": "SELECT t.a, t.s, u.c FROM t FULL JOIN u ON t.a = u.a",
    "either_in": "SELECT a, g FROM t WHERE g = 0 OR a IN (SELECT a FROM u)",
    "folded": "SELECT g, count(*) AS n, sum(a) AS sa FROM t GROUP BY g",
    "extremes": "SELECT g, min(a) AS lo, max(s) AS hi FROM t GROUP BY g",
    "recomputed": "SELECT g, count(DISTINCT a) AS n FROM t GROUP BY g",
    "distinct_rows": "SELECT DISTINCT a, s FROM t",
    "excepted": "SELECT a FROM t EXCEPT SELECT a FROM u",
    "ranked": "SELECT a, g, s, rank() OVER (PARTITION BY g ORDER BY a) AS r FROM t",
    "limited": "SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 1",
}

STATEMENTS = (
    "INSERT INTO t (a, g, s, xs) VALUES (2, 2, 'w', array(1, 1)), (1, 1, 'x', array(4)), (3, 3, 'w', array())",
    "INSERT INTO u VALUES (3, 'x'), (5, 'z')",
    "BEGIN; UPDATE t SET a = a + 1 WHERE g = 1 OR a = 3; DELETE FROM u WHERE a = 2; COMMIT",
    "DELETE FROM t WHERE s IN ('q', 'w')",
)

ROWS = (
    "INSERT INTO t (a, g, s, xs) VALUES (1, 1, 'x', array(1)), (2, 1, 'y', array(2, 3)),"
    " (3, 2, 'x', NULL), (2, 2, 'z', array(5)), (5, 1, 'q', array(6)); INSERT INTO u VALUES (1, 'x'), (2, 'y')"
)


Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path_factory.mktemp("seeded")) as db:
        db.sql(TABLES)
        yield db


def seen(db: stepwell.Database, name: str, seed: Callable[[Patch], None] | None) -> bool:
    """Whether a view with a seed differs from its query after a change, or an epoch says that stepwell is wrong."""
    db.sql(ROWS)
    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}")
    try:
        with pytest.MonkeyPatch.context() as patch:
            if seed is not None:
                seed(patch)
            return any(_shows(db, name, statement) for statement in STATEMENTS)
    finally:
        if db.in_transaction:
            db.sql("ROLLBACK")
        db.sql(f"DROP MATERIALIZED VIEW {name}; TRUNCATE t; TRUNCATE u")


def _shows(db: stepwell.Database, name: str, statement: str) -> bool:
    try:
        db.sql(statement)
    except stepwell.InternalError:
        return True
    state = dict(answer(db, "SELECT name, state FROM stepwell.views"))[name]
    assert state == "running", "a view that has stopped shows nothing"
    if not wrong_views(db, {name: QUERIES[name]}):
        return False
    assert answer(db, f"VERIFY {name}")[0][2] is False, "VERIFY must see what the comparison sees"
    return True


# -- the seeds --------------------------------------------------------------------------------------------------------


def _signs_lost(patch: Patch) -> None:
    """Every row of a change counts as new."""
    right = render.printed_rows
    patch.setattr(
        render, "printed_rows", lambda rows, found: right(rows, found).replace(" AS `_diff`", " * 0 + 1 AS `_diff`")
    )


def _places_lost(patch: Patch) -> None:
    """All elements of a row have one identity."""
    right = expressions.identity
    patch.setattr(identity, "identity", lambda *parts: right(parts[0], parts[0]))


def _after_for_before(patch: Patch) -> None:
    right = deltas.Deltas._at
    patch.setattr(deltas.Deltas, "_at", lambda self, node, moment: right(self, node, Moment.AFTER))


def _partner_forgotten(patch: Patch) -> None:
    right = deltas.Deltas._outer
    patch.setattr(
        deltas.Deltas, "_outer", lambda self, join: right(dataclasses.replace(self, changed=_left(self, join)), join)
    )


def _left(deltas: deltas.Deltas, join: Any) -> frozenset[int]:
    return frozenset(deltas.changed) & frozenset(relations_of(join.left))


def _missing_forgotten(patch: Patch) -> None:
    patch.setattr(deltas.Deltas, "_missing", lambda self, join: [])


def _what_is_kept_forgotten(patch: Patch) -> None:
    right = groups.Folding.merged

    def wrong(self: groups.Folding, partial: str, state: str, *, losing: bool = False) -> str:
        return right(self, partial, f"(SELECT * FROM {state} WHERE false)", losing=losing)

    patch.setattr(groups.Folding, "merged", wrong)


def _extremes_undone(patch: Patch) -> None:
    patch.setattr(groups.Folding, "is_invertible", property(lambda self: True))


def _some_keys_untouched(patch: Patch) -> None:
    right = Refresher._keys_touched
    patch.setattr(Refresher, "_keys_touched", lambda self, block: f"SELECT * FROM ({right(self, block)}) LIMIT 1")


def _recomputed_from_before(patch: Patch) -> None:
    right = Refresher.whole
    patch.setattr(Refresher, "whole", lambda self, moment=Moment.AFTER: right(self, Moment.BEFORE))


BUGS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "apply": (_signs_lost, "filtered"),
    "unnest": (_places_lost, "unnested"),
    "union all": (_places_lost, "united"),
    "join": (_after_for_before, "self_join"),
    "left join": (_partner_forgotten, "left_join"),
    "full join": (_missing_forgotten, "full_join"),
    "mark": (_partner_forgotten, "either_in"),
    "fold": (_what_is_kept_forgotten, "folded"),
    "mergeable": (_extremes_undone, "extremes"),
    "touched groups": (_some_keys_untouched, "recomputed"),
    "distinct": (_what_is_kept_forgotten, "distinct_rows"),
    "except": (_what_is_kept_forgotten, "excepted"),
    "window functions": (_some_keys_untouched, "ranked"),
    "limit": (_recomputed_from_before, "limited"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_seeded_bug_is_seen(shared: stepwell.Database, bug: str) -> None:
    seed, name = BUGS[bug]
    assert seen(shared, name, seed), bug


@pytest.mark.parametrize("name", ["self_join", "full_join", "extremes", "ranked"])
def test_without_a_seed_nothing_is_seen(shared: stepwell.Database, name: str) -> None:
    assert not seen(shared, name, None)
