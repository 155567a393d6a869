"""EMIT, lateness and watermarks one by one: the clock, idle tables, rows too far ahead, stopped and replaced views."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import stepwell
from limited import limit
from stepwell import StepwellError, StepwellWarning
from stepwell.model.clock import ManualClock
from views import answer

BASE = datetime(2024, 5, 1, 9)
NOON = round(datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp() * 1_000_000)

COUNTS = (
    "SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS b, count(*) AS n FROM t GROUP BY TUMBLE(ts, INTERVAL '1 minute')"
)


def at(seconds: float) -> datetime:
    return BASE + timedelta(seconds=seconds)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def db(tmp_path: Path, clock: ManualClock) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path / "warehouse", clock=clock) as opened:
        opened.sql("CREATE TABLE t (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        yield opened


def counts(db: stepwell.Database, name: str) -> dict[float, int]:
    since = round(BASE.replace(tzinfo=UTC).timestamp()) * 1_000_000
    return {(row[0] - since) / 1_000_000: row[1] for row in answer(db, f"SELECT unix_micros(b), n FROM {name}")}


def mark(db: stepwell.Database, name: str) -> str:
    return str(dict(answer(db, "SELECT name, watermark FROM stepwell.watermarks"))[name])


def is_right(db: stepwell.Database, *names: str) -> bool:
    return all(answer(db, f"VERIFY {name}")[0][2] for name in names)


def _wait_for_epoch(db: stepwell.Database, after: int) -> None:
    for _ in range(600):
        if db.epoch > after:
            return
        time.sleep(0.1)
    raise AssertionError(f"no epoch after {after}")


# -- by the clock -----------------------------------------------------------------------------------------------------


def test_periodically_shows_changes_when_its_time_has_come_and_windows_when_they_close(
    db: stepwell.Database, clock: ManualClock
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT PERIODICALLY INTERVAL '10 seconds'")
    db.sql("CREATE MATERIALIZED VIEW child AS SELECT sum(n) AS total FROM v")
    db.insert("t", [(1, at(1))])
    assert counts(db, "v") == {}  # it was created, and so showed everything, at this very moment
    clock.advance(seconds=9)
    db.insert("t", [(2, at(2))])
    assert counts(db, "v") == {}
    assert is_right(db, "v", "child")
    before = db.epoch
    clock.advance(seconds=1)
    _wait_for_epoch(db, before)  # nobody asks for it: the loop looks at the clock
    assert counts(db, "v") == {0: 2}
    db.insert("t", [(3, at(3))])
    assert counts(db, "v") == {0: 2}
    assert answer(db, "SELECT * FROM child") == [(2,)]
    db.insert("t", [(4, at(4)), (5, at(61))])  # the first minute closes: it is shown, the second waits
    assert counts(db, "v") == {0: 4}
    db.insert("t", [(6, at(5))])  # and a correction of it waits, too
    assert counts(db, "v") == {0: 4}
    assert is_right(db, "v", "child")
    db.sql("FLUSH")
    assert counts(db, "v") == {0: 5, 60: 1}
    db.sql("FLUSH")
    db.sql("DELETE FROM t WHERE id = 5")
    assert counts(db, "v") == {0: 5, 60: 1}
    db.flush()
    assert counts(db, "v") == {0: 5}
    assert is_right(db, "v", "child")


def test_the_loop_itself_notices_that_an_interval_is_over(db: stepwell.Database, clock: ManualClock) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t EMIT PERIODICALLY INTERVAL '5 seconds'")
    db.insert("t", [(1, at(1))])
    assert answer(db, "SELECT * FROM v") == [(0,)]
    before = db.epoch
    clock.advance(seconds=6)
    _wait_for_epoch(db, before)
    assert answer(db, "SELECT * FROM v") == [(1,)]
    time.sleep(0.6)
    assert db.epoch == before + 1  # nothing more to show, and so no more barriers


# -- tables -----------------------------------------------------------------------------------------------------------


def test_an_idle_table_has_no_say(db: stepwell.Database, clock: ManualClock) -> None:
    db.sql("CREATE TABLE u (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (idle_timeout = INTERVAL '1 minute')")
    both = "SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS b, count(*) AS n FROM (SELECT ts FROM t UNION ALL SELECT ts FROM u) GROUP BY TUMBLE(ts, INTERVAL '1 minute')"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {both} EMIT AFTER WATERMARK")
    db.insert("t", [(1, at(1)), (2, at(70))])
    assert mark(db, "v") == "-infinity"
    assert counts(db, "v") == {}
    db.insert("u", [(1, at(2))])
    assert mark(db, "v") == "2024-05-01 09:00:00"
    before = db.epoch
    clock.advance(seconds=61)
    _wait_for_epoch(db, before)
    assert mark(db, "v") == "2024-05-01 09:01:00"
    assert counts(db, "v") == {0: 2}
    db.insert("u", [(2, at(50))])  # it is back, and late: the minute is final
    assert counts(db, "v") == {0: 2}
    assert answer(db, "SELECT rows_inserted FROM stepwell.late_rows") == [(1,)]
    assert is_right(db, "v")
    assert "idle_timeout = INTERVAL '1 minute'" in answer(db, "SHOW CREATE u")[0][1]


def test_a_row_too_far_ahead_is_stored_and_counted_and_moves_nothing(db: stepwell.Database, clock: ManualClock) -> None:
    db.sql("CREATE TABLE u (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (max_future = INTERVAL '1 hour')")
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS.replace('FROM t', 'FROM u')} EMIT AFTER WATERMARK")
    ahead = datetime(2124, 1, 1)
    db.insert("u", [(1, at(1)), (2, ahead), (3, ahead)])
    assert mark(db, "u") == "2024-05-01 09:00:01"
    assert answer(db, "SELECT count(*) FROM u") == [(3,)]
    assert dict(answer(db, "SELECT name, rows_ahead FROM stepwell.watermarks"))["u"] == 2
    db.insert("u", [(4, at(61))])
    assert counts(db, "v") == {0: 1}
    db.insert("t", [(1, ahead)])  # off by default
    assert mark(db, "t") == "2124-01-01 00:00:00"


def test_rows_without_a_time_are_in_no_window_and_counted(db: stepwell.Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS}")
    db.sql("CREATE TABLE k (n BIGINT, WATERMARK FOR n AS n - 2)")
    db.sql(
        "CREATE MATERIALIZED VIEW tens AS SELECT TUMBLE_START(n, 10) AS b, count(*) AS c FROM k GROUP BY TUMBLE(n, 10)"
    )
    db.insert("t", [(1, None), (2, at(1)), (3, None)])
    db.insert("k", [(None,), (3,)])
    assert counts(db, "v") == {0: 1}
    assert answer(db, "SELECT * FROM tens") == [(0, 1)]
    nulls = dict(answer(db, "SELECT name, null_times FROM stepwell.watermarks"))
    assert (nulls["t"], nulls["k"]) == (2, 1)
    assert is_right(db, "v", "tens")


def test_whole_numbers_are_times_too(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE k (n BIGINT, g INT, WATERMARK FOR n AS n - 2)")
    tens = "SELECT TUMBLE_START(n, 10) AS b, TUMBLE_END(n, 10) AS e, count(*) AS c FROM k GROUP BY TUMBLE(n, 10)"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {tens} EMIT AFTER WATERMARK ALLOW LATENESS 5")
    db.insert("k", [(1, 1), (11, 1)])
    assert answer(db, "SELECT * FROM v") == []
    db.insert("k", [(12, 1)])
    assert answer(db, "SELECT * FROM v") == [(0, 10, 1)]
    db.insert("k", [(9, 1)])
    assert answer(db, "SELECT * FROM v") == [(0, 10, 2)]
    db.advance_watermark("k", 15)
    db.insert("k", [(8, 1)])
    assert answer(db, "SELECT * FROM v") == [(0, 10, 2)]
    assert answer(db, "SELECT window_start, n, g, _diff FROM v$late") == [(0, 8, 1, 1)]
    assert mark(db, "k") == "15"
    assert is_right(db, "v")
    with pytest.raises(StepwellError, match="is no moment"):
        db.advance_watermark("k", at(1))
    assert "ALLOW LATENESS 5" in answer(db, "SHOW CREATE v")[0][1]


def test_dates_are_times_too(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE d (day DATE, v INT, WATERMARK FOR day AS day - INTERVAL '1 day')")
    db.sql("CREATE MATERIALIZED VIEW daily AS SELECT day, sum(v) AS s FROM d GROUP BY day EMIT AFTER WATERMARK")
    db.insert("d", [(date(2024, 5, 1), 1), (date(2024, 5, 2), 2)])
    assert answer(db, "SELECT * FROM daily") == []
    db.insert("d", [(date(2024, 5, 1), 5), (date(2024, 5, 3), 3)])
    assert answer(db, "SELECT * FROM daily") == [(date(2024, 5, 1), 6)]
    assert is_right(db, "daily")


def test_the_ends_of_the_type(db: stepwell.Database) -> None:
    """The last representable time closes all windows; of the first one Spark itself cannot tell the window."""
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
    db.insert("t", [(1, at(1))])
    db.sql("INSERT INTO t SELECT 2, timestamp_micros(9223372036854775807)")
    assert (counts(db, "v")[0], len(counts(db, "v"))) == (1, 2)
    with pytest.warns(StepwellWarning, match='"v" has failed.*overflow'):
        db.sql("INSERT INTO t SELECT 3, timestamp_micros(-9223372036854775808)")
    assert answer(db, "SELECT count(*) FROM t") == [(3,)]
    db.sql("DELETE FROM t WHERE id = 3; ALTER MATERIALIZED VIEW v RESUME")
    assert (counts(db, "v")[0], len(counts(db, "v"))) == (1, 2)
    assert is_right(db, "v")


# -- advancing --------------------------------------------------------------------------------------------------------


def test_advance_closes_windows_and_never_goes_back(db: stepwell.Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
    db.insert("t", [(1, at(1))])
    assert db.advance_watermark("t", at(60).replace(tzinfo=UTC)) == ["v"]
    assert counts(db, "v") == {0: 1}
    with pytest.warns(StepwellWarning, match='watermark of "t" stands at 2024-05-01 09:01:00 already and never moves'):
        db.advance_watermark("T", at(59))
    assert mark(db, "t") == "2024-05-01 09:01:00"
    assert db.advance_watermark("t", at(60)) == [], "it stands there already"
    for wrong in ("soon", 5, None):
        with pytest.raises(StepwellError, match="is no moment"):
            db.advance_watermark("t", wrong)
    with pytest.raises(StepwellError, match="declares no watermark"):
        db.advance_watermark("v", at(1))
    with pytest.raises(StepwellError, match="does not exist"):
        db.advance_watermark("tt", at(1))


# -- views that stop, are replaced, repaired, or outlive the process --------------------------------------------------


def test_a_stopped_view_catches_up_with_what_has_closed(db: stepwell.Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK ALLOW LATENESS INTERVAL '1 minute'")
    db.sql("CREATE MATERIALIZED VIEW child AS SELECT b, n FROM v EMIT AFTER WATERMARK ALLOW LATENESS INTERVAL '1 hour'")
    db.insert("t", [(1, at(1)), (2, at(61))])
    db.sql("ALTER MATERIALIZED VIEW v PAUSE")
    db.insert("t", [(3, at(2)), (4, at(121))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert counts(db, "v") == {0: 1}
    assert mark(db, "v") == "2024-05-01 09:01:00"
    db.sql("ALTER MATERIALIZED VIEW v RESUME")
    assert counts(db, "v") == {0: 2, 60: 1}
    assert counts(db, "child") == {0: 2, 60: 1}
    assert is_right(db, "v", "child")


def test_replacing_and_repairing(db: stepwell.Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
    db.insert("t", [(1, at(1)), (2, at(61))])
    db.insert("t", [(3, at(2))])  # late
    assert counts(db, "v") == {0: 1}
    db.sql("VERIFY v REPAIR")
    assert counts(db, "v") == {0: 1}
    assert is_right(db, "v")
    db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {COUNTS}")
    assert counts(db, "v") == {0: 2, 60: 1}
    db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
    assert counts(db, "v") == {0: 2}  # what is there when it is built counts
    assert is_right(db, "v")


def test_a_view_created_later_begins_with_what_is_there(db: stepwell.Database) -> None:
    db.insert("t", [(1, at(1)), (2, at(61)), (3, at(2))])
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
    assert counts(db, "v") == {0: 2}
    db.insert("t", [(4, at(3))])
    assert counts(db, "v") == {0: 2}
    assert is_right(db, "v")


def test_a_new_process_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE t (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
        db.insert("t", [(1, at(1)), (2, at(61))])
    with stepwell.connect(tmp_path / "w") as db:
        assert mark(db, "v") == "2024-05-01 09:01:00"
        db.insert("t", [(3, at(2)), (4, at(62)), (5, at(121))])
        assert counts(db, "v") == {0: 1, 60: 2}
        assert is_right(db, "v")


def test_full_and_adaptive_recomputation_leave_out_what_was_late(
    db: stepwell.Database,
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (refresh_policy = 'full') AS {COUNTS} EMIT AFTER WATERMARK")
    db.sql(f"CREATE MATERIALIZED VIEW w AS {COUNTS} ALLOW LATENESS INTERVAL '0 seconds'")
    db.insert("t", [(1, at(1)), (2, at(61))])
    db.insert("t", [(3, at(2)), (4, at(62))])
    assert counts(db, "v") == {0: 1}
    limit(db, recomputed_rows=0)  # so that half of the rows are most of them
    db.insert("t", [(number, at(number % 3)) for number in range(10, 40)] + [(50, at(70)), (51, at(130))])
    db.sql("DELETE FROM t WHERE id = 1")
    assert counts(db, "v") == {0: 1, 60: 3}
    assert counts(db, "w") == {0: 1, 60: 3, 120: 1}
    assert is_right(db, "v", "w")
    rules = {row[0] for row in answer(db, "SELECT rule FROM stepwell.refreshes")}
    assert "recompute and diff" in rules


# -- epochs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 2, 7])
def test_other_epochs_change_nothing_that_does_not_depend_on_them(tmp_path: Path, cut: int) -> None:
    """Rows in order within the delay are never late, however they are cut: all levels come out the same."""
    arrivals = [(number, at(number * 7 + (number * 5) % 4)) for number in range(21)]
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE t (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds')")
        db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
        db.sql(f"CREATE MATERIALIZED VIEW w AS {COUNTS} ALLOW LATENESS INTERVAL '0 seconds'")
        size = -(-len(arrivals) // cut)
        for start in range(0, len(arrivals), size):
            db.insert("t", arrivals[start : start + size])
        db.advance_watermark("t", at(200))
        assert counts(db, "v") == {0: 9, 60: 8, 120: 4}
        assert counts(db, "w") == {0: 9, 60: 8, 120: 4}
        assert answer(db, "SELECT * FROM stepwell.late_rows") == []


# -- what is refused, and what is doubted -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("CREATE MATERIALIZED VIEW bad AS SELECT a FROM plain EMIT AFTER WATERMARK", 'needs a watermark, and "plain" has none'),
        ("CREATE MATERIALIZED VIEW bad AS SELECT a FROM plain ALLOW LATENESS INTERVAL '1 second'", "needs a watermark"),
        ("CREATE MATERIALIZED VIEW bad AS SELECT id, count(*) AS n FROM t GROUP BY id EMIT AFTER WATERMARK", "needs a time column"),
        ("CREATE MATERIALIZED VIEW bad AS SELECT year(ts) AS y, count(*) AS n FROM t GROUP BY 1 EMIT AFTER WATERMARK", "needs a time column"),
        ("CREATE MATERIALIZED VIEW bad AS SELECT id, ts FROM t ALLOW LATENESS 5", "lateness is an INTERVAL"),
        ("CREATE MATERIALIZED VIEW bad WITH (time_column = 'id_') AS SELECT id, ts FROM t", "is no column of the view"),
        ("CREATE MATERIALIZED VIEW bad WITH (time_column = name) AS SELECT id, ts, 'x' AS name FROM t", "and no time"),
        ("CREATE MATERIALIZED VIEW bad AS SELECT * FROM v$late", 'a view cannot read "v$late"'),
        ("SELECT * FROM t$late", "nothing comes too late for table"),
        ("SELECT * FROM v$early", 'has no face "early"'),
        ("SELECT * FROM nothing$late", "does not exist"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(db: stepwell.Database, statement: str, why: str) -> None:
    db.sql("CREATE TABLE plain (a INT)")
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
    with pytest.raises(StepwellError, match=why.replace("$", r"\$")):
        db.sql(statement).collect()
    assert [name for name, *_ in answer(db, "SHOW MATERIALIZED VIEWS")] == ["v"]


def test_windows_that_do_not_nest_are_doubted(db: stepwell.Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
    sevens = (
        "SELECT TUMBLE_START(b, INTERVAL '7 minutes') AS c, sum(n) AS n FROM v GROUP BY TUMBLE(b, INTERVAL '7 minutes')"
    )
    db.sql(f"CREATE MATERIALIZED VIEW sevens AS {sevens}")
    nineties = sevens.replace("7 minutes", "90 seconds")
    with pytest.warns(StepwellWarning, match='windows of "nineties" do not nest in those of "v"'):
        db.sql(f"CREATE MATERIALIZED VIEW nineties AS {nineties}")


def test_the_time_column_can_be_chosen(db: stepwell.Database) -> None:
    query = "SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS b, TUMBLE_END(ts, INTERVAL '1 minute') AS e, count(*) AS n FROM t GROUP BY TUMBLE(ts, INTERVAL '1 minute')"
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (time_column = e) AS {query} EMIT AFTER WATERMARK")
    db.insert("t", [(1, at(1)), (2, at(61))])
    assert mark(db, "v") == "2024-05-01 09:02:00"
    assert counts(db, "v") == {0: 1}
    assert is_right(db, "v")


def test_explain_says_what_is_kept_and_shown(db: stepwell.Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS} EMIT AFTER WATERMARK")
    explained: list[Any] = answer(db, "EXPLAIN REFRESH v")
    assert any("emit" in str(value) for row in explained for value in row)
