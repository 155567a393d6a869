"""A process that writes events, some of them late, below a cascade that emits by the watermark; it dies where told to."""

from __future__ import annotations

import sys
import warnings
from datetime import datetime, timedelta

import stepwell

STEPS = 7
BASE = datetime(2024, 5, 1, 9)
VIEWS = {
    "seconds": "SELECT TUMBLE_START(at, INTERVAL '10 seconds') AS b, count(*) AS n, max(v) AS top FROM e"
    " GROUP BY TUMBLE(at, INTERVAL '10 seconds') ALLOW LATENESS INTERVAL '1 minute'",
    "minutes": "SELECT TUMBLE_START(b, INTERVAL '1 minute') AS b, sum(n) AS n, max(top) AS top FROM seconds"
    " GROUP BY TUMBLE(b, INTERVAL '1 minute') EMIT AFTER WATERMARK",
}


def prepare(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE IF NOT EXISTS e (step INT, at TIMESTAMP, v INT, WATERMARK FOR at AS at)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # minutes allow less lateness than seconds, so that something is late for both
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name} AS {query}")


def write(db: stepwell.Database, step: int) -> None:
    """On time, a little late, too late for the minutes, and too late for all."""
    times = [step * 40, step * 40 + 5, step * 40 - 30, step * 40 - 100, step * 40 - 120]
    db.insert("e", [(step, BASE + timedelta(seconds=at), step * 10 + n) for n, at in enumerate(times)])


def main(warehouse: str) -> None:
    with stepwell.connect(warehouse) as db:
        prepare(db)
        for step in range(STEPS):
            write(db, step)
            print(step, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
