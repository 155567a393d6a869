"""Bugs seeded on purpose, one in every rule: each gives wrong rows, or stops the epoch, and VERIFY reports it.

A view that has merely stopped does not count as seen. The same check without a seed passes. Bugs that damage a state
alone leave the rows right for a while: VERIFY reports these as well, and REPAIR mends them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

import stepwell
from law import TABLES
from stepwell.algebra import expressions
from stepwell.algebra.expressions import FALSE, number
from stepwell.algebra.nodes import Filter, Fresh, Item, Limit, Moment, Project, passed, relations_of
from stepwell.engine.definitions import load
from stepwell.engine.maintain import refreshing
from stepwell.engine.write import results
from stepwell.model.files import NewFile, Store
from stepwell.model.relations import Relation, RelationKind
from stepwell.plan import choices
from stepwell.rules import deltas, fold, groups, identity, partitions, programs, recompute, row_changes, touched_groups
from stepwell.rules.blocks import GroupBlock, RowBlock
from stepwell.rules.groups import Partials
from stepwell.rules.programs import Occasion
from views import answer, creates, wrong_views

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
    "BEGIN; TRUNCATE t; TRUNCATE u; INSERT INTO t (a, g, s, xs) VALUES (1, 1, 'x', array(1)), (2, 1, 'y', array(2, 3)),"
    " (3, 2, 'x', NULL), (2, 2, 'z', array(5)), (5, 1, 'q', array(6)); INSERT INTO u VALUES (1, 'x'), (2, 'y'); COMMIT"
)


Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path_factory.mktemp("seeded")) as db:
        db.sql(TABLES)
        yield db


def seen(db: stepwell.Database, names: Sequence[str], seed: Callable[[Patch], None] | None) -> set[str]:
    """The views that, with a seed, differ from their query after a change, or of which an epoch says that it is wrong."""
    db.sql(ROWS)
    db.sql(creates({name: QUERIES[name] for name in names}))
    found: set[str] = set()
    try:
        with pytest.MonkeyPatch.context() as patch:
            if seed is not None:
                seed(patch)
            for statement in STATEMENTS:
                found |= _shown(db, [name for name in names if name not in found], statement)
                if found == set(names):
                    break
        return found
    finally:
        if db.in_transaction:
            db.sql("ROLLBACK")
        db.sql("; ".join(f"DROP MATERIALIZED VIEW {name}" for name in names))


def _shown(db: stepwell.Database, names: Sequence[str], statement: str) -> set[str]:
    """Those of some views that a statement shows to be wrong."""
    stopped = _stopped(db, names, statement)
    going = [name for name in names if name not in stopped]
    assert {_state(db, name) for name in going} <= {"running"}, "a view that has stopped shows nothing"
    wrong = {each.split(":")[0] for each in wrong_views(db, {name: QUERIES[name] for name in going})}
    for name in wrong:
        assert answer(db, f"VERIFY {name}")[0][2] is False, "VERIFY must see what the comparison sees"
    return stopped | wrong


def _stopped(db: stepwell.Database, names: Sequence[str], statement: str) -> set[str]:
    """The views that an epoch of a statement says it is wrong about; each is paused, and it goes on without them."""
    try:
        db.sql(statement)
    except stepwell.InternalError as error:
        blamed = {name for name in names if f'"{name}"' in error.message}
        assert blamed, "an epoch that stops says which view it is wrong about"
        return blamed.union(*(_stopped(db, names, f"ALTER MATERIALIZED VIEW {name} PAUSE") for name in blamed))
    return set()


def _state(db: stepwell.Database, name: str) -> str:
    return str(dict(answer(db, "SELECT name, state FROM stepwell.views"))[name])


# -- the seeds --------------------------------------------------------------------------------------------------------


def _signs_lost(patch: Patch) -> None:
    """Every row of a change counts as new."""
    right = row_changes.delta_of

    def wrong(rows: RowBlock, occasion: Occasion) -> identity.Identified:
        found = right(rows, occasion)
        sign = occasion.fresh.column("BIGINT")
        tree = Project((*passed(found.tree.output), Item(sign, number(1))), found.tree)
        return identity.Identified(tree, found.id, sign)

    patch.setattr(row_changes, "delta_of", wrong)


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
    right = groups.stored_states

    def wrong(group: GroupBlock, fresh: Fresh) -> Partials:
        found = right(group, fresh)
        return dataclasses.replace(found, tree=Filter(FALSE, found.tree))

    patch.setattr(fold, "stored_states", wrong)


def _extremes_undone(patch: Patch) -> None:
    for module in (choices, fold):
        patch.setattr(module, "is_invertible", lambda group: True)


def _some_keys_untouched(patch: Patch) -> None:
    right = programs.touched_keys
    for module in (touched_groups, partitions):
        patch.setattr(module, "touched_keys", lambda *given: Limit(1, 0, right(*given)))


def _recomputed_from_before(patch: Patch) -> None:
    right = row_changes.rows_at
    patch.setattr(recompute, "rows_at", lambda rows, moment, occasion: right(rows, Moment.BEFORE, occasion))


BUGS: dict[Callable[[Patch], None], tuple[str, ...]] = {
    _signs_lost: ("filtered",),
    _places_lost: ("unnested", "united"),
    _after_for_before: ("self_join",),
    _partner_forgotten: ("left_join", "either_in"),
    _missing_forgotten: ("full_join",),
    _what_is_kept_forgotten: ("folded", "distinct_rows", "excepted"),
    _extremes_undone: ("extremes",),
    _some_keys_untouched: ("recomputed", "ranked"),
    _recomputed_from_before: ("limited",),
}
"""Each seed, and the views that must show it; together they are every view, and so every rule."""


@pytest.mark.parametrize("seed", BUGS, ids=lambda seed: seed.__name__.replace("_", " ").strip())
def test_a_seeded_bug_is_seen(shared: stepwell.Database, seed: Callable[[Patch], None]) -> None:
    assert seen(shared, BUGS[seed], seed) == set(BUGS[seed])


def test_without_a_seed_nothing_is_seen(shared: stepwell.Database) -> None:
    assert {name for names in BUGS.values() for name in names} == set(QUERIES)
    assert seen(shared, list(QUERIES), None) == set()


# -- states alone -----------------------------------------------------------------------------------------------------

Damage = Callable[[pa.Table], pa.Table]


def _changed(column: str, change: Callable[[Any], Any]) -> Damage:
    """The states that a change writes, with other values in a column."""

    def damaged(batch: pa.Table) -> pa.Table:
        index = batch.schema.get_field_index(column)
        values = [change(value) for value in batch.column(column).to_pylist()]
        return batch.set_column(index, batch.schema.field(index), pa.array(values, batch.schema.field(index).type))

    return damaged


def _lost(batch: pa.Table) -> pa.Table:
    return batch.slice(0, 0)


STATES: dict[str, tuple[str, Damage, int]] = {
    "the rows of a fold are counted wrongly": (
        "SELECT g, sum(a) AS sa FROM t GROUP BY g", _changed("_sw_n", lambda n: n + 1), 1),
    "the average of 2 and another 2": (
        "SELECT s, avg(2) AS two, count(a) > 0 AS some FROM t GROUP BY s", _lost, 1),
    "a minimum that only a condition looks at": (
        "SELECT g, min(a) < 10 AS small, max(a) AS hi FROM t GROUP BY g", _changed("_sw_p0_0", lambda n: n + 1), 1),
    "a first row that is not shown": (
        "SELECT g, first(a) IS NULL AS empty FROM t GROUP BY g",
        _changed("_sw_p0_0", lambda held: {**held, "i": held["i"] + 1}), 1),
    "groups that HAVING hides": ("SELECT g, sum(a) AS sa FROM t GROUP BY g HAVING count(*) > 9", _lost, 1),
    "DISTINCT": ("SELECT DISTINCT a FROM t", _changed("_sw_n", lambda n: n + 1), 1),
    "EXCEPT": ("SELECT a FROM t EXCEPT SELECT a FROM u WHERE a < 0", _changed("_sw_n", lambda n: n + 1), 1),
    "a hidden block": (
        "SELECT sum(n) > 0 AS some FROM (SELECT g, count(*) AS n, avg(2) AS two FROM t GROUP BY g) AS q",
        _changed("_sw_n", lambda n: n + 1), 2),
    "all rows as one group": ("SELECT max(a) > 0 AS some FROM t", _changed("_sw_p0_0", lambda n: n + 1), 1),
}  # fmt: skip
"""A query, what becomes of the states that an INSERT writes, and how many groups VERIFY finds at least."""


def test_wrong_states_are_seen_while_the_rows_are_right(shared: stepwell.Database) -> None:
    db, queries = shared, {f"kept{index}": query for index, (query, _, _) in enumerate(STATES.values())}
    damages = {f"kept{index}": damage for index, (_, damage, _) in enumerate(STATES.values())}
    db.sql(ROWS)
    db.sql(creates(queries))
    known = load(db._runtime)
    states = {
        part.id: damages[view.name] for view in known.by_id.values() if view.name in queries
        for part in known.parts_of(view) if part.kind == RelationKind.STATE
    }  # fmt: skip

    right = results.write_batch_as

    def wrong(runtime: Any, relation: Relation, store: Store, batch: pa.Table) -> list[NewFile]:
        damage = states.get(relation.id, lambda right: right)
        return right(runtime, relation, store, damage(batch))

    try:
        db.sql(STATEMENTS[0])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(refreshing, "write_batch_as", wrong)
            db.sql("INSERT INTO t (a, g, s) VALUES (2, 2, 'x'), (1, 1, 'x')")
        assert wrong_views(db, queries) == []
        for (what, (_, _, groups)), name in zip(STATES.items(), queries, strict=True):
            result = db.sql(f"VERIFY {name} REPAIR")
            assert isinstance(result, stepwell.Rows)
            ((_, _, is_ok, _, missing, unexpected, found),) = result.tuples()
            assert (is_ok, missing, unexpected) == (False, 0, 0), what
            assert found >= groups, what
            assert "state of" in result.notes[0], what
        db.sql("DELETE FROM t WHERE g = 2; UPDATE t SET a = a + 1")
        assert wrong_views(db, queries) == []
        assert [name for name in queries if not answer(db, f"VERIFY {name}")[0][2]] == []
    finally:
        db.sql("; ".join(f"DROP MATERIALIZED VIEW {name}" for name in queries))
        db.sql("TRUNCATE t; TRUNCATE u")
