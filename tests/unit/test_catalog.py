"""The contract of a catalog, on SQLite, on PostgreSQL and in memory alike."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from servers import PostgresServer
from stepwell.catalog import (
    Catalog,
    barriers,
    control,
    files,
    leases,
    loads,
    open_catalog,
    pins,
    relations,
    settings,
    writes,
)
from stepwell.catalog.barriers import Consolidated
from stepwell.catalog.migrate import newest_revision
from stepwell.catalog.schema import metadata
from stepwell.model.epochs import Epoch, EpochState
from stepwell.model.errors import (
    CatalogVersionError,
    ConflictError,
    DuplicateNameError,
    EpochNotRetainedError,
    FencedError,
    UndefinedTableError,
    WarehouseError,
)
from stepwell.model.files import FileStatistics, NewFile, Store
from stepwell.model.loads import Label
from stepwell.model.relations import Chunking, Column, Definition, Relation, WatermarkRule
from stepwell.model.types import BIGINT, INT, STRING, TIMESTAMP
from stepwell.model.writes import EVERYTHING, Position, Receipt, RelationWrite, Touch, Write
from stepwell.plan import Publication

COLUMNS = (Column("a", INT), Column("b", STRING))


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory:"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    opened = open_catalog(url)
    yield opened
    opened.close()


def create(catalog: Catalog, name: str = "t", definition: Definition | None = None) -> Relation:
    with catalog.write() as tx:
        return relations.create(tx, name, definition or Definition(), COLUMNS)


def lead(catalog: Catalog, holder: str = "me") -> int:
    with catalog.write() as tx:
        term = leases.take(tx, leases.look(tx), holder, expires_at=100)
    assert term is not None
    return term


def new_file(path: str, store: Store = Store.ROWS, rows: int = 1, retracted: int = 0) -> NewFile:
    return NewFile(store, path, FileStatistics(rows, retracted, 10, 5, 6, "a", "z"))


def insert(
    catalog: Catalog, relation: Relation, path: str, touch: Touch = EVERYTHING, read_at: int | None = None
) -> Receipt:
    write = RelationWrite(relation.id, (new_file(path),), touch, None if read_at is None else Position(read_at))
    with catalog.write() as tx:
        return writes.acknowledge(tx, Write((write,)), now=7, wants_barrier=True)


def barrier(catalog: Catalog, term: int) -> Epoch:
    with catalog.write() as tx:
        epoch = barriers.close(tx, term, 10)
    with catalog.write() as tx:
        barriers.commit(tx, term, epoch, [], barriers.Derived(), 11)
    with catalog.write() as tx:
        barriers.finish(tx, term, epoch, [], 12)
    return epoch


def test_a_relation_comes_back_as_it_was_created(catalog: Catalog) -> None:
    definition = Definition(key=("a",), chunking=Chunking("ts", 10), watermark=WatermarkRule("ts", 5))
    with catalog.write() as tx:
        made = relations.create(tx, "My T", definition, (*COLUMNS, Column("ts", TIMESTAMP, False)))
    with catalog.read() as tx:
        assert relations.get(tx, "my t") == made
        assert relations.get_all(tx) == [made]


def test_names_are_unique_without_case_and_free_again_after_a_drop(catalog: Catalog) -> None:
    first = create(catalog, "t")
    with pytest.raises(DuplicateNameError):
        create(catalog, "T")
    with catalog.write() as tx:
        relations.drop(tx, first.id, now=1)
    assert create(catalog, "T").id != first.id


def test_an_unknown_name_comes_with_the_nearest(catalog: Catalog) -> None:
    create(catalog, "trades")
    with pytest.raises(UndefinedTableError) as caught, catalog.read() as tx:
        relations.get(tx, "trade")
    assert caught.value.hint == 'Did you mean "trades"?'


def test_columns_are_those_of_the_epoch_asked_for(catalog: Catalog) -> None:
    relation, term = create(catalog), lead(catalog)
    barrier(catalog, term)
    with catalog.write() as tx:
        relations.add_columns(tx, relation, (Column("c", BIGINT),))
    with catalog.read() as tx:
        assert [each.name for each in relations.get(tx, "t", Epoch(1)).columns] == ["a", "b"]
        assert [each.name for each in relations.get(tx, "t", Epoch(2)).columns] == ["a", "b", "c"]
        assert [each.name for each in relations.get(tx, "t").columns] == ["a", "b", "c"]
    with pytest.raises(DuplicateNameError), catalog.write() as tx:
        relations.add_columns(tx, relation, (Column("C", BIGINT),))


def test_rename_takes_effect_and_refuses_a_taken_name(catalog: Catalog) -> None:
    first = create(catalog, "a")
    create(catalog, "b")
    with pytest.raises(DuplicateNameError), catalog.write() as tx:
        relations.rename(tx, first.id, "B")
    with catalog.write() as tx:
        relations.rename(tx, first.id, "c")
    with catalog.read() as tx:
        assert relations.get(tx, "c").id == first.id


def test_row_numbers_are_never_given_twice_and_unused_ones_come_back(catalog: Catalog) -> None:
    relation = create(catalog)
    with catalog.write() as tx:
        first = relations.reserve_rows(tx, relation.id, 100)
        relations.return_rows(tx, relation.id, first + 10, first + 100)
        second = relations.reserve_rows(tx, relation.id, 100)
        relations.return_rows(tx, relation.id, first + 10, first + 50)
        third = relations.reserve_rows(tx, relation.id, 1)
    assert second == first + 10
    assert third == second + 100


def test_a_write_becomes_readable_with_its_epoch(catalog: Catalog) -> None:
    relation, term = create(catalog), lead(catalog)
    receipt = insert(catalog, relation, "x")
    assert receipt == Receipt(1, Position(1))
    with catalog.read() as tx:
        assert barriers.has_requests(tx)
        assert barriers.has_input(tx)
        assert files.content(tx, relation.id, Epoch(0)) == []
    assert barrier(catalog, term) == 1
    with catalog.read() as tx:
        [found] = files.content(tx, relation.id, Epoch(1))
        assert (found.path, found.from_epoch, found.statistics) == ("x", 1, FileStatistics(1, 0, 10, 5, 6, "a", "z"))
        [record] = barriers.readable(tx)
        assert (record.epoch, record.changed, record.inserted, record.readable_at) == (1, 1, 1, 12)
        assert control.look(tx).readable_epoch == 1
        assert not barriers.has_requests(tx)
        assert not barriers.has_input(tx)


def test_a_write_to_a_dropped_relation_is_refused_whole(catalog: Catalog) -> None:
    kept, dropped = create(catalog, "kept"), create(catalog, "dropped")
    with catalog.write() as tx:
        relations.drop(tx, dropped.id, now=1)
    both = tuple(RelationWrite(each.id, (new_file("x"),)) for each in (kept, dropped))
    with pytest.raises(UndefinedTableError), catalog.write() as tx:
        writes.acknowledge(tx, Write(both), 1, wants_barrier=False)
    with catalog.read() as tx:
        assert files.latest(tx, kept.id) == []


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        (EVERYTHING, EVERYTHING, True),
        (Touch(chunks=frozenset({1})), Touch(chunks=frozenset({1, 2})), True),
        (Touch(chunks=frozenset({1})), Touch(chunks=frozenset({2})), False),
        (Touch(chunks=frozenset({1})), EVERYTHING, True),
        (Touch(keys=frozenset({-5})), Touch(keys=frozenset({-5, 9})), True),
        (Touch(keys=frozenset({-5})), Touch(keys=frozenset({9})), False),
    ],
)
def test_a_statement_conflicts_with_what_touched_the_same_since_it_read(
    catalog: Catalog, mine: Touch, theirs: Touch, conflict: bool
) -> None:
    relation = create(catalog)
    read_at = insert(catalog, relation, "before", mine).position
    insert(catalog, relation, "theirs", theirs)
    if conflict:
        with pytest.raises(ConflictError):
            insert(catalog, relation, "mine", mine, read_at)
    else:
        insert(catalog, relation, "mine", mine, read_at)
    with catalog.read() as tx:
        assert ("mine" in {file.path for file in files.latest(tx, relation.id)}) is not conflict


def test_it_is_known_whether_a_relation_was_written_between_two_positions(catalog: Catalog) -> None:
    one, other = create(catalog, "one"), create(catalog, "other")
    insert(catalog, one, "x")
    insert(catalog, other, "y")
    with catalog.read() as tx:
        assert writes.is_touched(tx, one.id, after=Position(0), upto=Position(2))
        assert not writes.is_touched(tx, one.id, after=Position(1), upto=Position(2))
        assert writes.is_touched(tx, other.id, after=Position(1), upto=Position(2))


def test_plain_inserts_never_conflict_and_a_forgotten_past_always_does(catalog: Catalog) -> None:
    relation = create(catalog)
    insert(catalog, relation, "1")
    insert(catalog, relation, "2")
    with catalog.write() as tx:
        writes.forget_before(tx, at=100)
    insert(catalog, relation, "3")
    with pytest.raises(ConflictError):
        insert(catalog, relation, "4", Touch(chunks=frozenset({99})), read_at=1)


def test_every_step_of_a_barrier_is_refused_to_a_term_that_is_over(catalog: Catalog) -> None:
    relation, old = create(catalog), lead(catalog, "old")
    insert(catalog, relation, "x")
    with catalog.write() as tx:
        epoch = barriers.close(tx, old, 1)
    new = lead(catalog, "new")
    for step in (
        lambda tx: barriers.close(tx, old, 1),
        lambda tx: barriers.commit(tx, old, epoch, [], barriers.Derived(), 1),
        lambda tx: barriers.finish(tx, old, epoch, [], 1),
    ):
        with pytest.raises(FencedError), catalog.write() as tx:
            step(tx)
    with catalog.read() as tx:
        assert [each.state for each in barriers.unfinished(tx)] == [EpochState.ALIGNED]
    with catalog.write() as tx:
        barriers.commit(tx, new, epoch, [], barriers.Derived(), 1)


def test_a_lease_is_taken_once_renewed_and_released(catalog: Catalog) -> None:
    with catalog.write() as tx:
        free = leases.look(tx)
        term = leases.take(tx, free, "me", 50)
    assert term is not None
    with catalog.write() as tx:
        assert leases.take(tx, free, "you", 50) is None
        assert leases.renew(tx, term, 90)
        assert not leases.renew(tx, term + 1, 90)
        assert leases.look(tx).expires_at == 90
        leases.release(tx, term)
        assert leases.look(tx).holder is None
        assert not leases.renew(tx, term, 95)


def test_a_consolidated_changelog_stands_for_what_was_acknowledged(catalog: Catalog) -> None:
    relation, term = create(catalog), lead(catalog)
    insert(catalog, relation, "one")
    insert(catalog, relation, "two")
    with catalog.write() as tx:
        epoch = barriers.close(tx, term, 1)
        [inputs] = files.written_in(tx, epoch).values()
    both = Consolidated(tuple(inputs), (new_file("both", Store.CHANGES, rows=3, retracted=1),))
    with catalog.write() as tx:
        barriers.commit(tx, term, epoch, [both], barriers.Derived(), 1)
        assert [file.path for file in files.content(tx, relation.id, epoch)] == ["both"]
        barriers.finish(tx, term, epoch, [], 1)
        assert [(each.inserted, each.retracted) for each in barriers.readable(tx)] == [(2, 1)]


def test_a_merge_stands_for_its_inputs_at_every_epoch(catalog: Catalog) -> None:
    relation, term = create(catalog), lead(catalog)
    for path in ("1", "2", "3"):
        insert(catalog, relation, path)
        barrier(catalog, term)
    with catalog.write() as tx:
        inputs = files.content(tx, relation.id, Epoch(2))
        files.supersede(tx, relation.id, inputs, [new_file("merged")], now=1)
    with catalog.read() as tx:
        assert [file.path for file in files.content(tx, relation.id, Epoch(1))] == ["merged"]
        assert [file.path for file in files.content(tx, relation.id, Epoch(3))] == ["3", "merged"]
        [merged] = files.logged_between(tx, relation.id, Epoch(0), Epoch(2))
        assert (merged.from_epoch, merged.last_epoch, merged.spans_epochs) == (1, 2, True)
    with pytest.raises(ConflictError), catalog.write() as tx:
        files.supersede(tx, relation.id, inputs, [new_file("again")], now=1)


def test_a_fold_ends_its_inputs_at_an_epoch_and_keeps_the_past(catalog: Catalog) -> None:
    relation, term = create(catalog), lead(catalog)
    for path in ("1", "2"):
        insert(catalog, relation, path)
        barrier(catalog, term)
    with catalog.write() as tx:
        inputs = files.content(tx, relation.id, Epoch(2))
        files.close(tx, relation.id, inputs, [new_file("folded")], Epoch(2), now=1)
    with catalog.read() as tx:
        assert [file.path for file in files.content(tx, relation.id, Epoch(1))] == ["1"]
        assert [file.path for file in files.content(tx, relation.id, Epoch(2))] == ["folded"]
        assert [file.path for file in files.logged_between(tx, relation.id, Epoch(0), Epoch(2))] == ["1", "2"]
        assert [(file.path, at) for file, at, _ in files.with_endings(tx)] == [("1", 1), ("2", 1)]


def test_what_was_published_is_remembered(catalog: Catalog) -> None:
    relation, term = create(catalog), lead(catalog)
    insert(catalog, relation, "x")
    with catalog.write() as tx:
        epoch = barriers.close(tx, term, 1)
        barriers.commit(tx, term, epoch, [], barriers.Derived(), 1)
        [file] = files.content(tx, relation.id, epoch)
        barriers.finish(tx, term, epoch, [(relation.id, Publication(epoch, (file,), ()))], 1)
        assert barriers.publication_state(tx, relation.id) == (1, epoch)
        assert files.published(tx, relation.id) == [file]
        copy = new_file("copy")
        second = Publication(epoch, (), (file,), copies=(copy,))
        barriers.require_publication(tx, relation.id, 1)
        barriers.record_publications(tx, [(relation.id, second)], 2)
        [published] = files.published(tx, relation.id)
        assert published.path == "copy"
        assert files.content(tx, relation.id, epoch) == [file], "a copy is content at no epoch"
        assert [each.path for each, *_ in files.with_endings(tx)] == []
        barriers.record_publications(tx, [(relation.id, Publication(epoch, (file,), (published,)))], 3)
        assert [(each.path, at) for each, at, _ in files.with_endings(tx)] == [("copy", 3)], "a file of content goes on"
        with pytest.raises(ConflictError):
            barriers.require_publication(tx, relation.id, 1)


def test_epochs_are_found_by_number_and_time_and_forgotten(catalog: Catalog) -> None:
    relation, term = create(catalog), lead(catalog)
    for path in ("1", "2", "3"):
        insert(catalog, relation, path)
        barrier(catalog, term)
    with catalog.write() as tx:
        assert barriers.require_readable(tx, 3) == 3
        assert barriers.epoch_at(tx, 12) == 3
        barriers.forget_epochs(tx, Epoch(2))
        assert barriers.oldest(tx) == 2
    for wrong in (1, 4):
        with pytest.raises(EpochNotRetainedError) as caught, catalog.read() as tx:
            barriers.require_readable(tx, wrong)
        assert "oldest epoch kept is 2" in str(caught.value)
    with pytest.raises(EpochNotRetainedError), catalog.read() as tx:
        barriers.epoch_at(tx, 11)


def test_pins_and_settings_are_kept(catalog: Catalog) -> None:
    with catalog.write() as tx:
        number = pins.pin(tx, Epoch(5), "a backfill", 1)
        pins.pin(tx, Epoch(3), "another", 1)
        settings.put(tx, "retention", "1 day")
        settings.put(tx, "retention", "2 days")
    with catalog.write() as tx:
        assert pins.pinned(tx) == [3, 5]
        pins.unpin(tx, number)
        assert pins.pinned(tx) == [3]
        assert settings.get(tx, "retention") == "2 days"
        assert settings.get(tx, "other") is None


def test_a_transaction_that_raises_leaves_nothing(catalog: Catalog) -> None:
    def create_and_fail() -> None:
        with catalog.write() as tx:
            relations.create(tx, "t", Definition(), COLUMNS)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        create_and_fail()
    with catalog.read() as tx:
        assert relations.find(tx, "t") is None


def test_concurrent_writers_get_positions_of_their_own(catalog: Catalog) -> None:
    relation = create(catalog)
    found: list[int] = []

    def work(number: int) -> None:
        for turn in range(10):
            found.append(insert(catalog, relation, f"{number}-{turn}").position)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 41))
    with catalog.read() as tx:
        assert len(files.latest(tx, relation.id)) == 40


def test_the_migrations_lead_to_the_schema(catalog: Catalog) -> None:
    with catalog._engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() == newest_revision()
        assert compare_metadata(context, metadata) == []


def test_opening_again_changes_nothing(url: str) -> None:
    if url == "memory:":
        return
    first = open_catalog(url)
    create(first)
    first.close()
    second = open_catalog(url)
    with second.read() as tx:
        assert relations.find(tx, "t") is not None
    second.close()


def test_a_catalog_of_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    open_catalog(url).close()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(CatalogVersionError) as caught:
        open_catalog(url)
    assert "9999" in str(caught.value)
    assert newest_revision() in str(caught.value)


def test_a_catalog_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for url in ("nonsense", f"sqlite:///{tmp_path}/file/catalog.db", "mysql://me:secret@h/d"):
        with pytest.raises(WarehouseError) as caught:
            open_catalog(url)
        assert "secret" not in str(caught.value)


def test_a_transaction_that_stands_still_is_ended_and_blocks_nobody(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    sleeper, other = open_catalog(url), open_catalog(url)
    term = lead(sleeper)

    def sleep() -> None:
        with sleeper.write() as tx:
            tx.execute(sa.text("SET idle_in_transaction_session_timeout = '100ms'"))
            leases.check(tx, term)
            with other.write() as waiting:  # waits until the server has ended the first
                assert leases.take(waiting, leases.look(waiting), "you", expires_at=200) == term + 1
            leases.check(tx, term)

    with pytest.raises(ConflictError, match="stood still"):
        sleep()
    with pytest.raises(FencedError), sleeper.write() as tx:
        leases.check(tx, term)
    sleeper.close()
    other.close()


def test_a_label_is_recorded_with_its_load_and_only_once(catalog: Catalog) -> None:
    relation = create(catalog)
    write = RelationWrite(relation.id, (new_file("a"),), labels=(Label("load-7", "d", 2, 5),))
    with catalog.write() as tx:
        receipt = writes.acknowledge(tx, Write((write,)), now=7, wants_barrier=False)
    with pytest.raises(ConflictError, match="load-7"), catalog.write() as tx:
        writes.acknowledge(tx, Write((write,)), now=8, wants_barrier=False)
    with catalog.read() as tx:
        [load] = loads.get_all(tx)
        assert loads.find(tx, "load-7") == load
        assert loads.find(tx, "load-8") is None
        assert control.look(tx).last_position == receipt.position  # nothing of the second was kept
    assert (load.label, load.relation, load.epoch, load.at) == (write.labels[0], relation.id, receipt.epoch, 7)


def test_a_process_that_an_upgrade_has_overtaken_stops_before_it_writes(catalog: Catalog) -> None:
    relation = create(catalog)
    with catalog.write() as tx:
        tx.execute(sa.text("UPDATE control SET format = 99, program = '9.9'"))
    with pytest.raises(CatalogVersionError, match=r"belongs to stepwell 9\.9 now"):
        insert(catalog, relation, "a")
    with pytest.raises(CatalogVersionError), catalog.read() as tx:
        control.look(tx)
