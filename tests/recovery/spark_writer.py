"""A process that changes rows through Spark, and dies where it is told to."""

from __future__ import annotations

import sys

import stepwell


def main(warehouse: str) -> None:
    with stepwell.connect(warehouse) as db:
        db.sql("CREATE TABLE IF NOT EXISTS k (id INT PRIMARY KEY, v INT)")
        for step, text in enumerate(
            [
                "INSERT INTO k VALUES (1, 1), (2, 2), (3, 3)",
                "BEGIN; UPDATE k SET v = v * 10 WHERE id < 3; UPDATE k SET v = v + 1 WHERE id = 1; COMMIT",
                "BEGIN; DELETE FROM k WHERE id = 3; INSERT INTO k VALUES (4, 4); COMMIT",
                "OPTIMIZE k",
                "INSERT INTO k VALUES (5, 5)",
            ]
        ):
            db.sql(text)
            print(step, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
