"""Views: how each fares, and what each epoch did to it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("control", sa.Column("generation", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "views",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("reflects", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.String),
    )
    op.create_table(
        "refreshes",
        sa.Column("epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("rule", sa.String, nullable=False),
        sa.Column("steps", sa.String, nullable=False),
        sa.Column("rows_in", sa.BigInteger, nullable=False),
        sa.Column("inserted", sa.BigInteger, nullable=False),
        sa.Column("retracted", sa.BigInteger, nullable=False),
        sa.Column("bytes_read", sa.BigInteger, nullable=False),
        sa.Column("jobs", sa.BigInteger, nullable=False),
        sa.Column("microseconds", sa.BigInteger, nullable=False),
    )
