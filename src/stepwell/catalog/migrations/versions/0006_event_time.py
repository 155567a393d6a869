"""Event time: watermarks, and what came too late."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "watermarks",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
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
    op.create_table(
        "late_rows",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("inserted", sa.BigInteger, nullable=False),
        sa.Column("retracted", sa.BigInteger, nullable=False),
    )
