"""An epoch is maintained and read by what was in force at it, whatever is defined between its close and its maintenance."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import stepwell
from stepwell.catalog import control, files, relations, views
from stepwell.engine.define.ddl import define
from stepwell.engine.define.runs import create_all
from stepwell.engine.maintain import maintenance
from stepwell.engine.maintain.planning import Prepared
from stepwell.engine.maintain.workspace import Workspace
from stepwell.model.epochs import Epoch
from stepwell.model.errors import EpochNotRetainedError, InternalError, StepwellWarning, WarehouseError
from stepwell.model.jobs import Job, JobId
from stepwell.plan import content_at
from stepwell.plan.epoch_plan import ViewTask
from stepwell.sql import parse
from stepwell.sql.statements import AlterView, CreateView, DropRelations
from views import answer, wrong_views

GROUPS = "SELECT g, count(*) AS n, sum(a) AS s FROM t GROUP BY g"
OTHER_GROUPS = "SELECT g, sum(a + 1) AS s, max(a) AS high FROM t GROUP BY g"
JOINED = "SELECT t.a, p.s FROM t JOIN (SELECT g, sum(a) AS s FROM t GROUP BY g) AS p ON p.g = t.g"

Meanwhile = Callable[..., None]


@pytest.fixture
def meanwhile(db: stepwell.Database, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Lets statements come the next time that an epoch passes a point, which is right after its close."""
    db.sql("CREATE TABLE t (g INT, a INT)")
    db.sql("INSERT INTO t VALUES (1, 10), (1, 20), (2, 30)")
    said: list[str] = []
    waits: list[tuple[str, Exception | None]] = []

    class Nobody:
        """Who does not wait, since a barrier is under way."""

        def wait_written(self, epoch: Epoch) -> None: ...

        def wait_job(self, id_: JobId, *, cancels: bool = True) -> Job:
            raise AssertionError("it is small")

    nobody_waits = Nobody()

    def reached(name: str) -> None:
        if said and waits and name == waits[0][0]:
            statements, said[:] = list(said), []
            for text in statements:
                (statement,) = parse(text)
                if isinstance(statement.body, CreateView):
                    create_all(db._runtime, [statement], nobody_waits)
                else:
                    assert isinstance(statement.body, AlterView | DropRelations)
                    define(db._runtime, statement.body, lambda _: None)
            if (error := waits.pop()[1]) is not None:
                raise error

    def say(*statements: str, at: str = "barrier.aligned", then: Exception | None = None) -> None:
        said.extend(statements)
        waits.append((at, then))

    monkeypatch.setattr("stepwell.engine.lead.barrier.failpoint", reached)
    return say


def rows(db: stepwell.Database, text: str) -> list[tuple[object, ...]]:
    return sorted(answer(db, text))


