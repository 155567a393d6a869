"""Windows of time in a text: TUMBLE, HOP, SESSION and time_bucket, in the words that Spark has for them.

    TUMBLE(ts, INTERVAL '1 minute')              window(ts, '1 minute'); TUMBLE_START and TUMBLE_END are its ends
    HOP(ts, INTERVAL '1 minute', INTERVAL …)     window(ts, size, slide)
    SESSION(ts, INTERVAL '5 minutes')            session_window(ts, '5 minutes')
    FROM TUMBLE(t, ts, INTERVAL '1 minute')      t with window_start and window_end; so HOP
    FROM SESSION(t, ts, INTERVAL '5 minutes', k) the same with the sessions of each k
    time_bucket(INTERVAL '5 minutes', ts)        arithmetic on ts, from Monday, 2000-01-03, or of months from 2000-01-01

Windows begin at 1970-01-01 UTC. Of a column of whole numbers, TUMBLE and time_bucket take a whole number as width.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepwell.model.durations import format_duration, parse_duration
from stepwell.model.errors import InvalidDefinitionError, InvalidSettingError, SqlSyntaxError, StepwellError
from stepwell.model.types import whole_number
from stepwell.model.watermarks import moment_of
from stepwell.sql.statements import Slice
from stepwell.sql.tokens import Token, TokenKind, tokenize

_ARGUMENTS = {"tumble": 2, "hop": 3, "session": 2}
_ENDS = ("start", "end")

MONDAY = 946_857_600_000_000
"""2000-01-03 UTC, where buckets begin, in microseconds."""

_PER_MONTH = {"month": 1, "mon": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of one of these functions: its words, from the name to the closing parenthesis."""

    source: str
    name: Token
    opening: Token
    closing: Token
    arguments: tuple[tuple[Token, ...], ...]

    @property
    def slice(self) -> Slice:
        return Slice(self.source, self.name.start, self.closing.end)

    def argument(self, index: int) -> Slice:
        tokens = self.arguments[index]
        return Slice(self.source, tokens[0].start, tokens[-1].end)

    def wrong(self, message: str, hint: str) -> StepwellError:
        return SqlSyntaxError(message, place=self.slice.place, hint=hint)


def window_calls(text: Slice) -> dict[Slice, str]:
    """What to put in the places of the windows in a text."""
    lowered = text.text.lower()
    if not any(word in lowered for word in (*_ARGUMENTS, "time_bucket")):
        return {}
    found: dict[Slice, str] = {}
    tokens = tokenize(text.source[: text.end], text.start)
    for index, call in _calls(text, tokens):
        found.update(_time_bucket(call) if call.name.text.lower() == "time_bucket" else _window(call))
        if (
            call.name.text.lower() == "tumble"
            and len(call.arguments) == 2
            and call.arguments[1][0].kind == TokenKind.NUMBER
        ):
            found.update(_without_nulls(call, tokens[:index]))
    return found


def _calls(text: Slice, tokens: Sequence[Token]) -> Iterator[tuple[int, _Call]]:
    for index, token in enumerate(tokens[:-1]):
        kind = token.text.lower().rpartition("_")[0] if token.text.lower().endswith(_ENDS) else token.text.lower()
        if token.kind != TokenKind.WORD or not tokens[index + 1].says("(") or (index and tokens[index - 1].says(".")):
            continue
        if kind in _ARGUMENTS or token.text.lower() == "time_bucket":
            call = _read(text.source, token, tokens[index + 1 :])
            if call is not None:
                yield index, call


def _read(source: str, name: Token, tokens: Sequence[Token]) -> _Call | None:
    arguments: list[tuple[Token, ...]] = []
    depth, since = 0, 1
    for index, token in enumerate(tokens):
        depth += token.says("(", "[") - token.says(")", "]")
        if (depth == 1 and token.says(",")) or depth == 0:
            if index > since:
                arguments.append(tuple(tokens[since:index]))
            since = index + 1
        if depth == 0:
            return _Call(source, name, tokens[0], token, tuple(arguments))
    return None


