"""Many processes: labels of loads, and which stepwell a catalog belongs to while it is open."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("control", sa.Column("format", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("control", sa.Column("program", sa.String, nullable=False, server_default=""))
    op.create_table(
        "loads",
        sa.Column("label", sa.String, primary_key=True),
        sa.Column("relation_id", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("files", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
