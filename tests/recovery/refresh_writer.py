"""A process that refreshes a continuous aggregate among writes, to be killed: `refresh_writer.py warehouse [catalog]`."""

from __future__ import annotations

import sys

import stepwell

QUERY = "SELECT date_trunc('DAY', ts) AS day, count(*) AS n, sum(x) AS total FROM t GROUP BY 1"
PAIRS = (
    "SELECT TUMBLE_START(day, INTERVAL 2 DAYS) AS pair, sum(total) AS total FROM daily"
    " GROUP BY TUMBLE(day, INTERVAL 2 DAYS)"
)


def main() -> None:
    warehouse, *catalog = sys.argv[1:]
    with stepwell.connect(warehouse, catalog=catalog[0] if catalog else None) as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP, x INT, WATERMARK FOR ts AS ts)")
        days = ", ".join(f"({day}, TIMESTAMP '2026-01-{day:02} 12:00:00', {day})" for day in range(1, 8))
        db.sql(f"INSERT INTO t VALUES {days}")
        db.sql(f"CREATE MATERIALIZED VIEW daily WITH (refresh = 'deferred', batch = 2) AS {QUERY}")
        db.sql(
            f"CREATE MATERIALIZED VIEW live AS {PAIRS}; CREATE MATERIALIZED VIEW closed AS {PAIRS} EMIT AFTER WATERMARK"
        )
        db.sql("REFRESH MATERIALIZED VIEW daily")
        db.sql("UPDATE t SET ts = TIMESTAMP '2026-01-02 01:00:00' WHERE id = 5")
        db.sql("REFRESH MATERIALIZED VIEW daily")
        print("done")


if __name__ == "__main__":
    main()
