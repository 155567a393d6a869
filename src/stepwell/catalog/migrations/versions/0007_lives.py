"""The lives of views as typed columns, each in force in a range of epochs.

Before, a view that had to be computed anew reflected -2 - epoch, one that had no rows -1, and sentences told why.
"""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_OWED = {"resumed": "catch_up", "repair": "rewrite"}


def upgrade() -> None:
    lives = op.create_table(
        "lives",
        sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("from_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("until_epoch", sa.BigInteger),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("job", sa.BigInteger),
        sa.Column("reflects", sa.BigInteger),
        sa.Column("condition", sa.String),
        sa.Column("paused_by", sa.String),
        sa.Column("waits_for", sa.BigInteger),
        sa.Column("failure", sa.String),
        sa.Column("owed", sa.String),
    )
    relations = sa.table(
        "relations",
        *(sa.column(name) for name in ("id", "name", "created_epoch", "dropped_epoch")),
        sa.column("definition", sa.JSON),
    )
    connection = op.get_bind()
    known = {row.id: row for row in connection.execute(sa.select(relations))}
    views = sa.table("views", *(sa.column(name) for name in ("relation_id", "state", "reflects", "reason")))
    rows = {row.relation_id: row for row in connection.execute(sa.select(views))}
    converted = [
        {
            "relation_id": id_,
            "from_epoch": known[id_].created_epoch,
            "until_epoch": known[id_].dropped_epoch,
            **_life(row, known, rows),
        }
        for id_, row in rows.items()
        if id_ in known and known[id_].created_epoch != known[id_].dropped_epoch
    ]
    if converted:
        op.bulk_insert(lives, converted)
    op.drop_table("views")


def _life(row: Any, known: dict[int, Any], rows: dict[int, Any]) -> dict[str, object]:
    life: dict[str, object] = dict.fromkeys(
        ("stage", "job", "reflects", "condition", "paused_by", "waits_for", "failure", "owed")
    )
    by_user = row.reason == "paused by a user"
    if row.reflects == -1:
        life["stage"] = "unpopulated" if by_user else "building"
        life["failure"] = row.reason if row.state == "error" else None
        return life
    life["stage"] = "serving"
    life["reflects"] = row.reflects if row.reflects >= 0 else -2 - row.reflects
    life["owed"] = "nothing" if row.reflects >= 0 else _OWED.get(row.reason, "recompute")
    life["condition"] = {"running": "running", "paused": "paused", "error": "failed"}[row.state]
    if row.state == "error":
        life["failure"] = row.reason or ""
    elif row.state == "paused" and by_user:
        life["paused_by"] = "user"
    elif row.state == "paused":
        life["paused_by"], life["waits_for"] = "parent", _parent(row, known, rows)
    return life


def _parent(row: Any, known: dict[int, Any], rows: dict[int, Any]) -> int:
    """Whom a view waits for: the sentence says so, unless the name is another today; else a parent that stands."""
    said = re.fullmatch(r'"(.*)" does not run', row.reason or "")
    for id_, relation in known.items():
        if said and relation.name == said[1] and relation.dropped_epoch is None:
            return int(id_)
    parents = [each[0] for each in known[row.relation_id].definition["view"]["inputs"]]
    standing = [id_ for id_ in parents if id_ in rows and rows[id_].state != "running"]
    return int((standing or parents)[0])
