"""Lives in the catalog: in force in ranges of epochs, and settled by the epochs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from stepwell.catalog import Catalog, barriers, leases, lives, open_catalog
from stepwell.catalog.barriers import Derived
from stepwell.catalog.schema import lives as table
from stepwell.model.epochs import Epoch
from stepwell.model.lifecycle import (
    Building,
    ByParent,
    ByUser,
    Failed,
    Life,
    Outcome,
    Owed,
    Paused,
    Serving,
    Unpopulated,
)
from stepwell.model.views import RelationId

V, W = RelationId(7), RelationId(8)
LIVES: list[Life] = [
    Building(),
    Building(job=3),
    Building(failed="by zero"),
    Unpopulated(),
    Serving(Epoch(1)),
    Serving(Epoch(1), Paused(ByUser())),
    Serving(Epoch(1), Paused(ByParent(V)), Owed.RECOMPUTE),
    Serving(Epoch(1), Failed("by zero"), Owed.REWRITE),
    Serving(Epoch(1), owed=Owed.CATCH_UP),
]


@pytest.fixture(params=["memory", "postgresql"])
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    url = "memory:" if request.param == "memory" else request.getfixturevalue("postgres").new_database()
    opened = open_catalog(url)
    with opened.write() as tx:
        assert leases.take(tx, leases.look(tx), "me", expires_at=100) == 1
    yield opened
    opened.close()


def put(catalog: Catalog, id_: RelationId, life: Life) -> None:
    with catalog.write() as tx:
        lives.put(tx, id_, life)


def close(catalog: Catalog) -> Epoch:
    with catalog.write() as tx:
        return barriers.close(tx, 1, now=0)


def commit(catalog: Catalog, epoch: Epoch, *outcomes: Outcome) -> None:
    with catalog.write() as tx:
        barriers.commit(tx, 1, epoch, [], Derived(outcomes=outcomes), now=0)
        barriers.finish(tx, 1, epoch, [], now=0)


def at(catalog: Catalog, epoch: int | None = None) -> dict[RelationId, Life]:
    with catalog.read() as tx:
        return lives.get_all(tx) if epoch is None else lives.get_all_at(tx, Epoch(epoch))


def count(catalog: Catalog) -> int:
    with catalog.read() as tx:
        return int(tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


@pytest.mark.parametrize("life", LIVES)
def test_a_life_comes_back_as_it_was_put(catalog: Catalog, life: Life) -> None:
    put(catalog, V, life)
    assert at(catalog) == at(catalog, 1) == {V: life}


def test_a_view_that_follows_reflects_every_epoch_and_stays_one_row(catalog: Catalog) -> None:
    put(catalog, V, Building())
    epoch = close(catalog)
    commit(catalog, epoch, Outcome(V, Building(), Serving(epoch)))
    for _ in range(5):
        epoch = close(catalog)
        commit(catalog, epoch, Outcome(V, Serving(Epoch(epoch - 1)), Serving(epoch)))
    assert at(catalog) == {V: Serving(epoch)}
    assert [at(catalog, each)[V] for each in range(1, 7)] == [Serving(Epoch(each)) for each in range(1, 7)]
    assert count(catalog) == 1


def test_an_epoch_that_is_closed_does_not_hear_what_is_said_since(catalog: Catalog) -> None:
    put(catalog, V, Serving(Epoch(0)))
    put(catalog, W, Serving(Epoch(0)))
    epoch = close(catalog)
    paused = Serving(Epoch(0), Paused(ByUser()))
    put(catalog, V, paused)
    with catalog.write() as tx:
        lives.end(tx, [W])
        assert lives.changed_since(tx, epoch) == {V, W}
    assert at(catalog, epoch) == {V: Serving(Epoch(0)), W: Serving(Epoch(0))}
    assert at(catalog) == at(catalog, epoch + 1) == {V: paused}
    commit(catalog, epoch)
    assert at(catalog, epoch) == {V: Serving(epoch), W: Serving(epoch)}
    assert at(catalog) == {V: Serving(epoch, Paused(ByUser()))}, "the epoch brought it this far before the pause"


def test_a_view_that_waits_to_be_built_stays_one_row(catalog: Catalog) -> None:
    put(catalog, V, Building())
    for _ in range(3):
        commit(catalog, close(catalog), Outcome(V, Building(), Building()))
    assert (at(catalog), count(catalog)) == ({V: Building()}, 1)


def test_a_resumed_view_does_not_skip_what_it_missed(catalog: Catalog) -> None:
    put(catalog, V, Serving(Epoch(0), Paused(ByUser())))
    epoch = close(catalog)
    put(catalog, V, Serving(Epoch(0), owed=Owed.CATCH_UP))
    commit(catalog, epoch)
    assert at(catalog)[V] == Serving(Epoch(0), owed=Owed.CATCH_UP)
    second = close(catalog)
    commit(catalog, second, Outcome(V, at(catalog)[V], Serving(second)))
    assert at(catalog, epoch)[V] == Serving(Epoch(0), Paused(ByUser()))
    assert at(catalog)[V] == Serving(second)


def test_what_an_epoch_makes_of_a_view_holds_from_it_on(catalog: Catalog) -> None:
    put(catalog, V, Serving(Epoch(0)))
    first = close(catalog)
    commit(catalog, first)
    second = close(catalog)
    stopped = Serving(first, Failed("by zero"))
    commit(catalog, second, Outcome(V, Serving(first), stopped))
    assert (at(catalog, first)[V], at(catalog, second)[V], at(catalog)[V]) == (Serving(first), stopped, stopped)
    third = close(catalog)
    put(catalog, V, Serving(first, owed=Owed.RECOMPUTE))
    commit(catalog, third)
    with catalog.write() as tx:
        lives.forget_before(tx, third)
    assert (count(catalog), at(catalog, third)[V]) == (2, stopped)
    with catalog.write() as tx:
        lives.forget(tx, [V])
    assert at(catalog) == {}
