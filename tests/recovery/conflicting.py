"""A process that changes the same rows as others do at the same time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import stepwell

ROUNDS = 3


def main(warehouse: str, catalog: str, number: int, go: str) -> None:
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.sql("SELECT count(*) FROM plain").collect()
        print("ready", flush=True)
        while not Path(go).exists():
            time.sleep(0.01)
        for round_ in range(ROUNDS):
            db.sql(f"DELETE FROM plain WHERE v = {round_}")
            db.sql(f"INSERT INTO keyed VALUES ({round_}, {number})")
            db.sql("UPDATE counter SET n = n + 1")
            print(round_, flush=True)
        db.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