def _window(call: _Call) -> dict[Slice, str]:
    kind, _, end = call.name.text.lower().partition("_")
    wanted = _ARGUMENTS[kind]
    if kind == "session" and len(call.arguments) >= 3 and not end:
        return _session_table(call)
    if len(call.arguments) == wanted + 1 and not end:
        return _table(call, kind)
    if len(call.arguments) != wanted:
        what = {"tumble": "a time and a width", "hop": "a time, a slide and a size", "session": "a time and a gap"}
        raise call.wrong(f"{call.name.text} takes {what[kind]}", "Write TUMBLE(ts, INTERVAL '1 minute').")
    if kind == "tumble" and call.arguments[1][0].kind == TokenKind.NUMBER:
        return {call.slice: _of_numbers(call, end)}
    function = "session_window" if kind == "session" else "window"
    found = {Slice(call.source, call.name.start, call.name.end): function}
    widths = [_width(call, index) for index in range(1, wanted)]
    for index, width in zip(range(1, wanted), reversed(widths), strict=True):  # HOP names the slide before the size
        found[call.argument(index)] = f"'{width}'"
    if end:
        found[Slice(call.source, call.closing.start, call.closing.end)] = f").{end}"
    return found


def _table(call: _Call, kind: str) -> dict[Slice, str]:
    """A relation with the start and the end of the window of each row."""
    time = call.argument(1).text
    widths = ", ".join(f"'{_width(call, index)}'" for index in reversed(range(2, len(call.arguments))))
    window = f"window({time}, {widths})"
    opened = f"(SELECT *, {window}.start AS window_start, {window}.end AS window_end FROM "
    relation = call.argument(0)
    return {
        Slice(call.source, call.name.start, call.opening.end): opened,
        Slice(call.source, relation.end, call.closing.end): ")",
    }


def _session_table(call: _Call) -> dict[Slice, str]:
    """A relation with the start and the end of the session of each row; columns behind the gap are its key."""
    time, gap = call.argument(1).text, f"INTERVAL '{_microseconds(call, 2) / 1_000_000:.6f}' SECOND"
    keys = [f"_sw_k{index}" for index in range(len(call.arguments) - 3)]
    named = "".join(f", {call.argument(index + 3).text} AS {key}" for index, key in enumerate(keys))
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    over = f"OVER ({partition}ORDER BY _sw_time)"
    opened = (
        "(SELECT _sw_row.*, _sw_start AS window_start,"
        f" max(_sw_time) OVER (PARTITION BY {', '.join([*keys, '_sw_start'])}) + {gap} AS window_end"
        f" FROM (SELECT *, max(CASE WHEN _sw_opens THEN _sw_time END) {over} AS _sw_start"
        f" FROM (SELECT *, coalesce(lag(_sw_time) {over} + {gap} <= _sw_time, true) AS _sw_opens"
        f" FROM (SELECT struct(*) AS _sw_row, {time} AS _sw_time{named} FROM "
    )
    relation = call.argument(0)
    return {
        Slice(call.source, call.name.start, call.opening.end): opened,
        Slice(call.source, relation.end, call.closing.end): f" WHERE {time} IS NOT NULL))))",
    }


def _width(call: _Call, index: int) -> str:
    """The length of an interval, as Spark's windows take it."""
    return format_duration(_microseconds(call, index))


def _microseconds(call: _Call, index: int) -> int:
    """The width of a window."""
    width = _length(call, index)
    if width <= 0:
        raise InvalidDefinitionError(
            "the width of a window must be more than nothing", place=call.argument(index).place
        )
    return width


def _instant(call: _Call, index: int) -> int:
    """TIMESTAMP '…' in microseconds; UTC unless it says otherwise."""
    tokens, where = call.arguments[index], call.argument(index)
    try:
        if len(tokens) != 2 or not tokens[0].says("TIMESTAMP"):
            raise ValueError
        return moment_of(datetime.datetime.fromisoformat(tokens[1].text.strip("'")))
    except ValueError:
        raise InvalidDefinitionError(
            "the origin of a bucket must be a constant",
            place=where.place,
            hint="Write TIMESTAMP '2000-01-01 00:00:00', an INTERVAL as offset, or a zone such as 'Asia/Tokyo'.",
        ) from None


