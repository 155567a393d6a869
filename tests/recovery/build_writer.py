"""A process that builds views beside its writes, to be killed: `build_writer.py warehouse [catalog]`."""

from __future__ import annotations

import sys

import stepwell
from stepwell.model.limits import Limits

LIMITS = Limits(online_build_bytes=0, joined_rows=0, build_passes=2, job_poll_seconds=0.02)
QUERIES = {
    "sums": "SELECT k, sum(v) AS s, min(v) AS low FROM t GROUP BY k",
    "total": "SELECT sum(s) AS s, count(*) AS n FROM sums",
}


def main() -> None:
    warehouse, *catalog = sys.argv[1:]
    with stepwell.connect(warehouse, catalog=catalog[0] if catalog else None, _limits=LIMITS) as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT)")
        db.sql(f"INSERT INTO t VALUES {', '.join(f'({id_}, {id_ % 3}, {id_})' for id_ in range(20))}")
        db.sql("SET background_ddl = true")
        db.sql("; ".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in QUERIES.items()))
        for id_ in range(100, 120):
            db.sql(f"INSERT INTO t VALUES ({id_}, {id_ % 3}, {id_}); DELETE FROM t WHERE id = {id_ - 100}")
        db.sql("WAIT")
        print("done")


if __name__ == "__main__":
    main()
