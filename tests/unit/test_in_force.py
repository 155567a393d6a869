"""What is in force at an epoch: definitions and watermarks as they were, whatever has been said since."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from stepwell.catalog import Catalog, barriers, leases, open_catalog, relations, watermarks
from stepwell.catalog.barriers import Derived
from stepwell.model.epochs import Epoch
from stepwell.model.relations import Chunking, Column, Definition, Relation
from stepwell.model.types import INT, STRING
from stepwell.model.views import RelationId
from stepwell.model.watermarks import MarkRecord

COLUMNS = (Column("a", INT), Column("b", INT))
BY_A, BY_B = Definition(chunking=Chunking("a", 10)), Definition(chunking=Chunking("b", 10))
R = RelationId(7)


@pytest.fixture(params=["memory", "postgresql"])
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    url = "memory:" if request.param == "memory" else request.getfixturevalue("postgres").new_database()
    opened = open_catalog(url)
    with opened.write() as tx:
        assert leases.take(tx, leases.look(tx), "me", expires_at=100) == 1
    yield opened
    opened.close()


def close(catalog: Catalog) -> Epoch:
    with catalog.write() as tx:
        return barriers.close(tx, 1, now=0)


def commit(catalog: Catalog, epoch: Epoch, *marks: MarkRecord) -> None:
    with catalog.write() as tx:
        barriers.commit(tx, 1, epoch, [], Derived(marks=marks), now=0)
        barriers.finish(tx, 1, epoch, [], now=0)


def create(catalog: Catalog, name: str = "t") -> Relation:
    with catalog.write() as tx:
        return relations.create(tx, name, BY_A, COLUMNS)


def at(catalog: Catalog, epoch: Epoch | None) -> dict[str, Definition]:
    with catalog.read() as tx:
        return {each.name: each.definition for each in relations.get_all(tx, epoch)}


def test_a_closed_epoch_keeps_the_definitions_it_was_closed_with(catalog: Catalog) -> None:
    kept, gone = create(catalog), create(catalog, "gone")
    first = close(catalog)
    with catalog.write() as tx:
        assert relations.changed_in(tx) == first
        relations.redefine(tx, kept.id, BY_B)
        relations.set_columns(tx, kept.id, (Column("c", STRING),))
        relations.drop(tx, gone.id, now=0)
        relations.create(tx, "new", BY_A, COLUMNS)
        assert relations.changed_in(tx) == first + 1
    assert at(catalog, first) == {"t": BY_A, "gone": BY_A}
    assert at(catalog, Epoch(first + 1)) == at(catalog, None) == {"t": BY_B, "new": BY_A}
    with catalog.read() as tx:
        old, new = relations.get(tx, "t", first), relations.get(tx, "t")
        assert (old.definition, old.columns) == (BY_A, COLUMNS)
        assert (new.definition, new.columns) == (BY_B, (Column("c", STRING),))
        assert relations.by_id(tx, gone.id) is None
        assert relations.by_id(tx, gone.id, first) == gone
        assert relations.droppable(tx, Epoch(first - 1)) == set(), "its last epoch is still to be maintained"
        assert relations.droppable(tx, first) == {gone.id}


def test_what_is_said_twice_in_an_epoch_holds_as_it_was_said_last(catalog: Catalog) -> None:
    table = create(catalog)
    with catalog.write() as tx:
        relations.redefine(tx, table.id, BY_B)
    assert at(catalog, Epoch(1)) == {"t": BY_B}
    with catalog.write() as tx:
        relations.drop(tx, table.id, now=0)
    assert at(catalog, Epoch(1)) == at(catalog, None) == {}, "it was in no epoch"


def test_definitions_are_forgotten_when_no_epoch_needs_them(catalog: Catalog) -> None:
    table = create(catalog)
    first = close(catalog)
    commit(catalog, first)
    with catalog.write() as tx:
        relations.redefine(tx, table.id, BY_B)
        relations.forget_before(tx, first)
    assert at(catalog, first) == {"t": BY_A}
    with catalog.write() as tx:
        relations.forget_before(tx, Epoch(first + 1))
    assert at(catalog, first) == {}
    assert at(catalog, None) == {"t": BY_B}


def mark(catalog: Catalog, epoch: int | None) -> MarkRecord | None:
    with catalog.read() as tx:
        return (watermarks.get_all(tx) if epoch is None else watermarks.get_all_at(tx, Epoch(epoch))).get(R)


def test_the_watermark_of_every_epoch_is_known(catalog: Catalog) -> None:
    for value in (10, None, 30, 40):  # in the second epoch it stays
        commit(catalog, close(catalog), *([] if value is None else [MarkRecord(R, value, value)]))
    found = [mark(catalog, epoch) for epoch in range(1, 6)]
    assert [each.mark for each in found if each] == [10, 10, 30, 40, 40]
    assert mark(catalog, None) == MarkRecord(R, 40, 40)
    with catalog.write() as tx:
        watermarks.forget_before(tx, Epoch(3))
    assert mark(catalog, 2) is None
    assert mark(catalog, 3) == MarkRecord(R, 30, 30)


def test_what_is_asked_during_an_epoch_is_asked_of_the_next(catalog: Catalog) -> None:
    commit(catalog, close(catalog), MarkRecord(R, 10, 10))
    second = close(catalog)
    with catalog.write() as tx:
        watermarks.request(tx, R, 50)
        watermarks.request(tx, R, 40)  # which is less
    assert mark(catalog, second) == MarkRecord(R, 10, 10)
    assert mark(catalog, None) == MarkRecord(R, 10, 10, 50)
    commit(catalog, second, MarkRecord(R, 20, 20))
    assert mark(catalog, second) == MarkRecord(R, 20, 20)
    asked = mark(catalog, None)
    assert asked == MarkRecord(R, 20, 20, 50)
    third = close(catalog)
    commit(catalog, third, dataclasses.replace(asked, mark=50, incoming=50))
    assert mark(catalog, None) == mark(catalog, third) == MarkRecord(R, 50, 50, 50)
    assert mark(catalog, second) == MarkRecord(R, 20, 20)


def test_a_first_request_waits_for_its_epoch_too(catalog: Catalog) -> None:
    first = close(catalog)
    with catalog.write() as tx:
        watermarks.request(tx, R, 50)
    assert mark(catalog, first) is None
    commit(catalog, first, MarkRecord(R, 20, 20))
    assert mark(catalog, first) == MarkRecord(R, 20, 20)
    assert mark(catalog, None) == MarkRecord(R, 20, 20, 50)


def test_a_replaced_view_begins_anew_once_the_epoch_before_has_ended(catalog: Catalog) -> None:
    commit(catalog, close(catalog), MarkRecord(R, 10, 10))
    second = close(catalog)
    with catalog.write() as tx:
        watermarks.end(tx, [R])
        watermarks.request(tx, R, 5)
    commit(catalog, second, MarkRecord(R, 20, 20))
    assert mark(catalog, second) == MarkRecord(R, 20, 20)
    assert mark(catalog, None) == MarkRecord(R, requested=5)
