"""The foundation: relations, epochs, files, acknowledgements."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "control",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("open_epoch", sa.BigInteger, nullable=False),
        sa.Column("readable_epoch", sa.BigInteger, nullable=False),
        sa.Column("last_position", sa.BigInteger, nullable=False),
        sa.Column("forgotten_position", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "relations",
        sa.Column("id", _Id, primary_key=True),
        sa.Column("namespace", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("name_key", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("definition", sa.JSON, nullable=False),
        sa.Column("created_epoch", sa.BigInteger, nullable=False),
        sa.Column("dropped_epoch", sa.BigInteger),
        sa.Column("dropped_at", sa.BigInteger),
        sa.Column("next_row_id", sa.BigInteger, nullable=False),
        sa.Column("published_epoch", sa.BigInteger),
        sa.Column("publication", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "schemas",
        sa.Column("id", _Id, primary_key=True),
        sa.Column("relation_id", sa.BigInteger, nullable=False),
        sa.Column("from_epoch", sa.BigInteger, nullable=False),
        sa.Column("columns", sa.JSON, nullable=False),
    )
    op.create_index("ix_schemas_relation_id", "schemas", ["relation_id"])
    op.create_table(
        "epochs",
        sa.Column("epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("opened_at", sa.BigInteger, nullable=False),
        sa.Column("aligned_at", sa.BigInteger),
        sa.Column("committed_at", sa.BigInteger),
        sa.Column("readable_at", sa.BigInteger),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.Column("inserted", sa.BigInteger, nullable=False),
        sa.Column("retracted", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_epochs_state", "epochs", ["state"])
    op.create_index("ix_epochs_readable_at", "epochs", ["readable_at"])
    op.create_table(
        "files",
        sa.Column("id", _Id, primary_key=True),
        sa.Column("relation_id", sa.BigInteger, nullable=False),
        sa.Column("store", sa.String, nullable=False),
        sa.Column("path", sa.String, nullable=False),
        sa.Column("from_epoch", sa.BigInteger, nullable=False),
        sa.Column("last_epoch", sa.BigInteger, nullable=False),
        sa.Column("until_epoch", sa.BigInteger),
        sa.Column("logged", sa.Boolean, nullable=False),
        sa.Column("superseded", sa.Boolean, nullable=False),
        sa.Column("published", sa.Boolean, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("retracted", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("time_min", sa.BigInteger),
        sa.Column("time_max", sa.BigInteger),
        sa.Column("key_range", sa.JSON),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "acknowledgements",
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("chunks", sa.JSON),
        sa.Column("keys", sa.LargeBinary),
    )
    op.create_table(
        "lease",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("term", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.String),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "barrier_requests",
        sa.Column("id", _Id, primary_key=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("requested_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_barrier_requests_epoch", "barrier_requests", ["epoch"])
    op.create_table(
        "pins",
        sa.Column("id", _Id, primary_key=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "settings",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.String, nullable=False),
    )
    op.create_index(
        "relations_name",
        "relations",
        ["namespace", "name_key"],
        unique=True,
        sqlite_where=sa.text("dropped_epoch IS NULL"),
        postgresql_where=sa.text("dropped_epoch IS NULL"),
    )
    op.create_index("files_content", "files", ["relation_id", "superseded", "until_epoch"])
    op.create_index("files_epoch", "files", ["from_epoch"])
    op.create_index("acknowledgements_relation", "acknowledgements", ["relation_id", "position"])
    op.execute("INSERT INTO control VALUES (1, 1, 0, 0, 0)")
    op.execute("INSERT INTO lease VALUES (1, 0, NULL, 0)")
    op.execute(
        "INSERT INTO epochs (epoch, state, opened_at, changed, inserted, retracted) VALUES (1, 'open', 0, 0, 0, 0)"
    )
