"""Catalogs of older versions, brought to this one with all that they know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from stepwell.catalog import lives, migrate, open_catalog, relations, watermarks
from stepwell.model.epochs import Epoch
from stepwell.model.lifecycle import (
    Building,
    ByParent,
    ByUser,
    Failed,
    Life,
    Owed,
    Paused,
    Serving,
    Unpopulated,
)
from stepwell.model.relations import Definition
from stepwell.model.views import RelationId
from stepwell.model.watermarks import MarkRecord


def old_catalog(path: Path, revision: str) -> sa.Engine:
    """A catalog as some version before this one made it."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    scripts = ScriptDirectory.from_config(config)

    def upgrade(current: object, _: MigrationContext) -> object:
        return scripts._upgrade_revs(revision, current)  # type: ignore[arg-type]  # alembic's own recipe, loosely typed

    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection, EnvironmentContext(config, scripts, fn=upgrade) as environment:
        environment.configure(connection=connection)
        environment.run_migrations()
    return engine


def add_relation(connection: sa.Connection, name: str, parents: list[int], *, until: int | None = None) -> int:
    """A relation of an old catalog, created in epoch 3 and dropped in another or not at all."""
    view = {"inputs": [[parent, ["a"]] for parent in parents], "parents": parents, "text": name, "bound": name}
    rest: dict[str, object] = {"policy": "auto", "plan": {}, "state": None, "blocks": [], "owner": None}
    definition: dict[str, object] = {
        "key": [],
        "chunking": None,
        "watermark": None,
        "view": {**view, **rest} if parents else None,
    }
    values = {
        "name": name,
        "kind": "materialized view" if parents else "table",
        "definition": json.dumps(definition),
        "until": until,
    }
    return int(
        connection.execute(
            sa.text(
                "INSERT INTO relations (namespace, name, name_key, kind, definition, created_epoch, dropped_epoch,"
                " next_row_id, publication) VALUES ('main', :name, :name, :kind, :definition, 3, :until, 1, 0)"
                " RETURNING id"
            ),
            values,
        ).scalar_one()
    )


ENCODED: list[tuple[str, int, str | None, Life]] = [
    ("running", -1, None, Building()),
    ("error", -1, "by zero", Building(failed="by zero")),
    ("paused", -1, "paused by a user", Unpopulated()),
    ("paused", -1, '"parent" does not run', Building()),
    ("running", 6, None, Serving(Epoch(6))),
    ("running", 0, None, Serving(Epoch(0))),
    ("paused", 6, "paused by a user", Serving(Epoch(6), Paused(ByUser()))),
    ("paused", 6, '"parent" does not run', Serving(Epoch(6), Paused(ByParent(RelationId(2))))),
    ("paused", 6, '"renamed since" does not run', Serving(Epoch(6), Paused(ByParent(RelationId(2))))),
    ("error", 6, "by zero", Serving(Epoch(6), Failed("by zero"))),
    ("running", -8, "resumed", Serving(Epoch(6), owed=Owed.CATCH_UP)),
    ("running", -8, "repair", Serving(Epoch(6), owed=Owed.REWRITE)),
    ("running", -8, None, Serving(Epoch(6), owed=Owed.RECOMPUTE)),
    ("running", -2, None, Serving(Epoch(0), owed=Owed.RECOMPUTE)),
    ("paused", -8, "paused by a user", Serving(Epoch(6), Paused(ByUser()), Owed.RECOMPUTE)),
    ("error", -8, "by zero", Serving(Epoch(6), Failed("by zero"), Owed.RECOMPUTE)),
]


@pytest.mark.parametrize(("state", "reflects", "reason", "life"), ENCODED)
def test_every_life_that_was_a_sign_and_a_sentence_becomes_a_value(
    tmp_path: Path, state: str, reflects: int, reason: str | None, life: Life
) -> None:
    path = tmp_path / "catalog.db"
    engine = old_catalog(path, "0006")
    with engine.begin() as connection:
        table = add_relation(connection, "t", [])
        parent = add_relation(connection, "parent", [table])
        view = add_relation(connection, "v", [table, parent])
        gone = add_relation(connection, "gone", [table], until=5)
        add = sa.text("INSERT INTO views VALUES (:id, :state, :reflects, :reason)")
        for row in (
            {"id": parent, "state": "paused", "reflects": 6, "reason": "paused by a user"},
            {"id": view, "state": state, "reflects": reflects, "reason": reason},
            {"id": gone, "state": "running", "reflects": 4, "reason": None},
        ):
            connection.execute(add, row)
    engine.dispose()
    catalog = open_catalog(f"sqlite:///{path}")
    with catalog.read() as tx:
        assert lives.get_all(tx) == {parent: Serving(Epoch(6), Paused(ByUser())), view: life}
        assert set(lives.get_all_at(tx, Epoch(4))) == {parent, view, gone}
        assert lives.get_all_at(tx, Epoch(2)) == {}
    catalog.close()


def test_definitions_and_watermarks_are_in_force_from_where_they_were_known(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    engine = old_catalog(path, "0006")
    with engine.begin() as connection:
        table = add_relation(connection, "t", [])
        gone = add_relation(connection, "gone", [table], until=5)
        never = add_relation(connection, "never", [table], until=3)
        connection.execute(sa.text("DELETE FROM epochs"))
        for epoch, state in ((5, "readable"), (6, "committed"), (7, "aligned"), (8, "open")):
            connection.execute(sa.text(f"INSERT INTO epochs VALUES ({epoch}, '{state}', 0, 0, 0, 0, 0, 0, 0)"))
        connection.execute(sa.text("UPDATE control SET open_epoch = 8, readable_epoch = 5"))
        connection.execute(sa.text(f"INSERT INTO watermarks VALUES ({table}, 10, 9, 50, 1, false, 2, 3, 4, 5)"))
        connection.execute(
            sa.text(
                "INSERT INTO schemas (relation_id, from_epoch, columns)"
                """ SELECT id, 3, '[{"name": "a", "type": "INT", "nullable": true}]' FROM relations"""
            )
        )
    engine.dispose()
    catalog = open_catalog(f"sqlite:///{path}")
    with catalog.read() as tx:
        assert [each.id for each in relations.get_all(tx)] == [table]
        assert [each.id for each in relations.get_all(tx, Epoch(4))] == [table, gone]
        assert [each.id for each in relations.get_all(tx, Epoch(3))] == [table, gone], f"{never} was in no epoch"
        assert relations.get(tx, "t").definition == Definition()
        record = MarkRecord(table, 10, 9, 50, 1, False, 2, 3, 4, 5)
        assert watermarks.get_all_at(tx, Epoch(5)) == {}, "where it stood then was not kept"
        assert watermarks.get_all_at(tx, Epoch(6)) == watermarks.get_all_at(tx, Epoch(7)) == {table: record}
        assert watermarks.get_all(tx) == {table: record}
    catalog.close()
