"""Checksums of files, the identity of a database, and jobs that belong to no relation."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("files", sa.Column("checksum", sa.JSON(none_as_null=True)))
    op.add_column("control", sa.Column("identity", sa.String, nullable=False, server_default=""))
    op.execute(sa.text("UPDATE control SET identity = :identity").bindparams(identity=uuid.uuid4().hex))
    with op.batch_alter_table("jobs", table_kwargs={"sqlite_autoincrement": True}) as jobs:
        jobs.alter_column("relation_id", existing_type=sa.BigInteger(), nullable=True)