def _length(call: _Call, index: int) -> int:
    tokens, where = call.arguments[index], call.argument(index)
    if not tokens[0].says("INTERVAL") or len(tokens) > 3 or (len(tokens) == 3 and tokens[2].kind != TokenKind.WORD):
        raise InvalidDefinitionError(
            "the width of a window must be a constant", place=where.place, hint="Write it as INTERVAL '1 minute'."
        )
    try:
        return parse_duration(" ".join(token.text for token in tokens[1:]))
    except InvalidSettingError as error:
        raise InvalidDefinitionError(error.message, place=where.place, detail=error.detail, hint=error.hint) from None


def _of_numbers(call: _Call, end: str) -> str:
    time, width = call.argument(0).text, call.argument(1).text
    if not whole_number(width):
        raise InvalidDefinitionError(
            "the width of a window must be a constant, and more than nothing", place=call.argument(1).place
        )
    start = f"({time} - pmod({time}, {width}))"
    return f"({start} + {width})" if end == "end" else start


def _without_nulls(call: _Call, before: Sequence[Token]) -> dict[Slice, str]:
    """A row without a time has no window: as Spark's window() leaves such rows out, so do windows of numbers."""
    depth, group, where = 0, None, None
    for token in reversed(before):
        depth += token.says(")", "]") - token.says("(", "[")
        if depth < 0 or (depth == 0 and token.says("SELECT")):
            break
        if depth == 0 and token.says("GROUP") and group is None:
            group = token
        elif depth == 0 and token.says("WHERE"):
            where = token
    if group is None:
        return {}
    has_time = f"({call.argument(0).text}) IS NOT NULL"
    if where is None:
        return {Slice(call.source, group.start, group.end): f"WHERE {has_time} GROUP"}
    return {
        Slice(call.source, where.start, where.end): "WHERE (",
        Slice(call.source, group.start, group.end): f") AND {has_time} GROUP",
    }


# -- time_bucket ------------------------------------------------------------------------------------------------------


def _time_bucket(call: _Call) -> dict[Slice, str]:
    if not 2 <= len(call.arguments) <= 3:
        raise call.wrong(
            "time_bucket takes a width, a time, and an origin, an offset or a time zone",
            "Write time_bucket(INTERVAL '5 minutes', ts).",
        )
    time = call.argument(1).text
    if call.arguments[0][0].kind == TokenKind.NUMBER:
        return {call.slice: _bucket_of_numbers(call, time)}
    more = call.arguments[2] if len(call.arguments) == 3 else ()
    shifted, back = time, "{0}"
    if more and more[0].kind == TokenKind.STRING:
        zone = call.argument(2).text
        shifted = f"from_utc_timestamp(CAST({time} AS TIMESTAMP), {zone})"
        back = f"to_utc_timestamp(CAST({{0}} AS TIMESTAMP), {zone})"
    origin = MONDAY
    if more and more[0].says("INTERVAL"):
        origin += _length(call, 2)
    elif more and more[0].kind != TokenKind.STRING:
        origin = _instant(call, 2)
    months = _months(call)
    if months:
        if origin != MONDAY:
            raise call.wrong("buckets of months have no origin of their own", "They begin with January 2000.")
        number = f"((year({shifted}) - 2000) * 12 + month({shifted}) - 1)"
        start = f"add_months(DATE '2000-01-01', {number} - pmod({number}, {months}))"
        back = back if "CAST(" in back else back.replace("{0}", "CAST({0} AS TIMESTAMP)")
    else:
        width = _microseconds(call, 0)
        start = f"timestamp_micros(unix_micros({shifted}) - pmod(unix_micros({shifted}) - {origin}, {width}))"
    return {call.slice: back.format(start)}


def _bucket_of_numbers(call: _Call, time: str) -> str:
    width = call.argument(0).text
    origin = call.argument(2).text if len(call.arguments) == 3 else "0"
    if not whole_number(width):
        raise InvalidDefinitionError(
            "the width of a bucket must be a constant, and more than nothing", place=call.argument(0).place
        )
    return f"({time} - pmod({time} - {origin}, {width}))"


def _months(call: _Call) -> int:
    """How many months a width has, or 0 if it is none of months."""
    words = " ".join(token.text for token in call.arguments[0][1:]).lower().split()
    if len(words) != 2:
        return 0
    return (whole_number(words[0]) or 0) * _PER_MONTH.get(words[1].removesuffix("s"), 0)
