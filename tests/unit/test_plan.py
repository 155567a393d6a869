"""Planning: content, compaction, publication, retention, assignment."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.model.epochs import Epoch, EpochRecord, EpochState
from stepwell.model.errors import TypeMismatchError
from stepwell.model.files import LATEST, DataFile, FileStatistics, NewFile, Store
from stepwell.model.limits import Limits
from stepwell.model.relations import Column
from stepwell.model.types import VOID, parse_type
from stepwell.plan import (
    Backlog,
    Content,
    PublicationPlan,
    PublicationTiming,
    changes_between,
    check_assignment,
    choose_fold,
    choose_merge,
    content_at,
    needs_consolidation,
    oldest_kept,
    plan_publication,
    removable,
    time_publication,
)

_ids = itertools.count(1)


def file(
    from_epoch: int,
    rows: int = 1,
    *,
    store: Store = Store.ROWS,
    last_epoch: int | None = None,
    until_epoch: int | None = None,
    logged: bool = True,
    times: tuple[int, int] | None = None,
    retracted: int = 0,
    size: int | None = None,
) -> DataFile:
    low, high = times or (None, None)
    return DataFile(
        next(_ids),
        1,
        store,
        f"{from_epoch}.parquet",
        Epoch(from_epoch),
        Epoch(last_epoch or from_epoch),
        None if until_epoch is None else Epoch(until_epoch),
        logged,
        FileStatistics(rows, retracted, 100 * rows if size is None else size, low, high),
    )


def test_content_is_what_began_before_and_has_not_ended() -> None:
    old, new, ended, later = file(1), file(3), file(2, until_epoch=3), file(4)
    assert content_at([old, new, ended, later], Epoch(3)).rows == (old, new)
    assert content_at([old, new, ended, later], Epoch(2)).rows == (old, ended)


def test_a_merged_file_is_cut_where_it_reaches_beyond_the_epoch() -> None:
    merged = file(1, last_epoch=8)
    assert content_at([merged], Epoch(5)).upto == 5
    assert content_at([merged], Epoch(8)).upto is None


def test_staged_files_are_seen_after_everything_acknowledged() -> None:
    staged = NewFile(Store.ROWS, "x", FileStatistics(1, 0, 1)).staged(1)
    assert content_at([file(1), staged], LATEST).rows[-1] == staged


def test_changes_are_files_with_a_changelog_in_the_range() -> None:
    first, merged, folded = file(1), file(2, last_epoch=5), file(3, logged=False)
    assert changes_between([first, merged, folded], Epoch(1), Epoch(3)) == (merged,)


def test_plain_inserts_need_no_consolidation_however_many() -> None:
    change = replace(file(1, store=Store.CHANGES), path="one/part-1")
    assert not needs_consolidation([file(1), file(1)])
    assert not needs_consolidation([change])
    assert not needs_consolidation([change, replace(change, path="one/part-2")]), "the files of one statement"
    assert needs_consolidation([file(1), change])


@settings(max_examples=200 if os.environ.get("STEPWELL_TORTURE") else 10)
@given(st.lists(st.tuples(st.integers(1, 3000), st.booleans()), min_size=200, max_size=400))
def test_there_are_never_more_than_64_live_files(writes: list[tuple[int, bool]]) -> None:
    live: list[DataFile] = []
    for epoch, (rows, inserts) in enumerate(writes, 1):
        live.append(file(epoch, rows, store=Store.ROWS if inserts else Store.CHANGES))
        while (merge := choose_merge(live, Epoch(epoch), Limits())) is not None:
            merged = file(
                min(each.from_epoch for each in merge.inputs),
                merge.rows,
                store=merge.store,
                last_epoch=max(each.last_epoch for each in merge.inputs),
            )
            live = [each for each in live if each not in merge.inputs] + [merged]
        assert len(live) <= 64
    assert sum(each.statistics.rows for each in live) == sum(rows for rows, _ in writes)


def test_a_merge_takes_only_what_can_be_read_already() -> None:
    assert choose_merge([file(epoch) for epoch in range(1, 9)], Epoch(7), Limits()) is None
    assert choose_merge([file(epoch) for epoch in range(1, 9)], Epoch(8), Limits()) is not None


def test_changelogs_and_folded_rows_are_never_merged_into_one() -> None:
    files = [file(epoch, logged=epoch % 2 == 0) for epoch in range(1, 15)]
    assert choose_merge(files, Epoch(20), Limits()) is None


def test_files_of_one_chunk_are_merged_with_their_like_only() -> None:
    within = [file(epoch, times=(chunk * 10, chunk * 10 + 5)) for epoch, chunk in enumerate(range(10), 1)]
    assert choose_merge(within, Epoch(20), Limits(), chunk_width=10) is None
    spanning = [file(epoch, times=(0, 95)) for epoch in range(1, 9)]
    merge = choose_merge([*within, *spanning], Epoch(20), Limits(), chunk_width=10)
    assert merge is not None
    assert set(merge.inputs) == set(spanning)


def test_a_fold_waits_until_enough_is_pending_or_it_is_asked_for() -> None:
    rows, few = file(1, 100_000), file(2, 10, store=Store.CHANGES, retracted=5)
    assert choose_fold([rows, few], Epoch(2), Limits()) is None
    fold = choose_fold([rows, few], Epoch(2), Limits(), now=True)
    assert fold is not None
    assert (fold.touched, fold.changes) == ((rows,), (few,))
    many = file(3, 50_000, store=Store.CHANGES, retracted=25_000)
    assert choose_fold([rows, few, many], Epoch(3), Limits()) is not None
    assert choose_fold([rows], Epoch(3), Limits(), now=True) is None


def test_a_fold_leaves_alone_what_its_retractions_cannot_reach() -> None:
    early, late, unknown = file(1, times=(0, 10)), file(1, times=(100, 110)), file(1)
    change = file(2, 4, store=Store.CHANGES, retracted=2, times=(5, 6))
    fold = choose_fold([early, late, unknown, change], Epoch(2), Limits(), now=True)
    assert fold is not None
    assert fold.touched == (early, unknown)


def test_a_publication_adds_and_removes_what_differs() -> None:
    kept, new, gone = file(1), file(2), file(1)
    plan = plan_publication([kept, new], [kept, gone], Epoch(2), Epoch(1))
    assert plan is not None
    assert plan.is_plain
    publication = plan.publication([], [kept, gone])
    assert (publication.adds, publication.removes, publication.copies) == ((new,), (gone,), ())


def test_pending_changes_are_published_as_a_copy_beside_the_files_they_cannot_reach() -> None:
    early, late = file(1, times=(0, 9)), file(1, times=(100, 109))
    change = file(2, store=Store.CHANGES, retracted=1, times=(5, 6))
    plan = plan_publication([early, late, change], [early, late], Epoch(2), Epoch(1))
    assert plan is not None
    assert (plan.shared, plan.rewritten.files) == ((late,), (early, change))
    copy = NewFile(Store.ROWS, "copy", FileStatistics(3, 0, 100))
    publication = plan.publication([copy], [early, late])
    assert (publication.adds, publication.removes, publication.copies) == ((), (early,), (copy,))
    published = [late, file(2, until_epoch=2)]
    assert plan_publication([early, late, change], published, Epoch(2), Epoch(2)) is None, "it shows them already"
    assert plan_publication([early, late, change], published, Epoch(5), Epoch(2)) is None, "nothing has changed since"


def test_nothing_is_published_when_nothing_differs_or_it_cannot_be_shown() -> None:
    kept = file(1)
    assert plan_publication([kept], [kept], Epoch(2), Epoch(1)) is None
    assert plan_publication([], [], Epoch(2), None) is not None
    assert plan_publication([kept], [], Epoch(2), Epoch(3)) is None, "a log never goes back"
    assert plan_publication([file(1, last_epoch=3)], [], Epoch(2), Epoch(1)) is None, "it would show too much"


def test_small_relations_are_published_with_the_epoch_and_others_within_the_lag_and_the_bounds() -> None:
    limits, lag = Limits(), 10_000_000

    def timing(size: int, changed: int, rows: int = 10**6, **backlog: int) -> PublicationTiming:
        rewritten = Content((file(1, rows=rows, size=size),), ())
        plan = PublicationPlan(Epoch(30), Epoch(1), (), rewritten, changed)
        return time_publication(plan, Backlog(**{"epochs": 1, "waited": 0, "rested": 0} | backlog), lag, limits)

    assert timing(20_000, 1_000, rows=100) == PublicationTiming.AT_ONCE
    assert timing(20_001, 1_000, rows=100) == PublicationTiming.NOT_YET, "twenty times what has changed, and no more"
    assert timing(20_000, 1_000) == PublicationTiming.NOT_YET, "Spark would have to do it"
    assert timing(20_000, 1_000, epochs=20) == PublicationTiming.DUE
    assert timing(20_000, 1_000, waited=lag) == PublicationTiming.DUE
    assert timing(10**9, 1_000, waited=lag, rested=lag) == PublicationTiming.TOO_DEAR
    assert timing(10**9, 1_000, waited=lag, rested=lag, took=1_000_000) == PublicationTiming.DUE, "a tenth of the time"
    assert timing(10**9, 1_000, waited=lag, rested=lag, took=1_000_001) == PublicationTiming.TOO_DEAR
    assert timing(10**9, 1_000, waited=lag, rested=3600 * lag) == PublicationTiming.DUE, (
        "whatever is behind is published at last"
    )


def test_a_copy_goes_once_its_log_names_it_no_more() -> None:
    copy = file(3, until_epoch=3, last_epoch=3, logged=False)
    assert removable([(copy, 0)], Epoch(1), now=100, lazy_readers=50) == [copy]
    assert removable([(copy, None)], Epoch(1), now=100, lazy_readers=50) == []


def record(epoch: int, readable_at: int) -> EpochRecord:
    return EpochRecord(Epoch(epoch), EpochState.READABLE, readable_at, readable_at, 0, 0, 0)


def test_the_oldest_epoch_kept_is_the_one_that_was_current_when_the_retention_began() -> None:
    records = [record(1, 10), record(2, 20), record(3, 30)]
    assert oldest_kept(records, [], now=25, retention=100) == 1
    assert oldest_kept(records, [], now=125, retention=100) == 2
    assert oldest_kept(records, [], now=1000, retention=100) == 3
    assert oldest_kept(records, [Epoch(1)], now=1000, retention=100) == 1
    assert oldest_kept([], [], now=0, retention=0) is None


def test_a_file_goes_when_no_epoch_no_changelog_and_no_lazy_reader_needs_it() -> None:
    ended = file(1, until_epoch=5, last_epoch=3)
    assert removable([(ended, 0)], Epoch(5), now=100, lazy_readers=50) == [ended]
    assert removable([(ended, 60)], Epoch(5), now=100, lazy_readers=50) == []
    assert removable([(ended, 0)], Epoch(4), now=100, lazy_readers=50) == []
    assert removable([(ended, None)], Epoch(5), now=100, lazy_readers=50) == []
    assert removable([(replace(ended, last_epoch=Epoch(6)), 0)], Epoch(5), now=100, lazy_readers=50) == []


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ("INT", "BIGINT", True), ("DOUBLE", "INT", True), ("DECIMAL(3,1)", "FLOAT", True), ("INT", "STRING", True),
        ("STRING", "INT", False), ("STRING", "TIMESTAMP", False), ("BOOLEAN", "INT", False), ("DATE", "TIMESTAMP", True),
        ("TIMESTAMP", "TIMESTAMP_NTZ", True), ("BINARY", "STRING", False), ("ARRAY<INT>", "ARRAY<BIGINT>", True),
        ("ARRAY<STRING>", "ARRAY<INT>", False), ("MAP<INT,INT>", "MAP<BIGINT,STRING>", True), ("ARRAY<INT>", "STRING", False),
        ("STRUCT<a:INT>", "STRUCT<b:BIGINT>", True), ("STRUCT<a:INT>", "STRUCT<a:INT,b:INT>", False),
    ],
)  # fmt: skip
def test_assignment_follows_the_ansi_rules(source: str, target: str, fits: bool) -> None:
    column = Column("c", parse_type(target))
    if fits:
        check_assignment(column, parse_type(source), "t")
    else:
        with pytest.raises(TypeMismatchError):
            check_assignment(column, parse_type(source), "t")
    check_assignment(column, VOID, "t")
