"""Jobs that go on beside statements, and when the schedules of views are due."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("asked_by", sa.String, nullable=False),
        sa.Column("relation_id", sa.BigInteger, nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("wanted", sa.String),
        sa.Column("term", sa.BigInteger),
        sa.Column("phase", sa.String, nullable=False),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("total", sa.BigInteger),
        sa.Column("attempts", sa.BigInteger, nullable=False),
        sa.Column("not_before", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("error", sa.JSON(none_as_null=True)),
        sa.Column("outcome", sa.JSON(none_as_null=True)),
        sqlite_autoincrement=True,
    )
    op.create_index("jobs_state", "jobs", ["state"])
    op.create_table(
        "schedules",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
    )
