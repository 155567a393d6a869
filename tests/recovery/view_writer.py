"""A process that changes rows below a graph of views, and dies where it is told to."""

from __future__ import annotations

import sys

import stepwell

QUERIES = {
    "kept": "SELECT id, g, v FROM k WHERE v > 0",
    "sums": "SELECT g, sum(v) AS s, max(v) AS m FROM kept GROUP BY g",
    "pairs": "SELECT p.id, q.s FROM kept AS p LEFT JOIN sums AS q ON p.g = q.g",
}


def main(warehouse: str) -> None:
    with stepwell.connect(warehouse) as db:
        db.sql("CREATE TABLE k (id INT PRIMARY KEY, g INT, v INT)")
        for name, query in QUERIES.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for step, text in enumerate(
            [
                "INSERT INTO k VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3)",
                "UPDATE k SET v = v * 10 WHERE g = 1",
                "DELETE FROM k WHERE id = 2",
                "OPTIMIZE sums",
                "INSERT INTO k VALUES (1, 2, 7), (4, 2, -1)",
            ]
        ):
            db.sql(text)
            print(step, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
