"""When each refresh of a view began: those of one epoch run beside each other."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("refreshes", sa.Column("started_at", sa.BigInteger, nullable=False, server_default="0"))
