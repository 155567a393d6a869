"""The catalog's tables, the same on SQLite and PostgreSQL. Times are microseconds since 1970, UTC."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite numbers by itself only what is spelt INTEGER

control = sa.Table(
    "control",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("open_epoch", sa.BigInteger, nullable=False),
    sa.Column("readable_epoch", sa.BigInteger, nullable=False),
    sa.Column("last_position", sa.BigInteger, nullable=False),
    sa.Column("forgotten_position", sa.BigInteger, nullable=False),
    sa.Column("generation", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("format", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("program", sa.String, nullable=False, server_default=""),
    sa.Column("identity", sa.String, nullable=False, server_default=""),  # of the database, wherever it is restored to
)

relations = sa.Table(
    "relations",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("namespace", sa.String, nullable=False),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("name_key", sa.String, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("created_epoch", sa.BigInteger, nullable=False),
    sa.Column("dropped_epoch", sa.BigInteger),
    sa.Column("dropped_at", sa.BigInteger),
    sa.Column("next_row_id", sa.BigInteger, nullable=False),
    sa.Column("published_epoch", sa.BigInteger),
    sa.Column("publication", sa.BigInteger, nullable=False),
    sqlite_autoincrement=True,  # a number names a folder: it is never given twice
)
sa.Index(
    "relations_name",
    relations.c.namespace,
    relations.c.name_key,
    unique=True,
    sqlite_where=relations.c.dropped_epoch.is_(None),
    postgresql_where=relations.c.dropped_epoch.is_(None),
)

definitions = sa.Table(
    "definitions",
    metadata,
    sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("from_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("until_epoch", sa.BigInteger),
    sa.Column("definition", sa.JSON, nullable=False),
)

schemas = sa.Table(
    "schemas",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("relation_id", sa.BigInteger, nullable=False, index=True),
    sa.Column("from_epoch", sa.BigInteger, nullable=False),
    sa.Column("columns", sa.JSON, nullable=False),
)

epochs = sa.Table(
    "epochs",
    metadata,
    sa.Column("epoch", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("state", sa.String, nullable=False, index=True),
    sa.Column("opened_at", sa.BigInteger, nullable=False),
    sa.Column("aligned_at", sa.BigInteger),
    sa.Column("committed_at", sa.BigInteger),
    sa.Column("readable_at", sa.BigInteger, index=True),
    sa.Column("changed", sa.BigInteger, nullable=False),
    sa.Column("inserted", sa.BigInteger, nullable=False),
    sa.Column("retracted", sa.BigInteger, nullable=False),
)

files = sa.Table(
    "files",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("relation_id", sa.BigInteger, nullable=False),
    sa.Column("store", sa.String, nullable=False),
    sa.Column("path", sa.String, nullable=False),
    sa.Column("from_epoch", sa.BigInteger, nullable=False),
    sa.Column("last_epoch", sa.BigInteger, nullable=False),
    sa.Column("until_epoch", sa.BigInteger),
    sa.Column("logged", sa.Boolean, nullable=False),
    sa.Column("superseded", sa.Boolean, nullable=False),
    sa.Column("published", sa.Boolean, nullable=False),
    sa.Column("ended_at", sa.BigInteger),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("retracted", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("time_min", sa.BigInteger),
    sa.Column("time_max", sa.BigInteger),
    sa.Column("key_range", sa.JSON),
    sa.Column("checksum", sa.JSON(none_as_null=True)),
    sqlite_autoincrement=True,
)
sa.Index("files_content", files.c.relation_id, files.c.superseded, files.c.until_epoch)
sa.Index("files_epoch", files.c.from_epoch)

acknowledgements = sa.Table(
    "acknowledgements",
    metadata,
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("chunks", sa.JSON),
    sa.Column("keys", sa.LargeBinary),
)
sa.Index("acknowledgements_relation", acknowledgements.c.relation_id, acknowledgements.c.position)

lease = sa.Table(
    "lease",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("term", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.String),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
)

barrier_requests = sa.Table(
    "barrier_requests",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False, index=True),
    sa.Column("requested_at", sa.BigInteger, nullable=False),
)

pins = sa.Table(
    "pins",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.String, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

settings = sa.Table(
    "settings",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("value", sa.String, nullable=False),
)

loads = sa.Table(
    "loads",
    metadata,
    sa.Column("label", sa.String, primary_key=True),
    sa.Column("relation_id", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.String, nullable=False),
    sa.Column("files", sa.BigInteger, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
)

lives = sa.Table(
    "lives",
    metadata,
    sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("from_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("until_epoch", sa.BigInteger),
    sa.Column("stage", sa.String, nullable=False),  # building, unpopulated or serving
    sa.Column("job", sa.BigInteger),
    sa.Column("reflects", sa.BigInteger),
    sa.Column("condition", sa.String),  # of one that serves: running, paused or failed
    sa.Column("paused_by", sa.String),  # user or parent
    sa.Column("waits_for", sa.BigInteger),
    sa.Column("failure", sa.String),
    sa.Column("owed", sa.String),  # of one that serves: nothing, catch_up, recompute or rewrite
)

refreshes = sa.Table(
    "refreshes",
    metadata,
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
    sa.Column("started_at", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("rows_there", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("expected", sa.BigInteger),
    sa.Column("recompute_expected", sa.BigInteger),
)

watermarks = sa.Table(
    "watermarks",
    metadata,
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
sa.Index("watermarks_until", watermarks.c.until_epoch)  # one row an epoch, of which few are asked for

late_rows = sa.Table(
    "late_rows",
    metadata,
    sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("inserted", sa.BigInteger, nullable=False),
    sa.Column("retracted", sa.BigInteger, nullable=False),
)

watches = sa.Table(
    "watches",
    metadata,
    sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time_column", sa.String, primary_key=True),  # empty: a dimension, of which any change touches all times
    sa.Column("view_id", sa.BigInteger, primary_key=True, autoincrement=False),
)

thresholds = sa.Table(
    "thresholds",
    metadata,
    sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time_column", sa.String, primary_key=True),
    sa.Column("from_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("until_epoch", sa.BigInteger),
    sa.Column("threshold", sa.BigInteger, nullable=False),
)

completions = sa.Table(
    "completions",
    metadata,
    sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("from_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("until_epoch", sa.BigInteger),
    sa.Column("completed", sa.BigInteger, nullable=False),
)

invalidations = sa.Table(
    "invalidations",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("relation_id", sa.BigInteger, nullable=False),
    sa.Column("time_column", sa.String),  # of a source's log; a view's own has none
    sa.Column("starts", sa.BigInteger, nullable=False),
    sa.Column("ends", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("from_epoch", sa.BigInteger, nullable=False),
    sa.Column("until_epoch", sa.BigInteger),
)
sa.Index("invalidations_relation", invalidations.c.relation_id, invalidations.c.until_epoch)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("asked_by", sa.String, nullable=False),  # user or schedule
    sa.Column("relation_id", sa.BigInteger),  # none for what is done to all of them
    sa.Column("request", sa.JSON, nullable=False),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("wanted", sa.String),  # of one that runs: paused or cancelled
    sa.Column("term", sa.BigInteger),  # of the leader that runs it
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
    sqlite_autoincrement=True,  # a number that a user has seen names one job for ever
)
sa.Index("jobs_state", jobs.c.state)

schedules = sa.Table(
    "schedules",
    metadata,
    sa.Column("relation_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("due_at", sa.BigInteger, nullable=False),
)
