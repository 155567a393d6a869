"""Thresholds and logs in the catalog, on SQLite and PostgreSQL: writes are tested against what was said before them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stepwell.catalog import Catalog, barriers, control, deferrals, leases, open_catalog, relations
from stepwell.model.epochs import Epoch
from stepwell.model.intervals import ALWAYS, Interval
from stepwell.model.invalidations import Invalidation, touched
from stepwell.model.relations import Column, Definition, RelationKind
from stepwell.model.types import parse_type
from stepwell.model.views import Deferral, RelationId, ViewDefinition
from stepwell.model.watermarks import NEVER, Transfer

COLUMNS = (Column("ts", parse_type("TIMESTAMP")),)
HOUR = 3_600_000_000


@pytest.fixture(params=["memory", "postgresql"])
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    url = "memory:" if request.param == "memory" else request.getfixturevalue("postgres").new_database()
    opened = open_catalog(url)
    yield opened
    opened.close()


def two_views(catalog: Catalog) -> tuple[RelationId, RelationId, RelationId]:
    """A table, and two deferred views of it: of hours and of days."""
    with catalog.write() as tx:
        source = relations.create(tx, "t", Definition(), COLUMNS).id
        views = []
        for name, width in (("hours", HOUR), ("days", 24 * HOUR)):
            deferral = Deferral(source, "ts", "ts", Transfer(width, width))
            view = ViewDefinition("", "", (source,), (), deferral=deferral)
            views.append(relations.create(tx, name, Definition(RelationKind.MATERIALIZED, view=view), COLUMNS).id)
            deferrals.register(tx, views[-1], deferral)
    return source, views[0], views[1]


def close(catalog: Catalog) -> Epoch:
    """One epoch more."""
    with catalog.write() as tx:
        term = leases.look(tx).term or leases.take(tx, leases.look(tx), "me", 2**60)
        assert term is not None
        epoch = barriers.close(tx, term, 1)
        barriers.commit(tx, term, epoch, [], barriers.Derived(), 1)
        barriers.finish(tx, term, epoch, [], 1)
    return epoch


def test_only_what_is_below_the_threshold_is_logged_and_each_epoch_sees_its_own_log(catalog: Catalog) -> None:
    source, hours, days = two_views(catalog)
    with catalog.write() as tx:
        epoch = control.lock(tx).open_epoch
        deferrals.log_change(tx, source, {"ts": (Interval(0, 5),)}, epoch, 100)
        assert deferrals.source_log(tx, source, "ts") == (), "nothing is stored yet, so nothing can be wrong"
        deferrals.raise_threshold(tx, source, "ts", 10 * HOUR)
        assert deferrals.raise_threshold(tx, source, "ts", 5 * HOUR) == epoch
        assert deferrals.threshold(tx, source, "ts") == 10 * HOUR, "it never moves back"
        deferrals.log_change(tx, source, {"ts": (Interval(9 * HOUR, 12 * HOUR),)}, epoch, 100)
        assert touched(deferrals.source_log(tx, source, "ts")) == (Interval(9 * HOUR, 10 * HOUR),)
        deferrals.log_change(tx, source, {}, epoch, 100)
        assert touched(deferrals.source_log(tx, source, "ts")) == (Interval(NEVER, 10 * HOUR),)
    before = close(catalog)
    with catalog.write() as tx:
        deferrals.replace_log(tx, hours, ())
        deferrals.replace_log(tx, days, ())
        hourly = relations.by_id(tx, hours)
        assert hourly is not None
        assert hourly.deferral is not None
        deferrals.move_logs(tx, hourly.deferral, 100)
        assert deferrals.source_log(tx, source, "ts") == ()
        assert touched(deferrals.view_log(tx, hours)) == (Interval(NEVER, 10 * HOUR),)
        assert touched(deferrals.view_log(tx, days)) == (Interval(NEVER, 24 * HOUR),), "in buckets of its own"
        assert touched(deferrals.source_log(tx, source, "ts", before)) == (Interval(NEVER, 10 * HOUR),)
        assert deferrals.view_log(tx, hours, before) == (Invalidation(ALWAYS, Epoch(0)),)
        deferrals.raise_completed(tx, hours, 10 * HOUR)
        deferrals.raise_completed(tx, hours, 3 * HOUR)
        assert (deferrals.completed(tx, hours), deferrals.completed(tx, hours, before)) == (10 * HOUR, NEVER)


def test_a_long_log_is_shortened_and_the_last_view_takes_all_with_it(catalog: Catalog) -> None:
    source, hours, days = two_views(catalog)
    with catalog.write() as tx:
        deferrals.raise_threshold(tx, source, "ts", 10**15)
        for number in range(30):
            start = number * 10 * HOUR
            deferrals.log_change(tx, source, {"ts": (Interval(start, start + 1),)}, Epoch(1 + number), 8)
        log = deferrals.source_log(tx, source, "ts")
        assert len(log) <= 8
        for number in range(30):
            at = number * 10 * HOUR
            assert any(each.range.start <= at < each.range.end and each.epoch > number for each in log)
        deferrals.forget(tx, [hours])
        assert deferrals.threshold(tx, source, "ts") == 10**15
        deferrals.forget(tx, [days])
        assert deferrals.threshold(tx, source, "ts") is None
        assert deferrals.source_log(tx, source, "ts") == ()
