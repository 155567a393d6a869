"""`python -m querygen --seed S --queries N`: many random queries, and the smallest counterexample of what is wrong."""

from __future__ import annotations

import argparse
import os
import sys
import time

from querygen.cases import Case
from querygen.counts import Counts
from querygen.runner import Failure
from querygen.runs import Runs

# Few rows and ever new queries: Java's second compiler does not pay for itself.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -Dspark.buffer.pageSize=1m",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="querygen", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="the first seed; each batch has one of its own"
    )
    parser.add_argument("--queries", type=int, default=1000, help="how many views to make altogether")
    parser.add_argument("--batch", type=int, default=24, help="how many views share a warehouse")
    parser.add_argument("--epochs", type=int, default=5, help="how many epochs a warehouse goes through")
    parser.add_argument("--shrink", type=int, default=60, help="cases to play for making a failing one smaller")
    parser.add_argument("--keep-going", action="store_true", help="go on with the next batch after a failure")
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.queries} queries", flush=True)
    counts, failed = Counts(), 0
    with Runs() as runs:
        for number in range(-(-given.queries // given.batch)):
            seed = given.seed + number
            case, outcome = runs.run(seed, given.batch, given.epochs)
            counts.add(outcome.counts)
            print(f"seed {seed}: {outcome.counts.views} views, {len(outcome.failures)} failures", flush=True)
            for failure in outcome.failures:
                failed += 1
                print(report(seed, case, failure), flush=True)
                if given.shrink:
                    print(f"-- smaller:\n{script(runs.shrink(case, failure, given.shrink))}", flush=True)
            if failed and not given.keep_going:
                break
    print("\n".join(counts.lines()))
    return 1 if failed else 0


def report(seed: int, case: Case, failure: Failure) -> str:
    """What went wrong, and how to see it again."""
    text = next((view.text for view in case.views if view.name == failure.view), "")
    return f"-- FAILED, seed {seed}: {failure.view} after epoch {failure.epoch}: {failure.what}\n   {text}"


def script(case: Case) -> str:
    """A case as statements that can be run."""
    lines = [case.first.text] if case.first.statements else []
    lines += [f"CREATE MATERIALIZED VIEW {view.name} AS {view.text}" for view in case.views]
    lines += [epoch.text for epoch in case.epochs]
    return ";\n".join(lines) + ";"


if __name__ == "__main__":
    sys.exit(main())
