"""Definitions and watermarks in ranges of epochs: an epoch is maintained and read by what was in force at it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_MARK = "mark, incoming, requested, seen_at, idle, rows_ahead, null_times, emitted_epoch, emitted_at"


def upgrade() -> None:
    op.create_table(
        "definitions",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("from_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("until_epoch", sa.BigInteger),
        sa.Column("definition", sa.JSON, nullable=False),
    )
    op.execute(
        "INSERT INTO definitions (relation_id, from_epoch, until_epoch, definition)"
        " SELECT id, created_epoch, dropped_epoch, definition FROM relations"
        " WHERE dropped_epoch IS NULL OR dropped_epoch > created_epoch"
    )
    op.drop_column("relations", "definition")
    op.rename_table("watermarks", "present_watermarks")
    op.create_table(
        "watermarks",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("from_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("until_epoch", sa.BigInteger),
        sa.Column("mark", sa.BigInteger, nullable=False),
        sa.Column("incoming", sa.BigInteger, nullable=False),
        sa.Column("requested", sa.BigInteger),
        sa.Column("seen_at", sa.BigInteger),
        sa.Column("idle", sa.Boolean, nullable=False),
        sa.Column("rows_ahead", sa.BigInteger, nullable=False),
        sa.Column("null_times", sa.BigInteger, nullable=False),
        sa.Column("emitted_epoch", sa.BigInteger),
        sa.Column("emitted_at", sa.BigInteger),
    )
    op.create_index("watermarks_until", "watermarks", ["until_epoch"])
    # Where a watermark stood before the last committed epoch was not kept.
    op.execute(
        f"INSERT INTO watermarks (relation_id, from_epoch, {_MARK})"
        " SELECT relation_id, (SELECT coalesce(max(epoch), 0) FROM epochs WHERE state IN ('committed', 'readable')),"
        f" {_MARK} FROM present_watermarks"
    )
    op.drop_table("present_watermarks")
