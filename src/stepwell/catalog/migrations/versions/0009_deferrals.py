"""Continuous aggregates: who watches whom, thresholds, completed thresholds, and logs of invalidations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "watches",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time_column", sa.String, primary_key=True),
        sa.Column("view_id", sa.BigInteger, primary_key=True, autoincrement=False),
    )
    op.create_table(
        "thresholds",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time_column", sa.String, primary_key=True),
        sa.Column("from_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("until_epoch", sa.BigInteger),
        sa.Column("threshold", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "completions",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("from_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("until_epoch", sa.BigInteger),
        sa.Column("completed", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "invalidations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("relation_id", sa.BigInteger, nullable=False),
        sa.Column("time_column", sa.String),
        sa.Column("starts", sa.BigInteger, nullable=False),
        sa.Column("ends", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("from_epoch", sa.BigInteger, nullable=False),
        sa.Column("until_epoch", sa.BigInteger),
    )
    op.create_index("invalidations_relation", "invalidations", ["relation_id", "until_epoch"])
