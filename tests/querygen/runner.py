"""Plays a case through real views, and compares every view with plain Spark after every epoch."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

import stepwell
from plain import FAILURES, Bag, Plain, bag, condition
from querygen.cases import Case, View
from querygen.counts import Counts
from querygen.schema import Relation
from stepwell.engine.definitions import load
from stepwell.rules.blocks import obstacle

Answer = Callable[[str, Bag], Bag]
"""What to make of the rows that a view has shown; to seed a wrong one."""

DOCUMENTED = ("0A000", "42704", "42939")
"""SQLSTATEs of refusals that the documentation announces: not offered, a type that cannot be stored, a reserved name."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A view that was not as its query says, and after which epoch of the case; -1 is its creation.

    `tables` instead of a view is an epoch that could not be written.
    """

    view: str
    epoch: int
    what: str

    @property
    def kind(self) -> str:
        """What sort of failure it is: shrinking must not turn one into another."""
        return self.what.split(":")[0]


@dataclass
class Outcome:
    """How a case went."""

    failures: list[Failure] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


def play(
    case: Case,
    before_epoch: Callable[[stepwell.Database, int], None] = lambda db, number: None,
    answer: Answer | None = None,
    verify: bool = True,
) -> Outcome:
    """Create the tables and views of a case in a warehouse of their own, play its epochs, and compare.

    A view that has failed once is not looked at again. `before_epoch` may set how the next epoch is gone about.
    """
    with tempfile.TemporaryDirectory() as folder, stepwell.connect(folder) as db, warnings.catch_warnings():
        warnings.simplefilter("ignore", stepwell.StepwellWarning)
        run = _Run(db, case, answer)
        run.create()
        for number, epoch in enumerate(case.epochs):
            before_epoch(db, number)
            try:
                db.sql(epoch.text)
            except Exception as error:  # all that is written is legal: this is nobody's fault but stepwell's
                run.failures.append(Failure("tables", number, f"not written: {_first_line(error)}"))
                break
            run.counts.epochs += 1
            run.compare(number, is_last=number == len(case.epochs) - 1)
        if verify:
            run.verify()
        return Outcome(run.failures, run.counts)


class _Run:
    """A case being played."""

    def __init__(self, db: stepwell.Database, case: Case, answer: Answer | None) -> None:
        self.db = db
        self.case = case
        self.answer: Answer = answer or (lambda view, rows: rows)
        self.plain = Plain(db.spark)
        self.counts = Counts()
        self.failures: list[Failure] = []
        self.broken: set[str] = set()
        self.raising: set[str] = set()
        """Views whose text fails in Spark too, or reads what does: theirs to be stopped."""
        self.expected: dict[str, Bag] = {}
        self.views: list[View] = []
        self.tables: list[Relation] = []
        self.parents: dict[str, set[str]] = {}
        self.epoch = 0

    def create(self) -> None:
        self.tables = self.case.tables()
        if self.tables:
            self.db.sql("; ".join(table.create for table in self.tables))
        if self.case.first.statements:
            self.db.sql(self.case.first.text)
        self._read_tables()
        self._create_all()
        for name, parent in self._tuples("SELECT name, parent FROM stepwell.dependencies"):
            self.parents.setdefault(name, set()).add(parent)
        self.epoch = self.db.epoch

    def _create_all(self) -> None:
        """Create the views by one script; if that is refused, one by one, so that each says what is wrong with it."""
        wanted: list[View] = []
        for view in self.case.views:
            if any(parent not in self.expected for parent in view.parents):
                continue
            try:
                self._expect(view)
                wanted.append(view)
            except FAILURES as error:
                self._must_fail(view, condition(error))
        try:
            if wanted:
                self.db.sql("; ".join(f"CREATE MATERIALIZED VIEW {view.name} AS {view.text}" for view in wanted))
        except Exception:  # whatever it is, it is said again by the view that is to blame
            there = {each.name for each in self.db.relations()}
            made = [view for view in wanted if view.name in there or self._is_created(view)]
        else:
            made = wanted
        for view in made:
            self.views.append(view)
            self.counts.views += 1
            if why := self._why_whole(view):
                self.counts.wholes[why] += 1
            self._compare(view, -1)

    def _is_created(self, view: View) -> bool:
        """Create a view by itself; what else came of it is counted, or is a failure."""
        if any(parent not in self.expected for parent in view.parents):
            return False
        try:
            self.db.sql(f"CREATE MATERIALIZED VIEW {view.name} AS {view.text}")
        except stepwell.StepwellError as error:
            self.expected.pop(view.name)
            if error.sqlstate in DOCUMENTED:
                self.counts.refused[f"{error.sqlstate} {error.message}"] += 1
            else:
                self._fail(view.name, -1, f"not created: {error.sqlstate} {error.message} {error.detail or ''}")
            return False
        except Exception as error:  # anything else is a bug of stepwell's, and to be reported like one
            self.expected.pop(view.name)
            self._fail(view.name, -1, f"not created: {type(error).__name__} {_first_line(error)}")
            return False
        return True

    def _why_whole(self, view: View) -> str | None:
        """Why a view can only be recomputed, in the words in which 'incremental strict' would refuse it."""
        known = load(self.db._runtime)
        relation = known.called(view.name)
        assert relation is not None
        found = [obstacle(known.blocks[id_]) for id_ in (*relation.view.blocks, relation.id)]
        return next((why for why in found if why is not None), None)

    def _must_fail(self, view: View, reason: str) -> None:
        """A view whose query fails on the rows that are there is not made."""
        try:
            self.db.sql(f"CREATE MATERIALIZED VIEW {view.name} AS {view.text}")
        except stepwell.StepwellError:
            self.counts.refused[f"fails in Spark: {reason}"] += 1
        except Exception as error:
            self._fail(view.name, -1, f"not created: {type(error).__name__} {_first_line(error)}")
        else:
            self._fail(view.name, -1, f"created: plain Spark fails with {reason}")

    def compare(self, number: int, is_last: bool) -> None:
        """What every view holds against what its query gives, over tables as they are and views as they should be."""
        before = dict(self.expected)
        self._read_tables()
        states = {name: (state, reason) for name, state, _, reason in self._tuples("SHOW MATERIALIZED VIEWS")}
        refreshed = self._count()
        changed = {name for name in self.expected if before.get(name) != self.expected[name]}
        for view in self.views:
            if view.name in self.raising or self.raising & set(view.parents):
                self.raising.add(view.name)
                continue
            if self.parents[view.name] & changed:
                try:
                    self._expect(view)
                except FAILURES:
                    self.raising.add(view.name)
                    continue
                if before[view.name] != self.expected[view.name]:
                    changed.add(view.name)
            if view.name in self.broken:
                continue
            state, reason = states[view.name]
            if state != "running":
                self._fail(view.name, number, f"{state}: {reason}")
            elif is_last or view.name in refreshed or view.name in changed:
                self._compare(view, number)
        self._count_retractions(before, refreshed)

    def verify(self) -> None:
        """VERIFY of a few views, which must agree with what was found."""
        for view in self.views[::5]:
            if view.name in self.broken | self.raising or self.broken & set(view.parents):
                continue
            try:
                (found,) = self._tuples(f"VERIFY MATERIALIZED VIEW {view.name}")
            except Exception as error:
                self._fail(view.name, len(self.case.epochs), f"VERIFY fails: {_first_line(error)}")
                continue
            self.counts.verified += 1
            if not found[2]:
                self._fail(view.name, len(self.case.epochs), f"VERIFY says otherwise: {found}")

    def _expect(self, view: View) -> None:
        frame = self.plain.query(view.text)
        rows = frame.toArrow()
        if any(view.name in other.parents for other in self.case.views):
            self.plain.set(view.name, rows, frame.schema)
        self.expected[view.name] = bag(rows)

    def _compare(self, view: View, number: int) -> None:
        try:
            shown = self.answer(view.name, bag(self._frame(f"SELECT * FROM {view.name}").toArrow()))
        except Exception as error:
            self._fail(view.name, number, f"cannot be read: {_first_line(error)}")
            return
        self.counts.compared += 1
        expected = self.expected[view.name]
        if shown != expected:
            self._fail(
                view.name,
                number,
                f"wrong rows: missing {_some(expected - shown)}, unexpected {_some(shown - expected)}",
            )

    def _read_tables(self) -> None:
        for table in self.tables:
            frame = self._frame(f"SELECT * FROM {table.name}")
            rows = frame.toArrow()
            found = bag(rows)
            if found != self.expected.get(table.name):
                self.plain.set(table.name, rows, frame.schema)
            self.expected[table.name] = found

    def _count(self) -> dict[str, set[str]]:
        """The rules that each view went through since the last call, its parts' included."""
        refreshed: dict[str, set[str]] = {}
        for epoch, name, rule in self._tuples("SELECT epoch, name, rule FROM stepwell.refreshes"):
            if epoch > self.epoch and rule != "build":
                refreshed.setdefault(name, set()).add(rule)
        self.epoch = self.db.epoch
        return refreshed

    def _count_retractions(self, before: dict[str, Bag], refreshed: dict[str, set[str]]) -> None:
        gone = {name for name, rows in self.expected.items() if name in before and before[name] - rows}
        for name, rules in refreshed.items():
            for rule in rules:
                self.counts.changes[rule] += 1
                self.counts.retractions[rule] += bool(self.parents[name] & gone)

    def _frame(self, text: str) -> DataFrame:
        found = self.db.sql(text)
        assert not isinstance(found, stepwell.Rows)
        return found

    def _tuples(self, text: str) -> list[tuple[Any, ...]]:
        found = self.db.sql(text)
        return found.tuples() if isinstance(found, stepwell.Rows) else [tuple(row) for row in found.collect()]

    def _fail(self, view: str, number: int, what: str) -> None:
        self.broken.add(view)
        self.failures.append(Failure(view, number, what))


def _some(rows: Counter[object]) -> str:
    return str(dict(list(rows.items())[:3]))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
