"""Parsing: a text with any number of statements in it, to statements."""

from __future__ import annotations

from collections.abc import Callable

from stepwell.model.errors import Place, SqlSyntaxError, nearest
from stepwell.model.types import whole_number
from stepwell.sql import changes, copying, tables, views
from stepwell.sql.cursor import Cursor
from stepwell.sql.dialects import Dialect, to_spark
from stepwell.sql.not_offered import refuse_not_offered
from stepwell.sql.statements import (
    Begin,
    Body,
    ChangeJob,
    CheckpointTo,
    Commit,
    CreateView,
    Describe,
    ExplainCreate,
    ExplainQuery,
    ExplainRefresh,
    ExplainStaleness,
    Flush,
    JobAction,
    Optimize,
    Query,
    RefreshView,
    RestoreFrom,
    Rollback,
    SetOption,
    ShowCheckpoints,
    ShowCreate,
    ShowDependencies,
    ShowJobs,
    ShowLineage,
    ShowTables,
    ShowViews,
    ShowWatermarks,
    Slice,
    Statement,
    Vacuum,
    Verify,
    WaitForJobs,
)
from stepwell.sql.tokens import Token, TokenKind, tokenize


def parse(text: str, dialect: Dialect = Dialect.SPARK) -> list[Statement]:
    """The statements of `text`, separated by semicolons; comments and empty statements are nothing."""
    text = to_spark(text, dialect)
    return [_parse_statement(text, tokens) for tokens in split(text)]


def split(text: str) -> list[list[Token]]:
    """The tokens of each statement of `text`."""
    statements: list[list[Token]] = [[]]
    for token in tokenize(text):
        if token.says(";"):
            statements.append([])
        else:
            statements[-1].append(token)
    return [tokens for tokens in statements if tokens]


def _parse_statement(text: str, tokens: list[Token]) -> Statement:
    cursor = Cursor(text, tokens)
    place = Slice(text, tokens[0].start, tokens[-1].end)
    first = tokens[0]
    if first.says("SELECT", "WITH", "VALUES", "FROM", "("):
        return Statement(Query(place), place)
    refuse_not_offered(text, tokens)
    word = first.text.upper() if first.kind == TokenKind.WORD else ""
    if word not in _STATEMENTS:
        raise SqlSyntaxError(
            f'"{text[first.start : first.end]}" does not begin a statement',
            place=Place(text, first.start, first.end),
            hint=nearest(first.text, [*_STATEMENTS, "SELECT", "WITH", "VALUES"]),
        )
    cursor.index = 1
    body = _STATEMENTS[word](cursor)
    cursor.finish()
    return Statement(body, place)


def _create(cursor: Cursor) -> Body:
    if cursor.accept("TABLE"):
        return tables.parse_create_table(cursor)
    or_replace = cursor.accept("OR", "REPLACE")
    materialized = cursor.accept("MATERIALIZED")
    if cursor.accept("VIEW"):
        return views.parse_create_view(cursor, materialized=materialized, or_replace=or_replace)
    raise cursor.unexpected("VIEW" if materialized else "TABLE, MATERIALIZED VIEW or VIEW")


def _alter(cursor: Cursor) -> Body:
    if cursor.accept("TABLE"):
        return tables.parse_alter_table(cursor)
    cursor.accept("MATERIALIZED")
    if cursor.accept("VIEW"):
        return views.parse_alter_view(cursor)
    raise cursor.unexpected("TABLE or MATERIALIZED VIEW")


def _begin(cursor: Cursor) -> Body:
    if not cursor.accept("TRANSACTION"):
        cursor.accept("WORK")
    return Begin()


def _start(cursor: Cursor) -> Body:
    cursor.expect("TRANSACTION")
    return Begin()


def _commit(cursor: Cursor) -> Body:
    if not cursor.accept("TRANSACTION"):
        cursor.accept("WORK")
    return Commit()


def _rollback(cursor: Cursor) -> Body:
    if not cursor.accept("TRANSACTION"):
        cursor.accept("WORK")
    return Rollback()


def _set(cursor: Cursor) -> Body:
    name = cursor.name("the name of a setting")
    if not cursor.accept("="):
        cursor.expect("TO")
    value = cursor.rest("a value")
    text = value.text
    tokens = [token for token in cursor.tokens if token.start >= value.start]
    if len(tokens) == 1:
        text = tokens[0].text
    elif tokens[0].says("INTERVAL"):
        text = " ".join(token.text for token in tokens[1:])
    return SetOption(str(name).lower(), text, Slice(cursor.source, name.slice.start, value.end))


def _show(cursor: Cursor) -> Body:
    if cursor.accept("TABLES"):
        return ShowTables()
    if cursor.accept("MATERIALIZED", "VIEWS") or cursor.accept("VIEWS"):
        return ShowViews()
    if cursor.accept("WATERMARKS"):
        return ShowWatermarks()
    if cursor.accept("JOBS"):
        return ShowJobs()
    if cursor.accept("CHECKPOINTS"):
        cursor.expect("IN")
        return ShowCheckpoints(copying.string_of(cursor, "a path in quotes"))
    if cursor.accept("DEPENDENCIES", "FOR"):
        return ShowDependencies(cursor.name("a relation"))
    if cursor.accept("LINEAGE", "FOR"):
        name = cursor.name("a relation")
        return ShowLineage(name, cursor.identifier("a column")[1] if cursor.accept("COLUMN") else None)
    if cursor.accept("CREATE"):
        _skip_kind(cursor)
        return ShowCreate(cursor.name("a relation"))
    raise cursor.unexpected(
        "TABLES, MATERIALIZED VIEWS, WATERMARKS, JOBS, CHECKPOINTS IN, DEPENDENCIES FOR, LINEAGE FOR or CREATE"
    )


