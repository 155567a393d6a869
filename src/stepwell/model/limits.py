"""Limits: every threshold that decides how work is done, with its unit and the reason for its size.

None of them changes what a view shows, only the way there. The runtime holds one value of `Limits`; whoever decides is
handed it, or the one number that matters.
"""

from __future__ import annotations

from dataclasses import dataclass

_MB = 2**20
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The thresholds of one runtime, with sizes that have proved good on one machine with a few cores."""

    # -- what the driver holds, and what Spark keeps to itself ---------------------------------------------------------

    small_result_bytes: int = 64 * _MB
    """Bytes read. What reads no more has its result collected and written by the driver: one file and no shuffle.
    Beyond it Spark writes, since a result is seldom larger than what was read for it, and the driver has one heap."""

    small_delta_bytes: int = 2 * _MB
    """Bytes of files. A change in no more than this is read once, and kept in memory for all views that read it."""

    in_plan_bytes: int = 16 * 1024
    """Bytes of a table in memory. Only one of no more than this is part of Spark's plan: whenever Spark compares two
    plans it compares all rows in them, dozens of times."""

    broadcast_bytes: int = 64 * _MB
    """Bytes of a table in memory. One of no more than this is sent to every task that joins it."""

    broadcast_rows: int = 2_000_000
    """Retracted rows. Up to so many are sent to every task that reads what they were taken from: two numbers each."""

    literal_versions: int = 100
    """Retracted row versions. Up to so many are written into the query: a set of numbers saves a job and a join."""

    held_versions: int = 500_000
    """Retracted row versions. Up to so many are read by the driver, and offered to Spark as a small table."""

    counted_changes: int = 50_000
    """Rows of pending changes. Up to so many of a view whose versions come again are summed up by the driver."""

    literal_keys: int = 5_000
    """Keys of an upsert. Up to so many are written into the query that looks for them, beyond it their bounds are."""

    conflict_keys: int = 10_000
    """Keys that a write is known to touch. One that touches more conflicts with every other write of the table: the
    catalog would hold all of them until nobody can conflict any more."""

    # -- how Spark goes about a text -----------------------------------------------------------------------------------

    uncompiled_bytes: int = 8 * _MB
    """Bytes read. A text over no more, and over no more rows than below, is done before Spark has compiled it."""

    uncompiled_rows: int = 20_000
    """Rows read, for the same."""

    planned_once_bytes: int = 32 * _MB
    """Bytes read. A text over no more than this joins nothing that Spark would have to plan again at run time."""

    few_partitions: int = 64
    """Partitions. What a statement writes that reads no more than `small_result_bytes` is in no more of them."""

    many_partitions: int = 2048
    """Partitions. What any other statement writes is in no more of them: each reserves `partition_numbers`."""

    partition_numbers: int = 1 << 24
    """Row numbers that a partition gets which Spark writes by itself: rows that fit into a partition of usual size. One
    that has more is written again, with as many as it can ever have."""

    load_part_bytes: int = 64 * _MB
    """Bytes of text that go into one part of a load from several files: about what one task should hold."""

    files_one_by_one: int = 16
    """Files of text. Up to so many are read one by one, which takes longer to plan and needs no sorting."""

    # -- how much of what is stored a change reads ---------------------------------------------------------------------

    whole_relation_bytes: int = 6 * _MB
    """Bytes of a relation. One of no more is read as a whole: Spark sends it around anyway. Of a larger one the keys of
    the change are looked up first."""

    whole_state_bytes: int = 4 * _MB
    """Bytes of a view's state. One of more is read by the range of the keys that have changed, which takes a job to
    know."""

    few_keys_share: float = 0.2
    """Share of a relation. A change of more rows than this is not known by a few keys: looking for them reads most of
    everything."""

    few_keys_least: int = 1_000
    """Rows. A change of no more is known by a few keys, whatever its share."""

    few_keys_most: int = 200_000
    """Rows. A change of more is not known by a few keys, whatever its share: the driver holds them."""

    joined_rows: int = 20_000
    """Rows. What has come since a view was built, if no more, is applied by the barrier at which it joins: a second."""

    build_passes: int = 6
    """Passes. Each takes what has come during the one before, which is less where a machine can follow at all; after so
    many the barrier takes the rest, however much it is, so that a build ends."""

    online_build_bytes: int = 16 << 20
    """Bytes. A view over no more is built by the next barrier, in less than a second or two; over more, beside it."""

    exact_times_rows: int = 200_000
    """Rows. The times of a file with no more are read when it is written, for the logs of continuous aggregates."""

    time_clusters: int = 64
    """Ranges of time that one file is known by: a late batch over two months of days."""

    key_ranges: int = 4
    """Ranges of keys that are told apart: new rows, and two or three places where old ones have changed."""

    bounds_share: float = 0.5
    """Share of a relation's range. Bounds that leave more than this are not said: Spark would compile the text anew for
    them, and skip little."""

    # -- which rule follows a change -----------------------------------------------------------------------------------

    recomputed_share: float = 0.5
    """Share of a view's inputs. A change of more of their rows than this is cheaper to recompute than to follow."""

    recomputed_rows: int = 10_000
    """Rows. A change of no more is followed, whatever its share: recomputing so few saves nothing."""

    reading_factor: float = 1.5
    """Times. A change that reads more than so many times what a recomputation does is recomputed; not at once, since
    what it reads, it joins less of."""

    reading_bytes: int = 32 * _MB
    """Bytes read. Below this a change is followed, whatever a recomputation would read."""

    cost_factor: float = 1.2
    """Times. A change that is expected to take more than so many times a recomputation is recomputed."""

    cost_microseconds: int = 2 * _SECOND
    """Microseconds. A view that is recomputed in less goes by its rule: the choice is not worth a mistake."""

    fixed_microseconds: int = 3 * _SECOND
    """Microseconds of a run that Spark may spend on planning and starting, and that do not grow with its rows."""

    warm_updates: int = 2
    """Updates of a view before what one took counts: the first of its kind waits for Spark to compile."""

    update_back_off: int = 16
    """Recomputations in a row, chosen for their cost, before an update is tried again: it may take less by now."""

    counted_buckets: int = 100_000
    """Buckets that EXPLAIN STALENESS counts one by one: months and days of zones have no width to divide by."""

    log_entries: int = 1_000
    """Ranges in the log of a source or of a continuous aggregate: with more, neighbours are merged into one."""

    refold_back_off: int = 8
    """Refreshes of a view whose groups lost the row that counts (the greatest of a max): so many recompute the touched
    groups before folding is tried again. A fold that fails is paid for twice, and one loss makes the next likely."""

    block_expressions: int = 4_000
    """Parts of the expressions of a block. Where putting the next level in would make it more, that is a block of its
    own: Spark's analysis takes longer than linear in the size of an expression."""

    # -- compaction, retention -----------------------------------------------------------------------------------------

    settled_rows: int = 1_000_000
    """Rows. A plain file of so many is left alone: merging it would write much and save one file."""

    merged_changes_rows: int = 500_000
    """Rows. Files of changes are merged by the driver, up to so many rows at once; more wait for the fold."""

    concatenated_rows: int = 65_536
    """Rows. Plain files of up to so many are put together by the driver as they are; beyond it Spark also sorts them,
    since they make more than one row group."""

    merged_rows_files: int = 8
    """Plain files of one size class that are merged into one."""

    merged_changes_files: int = 4
    """Files of changes of one size class that are merged into one: every reader nets them, so fewer are better."""

    smallest_tier_rows: int = 64
    """Rows. Files of fewer are of the smallest size class."""

    tier_growth: int = 8
    """Times. Files of each size class have so many times the rows of the one below: a row is rewritten only as often as
    there are classes."""

    fold_rows: int = 10_000
    """Pending changes. No fewer are folded into the plain rows unless somebody asks."""

    fold_share: float = 0.2
    """Share of the content. No fewer changes than this are folded: a fold rewrites all that they touch."""

    # -- what outside readers see --------------------------------------------------------------------------------------

    copied_rows: int = 20_000
    """Rows read. What is pending in no more is put together as plain rows by the driver, with the epoch: it picks rows
    by their versions, in milliseconds and without a Spark job."""

    publish_epochs: int = 20
    """Epochs. A Delta table that is so many behind is published, however short that is."""

    publish_bytes_factor: int = 20
    """Times. A publication writes at most so many times the bytes that have changed, unless it is rare."""

    publish_time_share: float = 0.1
    """Share of the time. A publication that takes no more of it is rare, whatever it writes."""

    copied_bytes_a_second: int = 32 * _MB
    """Bytes a second that Spark is expected to rewrite, before it was seen to."""

    publish_poll_seconds: float = 0.5
    """Seconds between two looks of the leader at the Delta tables that are behind."""

    # -- files that nobody needs any more ------------------------------------------------------------------------------

    lazy_readers_microseconds: int = 3600 * _SECOND
    """Microseconds. No file leaves the disk so soon after its end: a DataFrame that names it may not have run yet."""

    conflict_microseconds: int = 3600 * _SECOND
    """Microseconds. What a write touched is remembered so long: a statement that has read before it may still come."""

    orphan_microseconds: int = 86_400 * _SECOND
    """Microseconds. A file that the catalog does not know stays so long: a statement may be about to tell of it."""

    checked_whole_bytes: int = _MB
    """Bytes of a file. One of no more is read whole and compared with its checksum when it is first listed, which takes
    less than opening it with Spark; of a larger one the tail is, and its pages by whoever reads them."""

    copied_bytes: int = 4 * _MB
    """Bytes that are read, compared and copied at a time: enough to be quick, and soon stopped."""

    reported_bytes: int = 32 * _MB
    """Bytes that a checkpoint copies before it says again how far it is: saying it takes the catalog's lock."""

    # -- processes and threads -----------------------------------------------------------------------------------------

    workers: int = 4
    """Views that are maintained at once where there are as many cores: the driver plans each of them, so a wide graph
    must not start all."""

    lease_microseconds: int = 10 * _SECOND
    """Microseconds that a lease lasts without a heartbeat: three heartbeats may be missed before another leads."""

    poll_seconds: float = 0.02
    """Seconds between two looks at an epoch that another process makes readable."""

    tidy_seconds: float = 1800.0
    """Seconds between the vacuums that the barrier loop does by itself."""

    interrupt_seconds: float = 0.5
    """Seconds after which Spark is asked again to stop: a job may begin just after the first time."""

    conflict_tries: int = 10
    """Attempts at a statement whose ground keeps moving before it gives up."""

    jobs_at_once: int = 2
    """Jobs that run beside epochs at the same time: each keeps Spark busy, and epochs must not wait for all of them."""

    job_tries: int = 5
    """Attempts at a job that nobody waits for before it has failed; its schedule tries again."""

    job_retry_microseconds: int = _SECOND
    """Microseconds from the first failure of a job to its next attempt; twice as long after each further one."""

    jobs_kept: int = 1_000
    """Jobs that have ended and are still shown."""

    job_poll_seconds: float = 0.25
    """Seconds between two looks of the leader at what is asked for and due."""

    verify_sample: int = 5
    """Rows that VERIFY shows of those that differ."""

    def copy_microseconds(self, size: int) -> int:
        """What rewriting so many bytes is expected to take, a job's own time included."""
        return _SECOND + size * _SECOND // self.copied_bytes_a_second
