"""Nexmark's stream: the same for the same seed, in its known proportions."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from collections import Counter

from stepwell.bench.nexmark import (
    EMPTY,
    GAP,
    JITTER,
    START,
    TABLES,
    Auction,
    Batch,
    Bid,
    Correction,
    Event,
    Generator,
    Person,
    after,
    stream,
)
from stepwell.sql import parse
from stepwell.sql.statements import CreateTable

SIZES = [(200, 0), (150, 14), (100, 0), (50, 21)]


def columns_of(table: str) -> tuple[str, ...]:
    [statement] = parse(f"CREATE TABLE {table} ({TABLES[table]})")
    assert isinstance(statement.body, CreateTable)
    return tuple(column.name for column in statement.body.columns)


def first(count: int, seed: int = 1) -> list[Event]:
    return list(itertools.islice(Generator(seed), count))


def test_a_stream_is_the_same_for_the_same_seed() -> None:
    assert first(500) == first(500)
    assert first(500) != first(500, seed=2)
    assert list(stream(1, SIZES)) == list(stream(1, SIZES))
    assert list(stream(1, SIZES)) != list(stream(2, SIZES))


def test_a_stream_is_the_same_in_another_process() -> None:
    code = f"from stepwell.bench.nexmark import stream; print(list(stream(1, {SIZES})))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == str(list(stream(1, SIZES)))


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_are_bids() -> None:
    assert Counter(type(event) for event in first(5000)) == {Person: 100, Auction: 300, Bid: 4600}


def test_the_rows_are_those_of_the_tables() -> None:
    for table, kind in (("person", Person), ("auction", Auction), ("bid", Bid)):
        assert columns_of(table) == tuple(field.name for field in dataclasses.fields(kind))


def test_few_auctions_and_bidders_draw_many_bids() -> None:
    bids = [event for event in first(5000) if isinstance(event, Bid)]
    for name in ("auction", "bidder"):
        seen = Counter(getattr(bid, name) for bid in bids)
        tenth = sum(count for _, count in seen.most_common(len(seen) // 10))
        assert 0.4 < tenth / len(bids) < 0.9, name


def test_prices_are_spread_over_powers_of_ten() -> None:
    powers = Counter(len(str(event.price)) for event in first(5000) if isinstance(event, Bid))
    assert set(powers) >= set(range(3, 9))
    assert all(0.8 < powers[digits] / (4600 / 6) < 1.2 for digits in range(3, 9))


def test_event_times_advance_with_some_out_of_order_and_some_equal() -> None:
    times = [event.date_time for event in first(5000)]
    assert abs(times[-1] - (START + 5000 * GAP)) < 10 * GAP
    steps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert 0.2 < sum(step < 0 * GAP for step in steps) / len(steps) < 0.5
    assert 0.05 < sum(step == 0 * GAP for step in steps) / len(steps) < 0.2


def test_a_bid_is_for_an_auction_and_by_a_person_that_came_before() -> None:
    people, auctions = set(), set()
    for event in first(1000):
        match event:
            case Person(id=id_):
                people.add(id_)
            case Auction(id=id_, seller=seller):
                auctions.add(id_)
                assert seller in people
            case Bid(auction=auction, bidder=bidder):
                assert auction in auctions
                assert bidder in people


def test_batches_have_late_and_repeated_bids() -> None:
    start, second, *_ = stream(1, SIZES)
    assert any(count > 1 for count in Counter(start.rows["bid"]).values())
    assert min(bid.date_time for bid in second.rows["bid"]) < START + (SIZES[0][0] - JITTER) * GAP


def test_every_correction_touches_a_row_and_every_kind_occurs() -> None:
    tables = EMPTY
    kinds: set[tuple[str, tuple[str, ...]]] = set()
    for batch in stream(3, SIZES):
        step = after(tables, Batch(batch.rows))
        for correction in batch.corrections:
            assert any(correction.touches(row) for row in step[correction.table])
            kinds.add((correction.table, tuple(correction.new or ())))
            step[correction.table] = correction.applied(step[correction.table])
        tables = after(tables, batch)
        assert tables == step
    assert kinds == {
        ("bid", ()), ("bid", ("price",)), ("auction", ()), ("auction", ("expires",)), ("auction", ("reserve",)), ("person", ("city", "state")),
    }  # fmt: skip


def test_keys_are_unique_whatever_is_sent_again() -> None:
    tables = EMPTY
    for batch in stream(3, SIZES):
        tables = after(tables, batch)
        for table in ("person", "auction"):
            ids = [row.id for row in tables[table] if not isinstance(row, Bid)]
            assert len(ids) == len(set(ids))


def test_a_correction_is_a_statement() -> None:
    gone = Correction("bid", {"auction": 1000, "date_time": START})
    assert gone.sql == "DELETE FROM bid WHERE auction = 1000 AND date_time = TIMESTAMP '2024-12-31 23:59:00+00:00'"
    moved = Correction("person", {"id": 1}, {"city": "Coeur d'Alene", "state": "ID"})
    assert moved.sql == r"UPDATE person SET city = 'Coeur d\'Alene', state = 'ID' WHERE id = 1"