def _skip_kind(cursor: Cursor) -> None:
    """The kind of a relation, which may be said and need not."""
    if not cursor.accept("TABLE") and not cursor.accept("MATERIALIZED", "VIEW") and len(cursor.tokens) > 2:
        cursor.accept("VIEW")


def _describe(cursor: Cursor) -> Body:
    _skip_kind(cursor)
    return Describe(cursor.name("a relation"))


def _verify(cursor: Cursor) -> Body:
    cursor.accept("MATERIALIZED", "VIEW")
    return Verify(cursor.name("a view"), cursor.accept("REPAIR"))


def _refresh(cursor: Cursor) -> Body:
    cursor.expect("MATERIALIZED")
    cursor.expect("VIEW")
    name = cursor.name("a view")
    start = _moment(cursor) if cursor.accept("FROM") else None
    end = _moment(cursor) if cursor.accept("TO") else None
    cascade, force = cursor.accept("CASCADE"), cursor.accept("FORCE")
    return RefreshView(name, start, end, cascade or cursor.accept("CASCADE"), force)


def _change_job(action: JobAction) -> Callable[[Cursor], Body]:
    def parse(cursor: Cursor) -> Body:
        cursor.expect("JOB")
        token = cursor.next("the number of a job")
        number = whole_number(token.text)
        if token.kind != TokenKind.NUMBER or number is None:
            cursor.index -= 1
            raise cursor.unexpected("the number of a job, as SHOW JOBS tells it")
        return ChangeJob(action, number, Slice(cursor.source, token.start, token.end))

    return parse


def _checkpoint(cursor: Cursor) -> Body:
    cursor.expect("TO")
    return CheckpointTo(copying.string_of(cursor, "a path in quotes"))


def _restore(cursor: Cursor) -> Body:
    cursor.expect("FROM")
    path = copying.string_of(cursor, "a path in quotes")
    if not cursor.accept("EPOCH"):
        return RestoreFrom(path)
    token = cursor.next("the number of an epoch")
    epoch = whole_number(token.text)
    if token.kind != TokenKind.NUMBER or epoch is None:
        cursor.index -= 1
        raise cursor.unexpected("the number of an epoch, as SHOW CHECKPOINTS tells it")
    return RestoreFrom(path, epoch)


def _wait(cursor: Cursor) -> Body:
    if cursor.token is None:
        return WaitForJobs()
    cursor.accept("MATERIALIZED", "VIEW")
    return WaitForJobs(cursor.name("a view"))


def _moment(cursor: Cursor) -> Slice:
    """A time or a date as a text, or a number."""
    first = cursor.next("a time")
    last = first
    if first.says("TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "-"):
        last = cursor.next("a time")
    return Slice(cursor.source, first.start, last.end)


def _explain(cursor: Cursor) -> Body:
    if cursor.accept("STALENESS"):
        return ExplainStaleness(cursor.name("a view"))
    if cursor.accept("REFRESH"):
        cursor.accept("MATERIALIZED", "VIEW")
        return ExplainRefresh(cursor.name("a view"))
    if cursor.accept("CREATE"):
        create = _create(cursor)
        if not isinstance(create, CreateView) or not create.materialized:
            raise cursor.unexpected("CREATE MATERIALIZED VIEW")
        return ExplainCreate(create)
    extended = cursor.accept("EXTENDED")
    if not cursor.peek("SELECT", "WITH", "VALUES", "FROM", "("):
        raise cursor.unexpected("a query")
    return ExplainQuery(cursor.rest("a query"), extended)


def _flush(cursor: Cursor) -> Body:
    if cursor.accept("PUBLISH"):
        return Flush(publishes=True)
    if cursor.token is None:
        return Flush()
    name = cursor.name("PUBLISH or a name")
    cursor.expect("PUBLISH")
    return Flush(publishes=True, name=name)


def _optimize(cursor: Cursor) -> Body:
    cursor.accept("TABLE")
    return Optimize(cursor.name("a table"))


_STATEMENTS: dict[str, Callable[[Cursor], Body]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": views.parse_drop,
    "INSERT": changes.parse_insert,
    "UPDATE": changes.parse_update,
    "DELETE": changes.parse_delete,
    "MERGE": changes.parse_merge,
    "TRUNCATE": changes.parse_truncate,
    "COPY": copying.parse_copy,
    "BEGIN": _begin,
    "START": _start,
    "COMMIT": _commit,
    "ROLLBACK": _rollback,
    "FLUSH": _flush,
    "SET": _set,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "EXPLAIN": _explain,
    "OPTIMIZE": _optimize,
    "REFRESH": _refresh,
    "VERIFY": _verify,
    "CANCEL": _change_job(JobAction.CANCEL),
    "PAUSE": _change_job(JobAction.PAUSE),
    "RESUME": _change_job(JobAction.RESUME),
    "WAIT": _wait,
    "VACUUM": lambda cursor: Vacuum(),
    "CHECKPOINT": _checkpoint,
    "RESTORE": _restore,
}
