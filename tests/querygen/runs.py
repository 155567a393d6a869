"""Many cases in one JVM, each epoch gone about as if its tables were large and as if they were small in turn."""

from __future__ import annotations

import tempfile
from typing import Self

import stepwell
from law import as_if_large
from querygen.accepting import Accepting
from querygen.cases import Case, make_case
from querygen.runner import Answer, Failure, Outcome, play
from querygen.shrinking import shrink


class Runs:
    """Makes cases, plays them, and shrinks those that fail. A context manager."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        self._db = stepwell.connect(self._folder.name)
        self._accepts = Accepting(self._db.spark)
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
        self._folder.cleanup()

    def run(self, seed: int, views: int, epochs: int, answer: Answer | None = None) -> tuple[Case, Outcome]:
        """The case of a seed, and how it went."""
        made = make_case(seed, views, epochs, self._accepts)
        outcome = self.play(made.case, answer)
        outcome.counts.discarded += len(made.discarded)
        return made.case, outcome

    def play(self, case: Case, answer: Answer | None = None, verify: bool = True) -> Outcome:
        return play(case, lambda db, number: as_if_large(number % 2 == 1, db), answer, verify)

    def shrink(self, case: Case, failure: Failure, tries: int, answer: Answer | None = None) -> Case:
        """A smaller case in which the same view fails in the same way."""

        def fails(smaller: Case) -> Failure | None:
            failures = self.play(smaller, answer, verify=False).failures
            return next((each for each in failures if each.view == failure.view), None)

        return shrink(case, failure, fails, self._accepts, tries)