@pytest.mark.parametrize("retried", [False, True])
@pytest.mark.parametrize(
    ("query", "other"),
    [(GROUPS, OTHER_GROUPS), (JOINED, GROUPS.replace("g,", "g AS a,")), (GROUPS, "SELECT g, 'many' AS n FROM t")],
)
def test_a_view_that_is_replaced_meanwhile_is_maintained_as_it_was(
    db: stepwell.Database, meanwhile: Meanwhile, query: str, other: str, retried: bool
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    replace = f"CREATE OR REPLACE MATERIALIZED VIEW v AS {other}"
    with db._runtime.catalog.read() as tx:
        relation = relations.get(tx, "v")
    if retried:
        meanwhile(replace, at="barrier.commit.before", then=OSError("the disk is away for a moment"))
        with pytest.raises(WarehouseError, match="cannot be made readable yet"):
            db.sql("INSERT INTO t VALUES (2, 40)")
    else:
        meanwhile(replace)
        db.sql("INSERT INTO t VALUES (2, 40)")
    db.flush()
    epoch = Epoch(4)  # those before made the table, filled it and made the view
    db.sql("INSERT INTO t VALUES (3, 50)")
    assert wrong_views(db, {"v": other}) == []
    expected = rows(db, query.replace("FROM t ", f"FROM t VERSION AS OF {epoch} "))
    if "many" in other:  # a column of another type is another view of the same name
        with pytest.raises(EpochNotRetainedError, match=f"did not exist at epoch {epoch}"):
            db.sql(f"SELECT * FROM v VERSION AS OF {epoch}")
        with db._runtime.catalog.read() as tx:
            assert relations.by_id(tx, relation.id, epoch) == relation
            assert content_at(files.content(tx, relation.id, epoch), epoch).count == len(expected)
    else:
        assert rows(db, f"SELECT * FROM v VERSION AS OF {epoch}") == expected


def test_a_replacement_that_fails_is_computed_anew_when_it_is_resumed(
    db: stepwell.Database, meanwhile: Meanwhile
) -> None:
    """Its rows are still those of the query before, so that following what it has missed would not do."""
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT g, a DIV 1 AS x FROM t")
    meanwhile("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT g, 100 DIV a AS x, a FROM t")
    db.sql("INSERT INTO t VALUES (2, 0)")
    db._leader.wait_readable(Epoch(5))
    with pytest.warns(StepwellWarning, match='"v" has failed and shows epoch 4'):
        assert len(answer(db, "SELECT x FROM v")) == 4
    db.sql("DELETE FROM t WHERE a = 0")
    db.sql("ALTER MATERIALIZED VIEW v RESUME")
    assert wrong_views(db, {"v": "SELECT g, 100 DIV a, a FROM t"}) == []


def test_a_view_that_is_paused_meanwhile_follows_that_epoch_and_no_other(
    db: stepwell.Database, meanwhile: Meanwhile
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {GROUPS}; CREATE MATERIALIZED VIEW w AS SELECT sum(n) AS n FROM v")
    meanwhile("ALTER MATERIALIZED VIEW v PAUSE")
    db.sql("INSERT INTO t VALUES (2, 40)")
    epoch = db.epoch
    db.sql("INSERT INTO t VALUES (2, 50)")
    shown = {name: (state, reflects) for name, state, reflects, _ in answer(db, "SHOW MATERIALIZED VIEWS")}
    assert shown["v"] == ("paused", epoch)
    assert shown["w"][0] == "paused"
    with pytest.warns(StepwellWarning, match=f'"v" is paused and shows epoch {epoch}: paused by a user'):
        assert rows(db, "SELECT * FROM v") == [(1, 2, 30), (2, 2, 70)]
    db.sql("ALTER MATERIALIZED VIEW v RESUME")
    assert wrong_views(db, {"v": GROUPS, "w": "SELECT sum(n) FROM v"}) == []


def test_a_view_that_is_altered_meanwhile_keeps_its_policy_for_that_epoch(
    db: stepwell.Database, meanwhile: Meanwhile
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {GROUPS}")
    meanwhile("ALTER MATERIALIZED VIEW v SET (refresh_policy = 'full')")
    db.sql("INSERT INTO t VALUES (2, 40)")
    epoch = db.epoch
    db.sql("INSERT INTO t VALUES (2, 50)")
    rules = dict(answer(db, f"SELECT epoch, rule FROM stepwell.refreshes WHERE epoch >= {epoch}"))
    assert rules.pop(epoch) != "recompute and diff"
    assert set(rules.values()) == {"recompute and diff"}


def test_what_is_dropped_meanwhile_is_maintained_at_its_last_barrier(
    db: stepwell.Database, meanwhile: Meanwhile
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {GROUPS}; CREATE MATERIALIZED VIEW w AS SELECT sum(n) AS n FROM v")
    with db._runtime.catalog.read() as tx:
        table, view, child = (relations.get(tx, name) for name in ("t", "v", "w"))
    meanwhile("DROP TABLE t CASCADE")
    db.sql("INSERT INTO t VALUES (3, 40)")
    epoch = db.epoch
    with db._runtime.catalog.read() as tx:
        for relation, count in ((table, 4), (view, 3), (child, 1)):
            assert relations.by_id(tx, relation.id) is None
            assert relations.by_id(tx, relation.id, epoch) == relation
            assert content_at(files.content(tx, relation.id, epoch), epoch).count == count
        last = views.last_refresh(tx, child.id)
        assert last is not None
        assert last.epoch == epoch
    db.sql("CREATE TABLE t (b INT); INSERT INTO t VALUES (1)")
    assert rows(db, "SELECT * FROM t") == [(1,)]


def test_a_plain_view_is_read_at_an_epoch_by_the_query_it_had_then(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a INT); CREATE TABLE u (b INT); INSERT INTO t VALUES (1); INSERT INTO u VALUES (2)")
    db.sql("CREATE VIEW p AS SELECT a FROM t")
    epoch = db.epoch
    db.sql("CREATE OR REPLACE VIEW p AS SELECT b FROM u")
    db.sql("DROP TABLE t")
    assert rows(db, "SELECT * FROM p") == [(2,)]
    assert rows(db, f"SELECT * FROM p VERSION AS OF {epoch}") == [(1,)]


def test_an_epoch_that_stepwell_is_wrong_about_goes_on_without_the_view_that_is_paused_since(
    db: stepwell.Database, meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {GROUPS}; CREATE MATERIALIZED VIEW w AS SELECT sum(a) AS s FROM t")
    right = maintenance.refresh_view

    def wrong(workspace: Workspace, ready: Prepared, task: ViewTask, epoch: Epoch) -> object:
        if ready.definitions.by_id[task.view].name == "v":
            raise AssertionError("a rule is wrong")
        return right(workspace, ready, task, epoch)

    before = db.epoch
    monkeypatch.setattr(maintenance, "refresh_view", wrong)
    with pytest.raises(InternalError, match='wrong about view "v"'):
        db.sql("INSERT INTO t VALUES (2, 40)")
    db.sql("ALTER MATERIALIZED VIEW v PAUSE")
    monkeypatch.setattr(maintenance, "refresh_view", right)
    assert wrong_views(db, {"w": "SELECT sum(a) FROM t"}) == []
    shown = {name: (state, reflects) for name, state, reflects, _ in answer(db, "SHOW MATERIALIZED VIEWS")}
    assert shown["v"] == ("paused", before)
    db.sql("ALTER MATERIALIZED VIEW v RESUME")
    assert wrong_views(db, {"v": GROUPS}) == []
    with db._runtime.catalog.read() as tx:
        assert control.look(tx).readable_epoch > before + 1
