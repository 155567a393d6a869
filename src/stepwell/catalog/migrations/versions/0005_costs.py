"""What a refresh was expected to cost, and a recomputation in its place."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("refreshes", sa.Column("rows_there", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("refreshes", sa.Column("expected", sa.BigInteger))
    op.add_column("refreshes", sa.Column("recompute_expected", sa.BigInteger))
