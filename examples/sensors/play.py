"""What happens to sensors: readings, a gap that a late reading closes, a wrong one that is taken back."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import stepwell
from stepwell.cli import main as command

HERE = Path(__file__).parent


def show(db: stepwell.Database, title: str) -> None:
    print(f"-- {title}")
    for sensor, _, n, mean, low, high in db.sql("SELECT * FROM per_hour ORDER BY sensor").collect():
        print(f"{sensor}: {n} readings, mean {mean:.2f}, from {low} to {high}")
    for sensor, since, until in db.sql("SELECT * FROM gaps ORDER BY sensor, silent_from").collect():
        print(f"{sensor} was silent from {since:%H:%M:%S} to {until:%H:%M:%S}")
    sessions = db.sql("SELECT sensor, count(*) AS n FROM sessions GROUP BY sensor ORDER BY sensor").collect()
    print("sessions:", ", ".join(f"{row.sensor} {row.n}" for row in sessions))


def main(warehouse: str) -> None:
    command(["run", str(HERE / "pipeline.sql"), "-w", warehouse], standalone_mode=False)
    with stepwell.connect(warehouse) as db:
        show(db, "the first readings")

        late = [
            ("north", f"2024-05-01 10:{minute:02}:{second:02}", 20.75) for minute, second in [(0, 45), (1, 10), (1, 35)]
        ]
        db.insert("readings", late, label="resent by north")
        db.insert("readings", late, label="resent by north")  # sent twice, there once
        show(db, "north sends again what was lost on the way")

        db.sql("INSERT INTO readings VALUES ('south', '2024-05-01 10:03:00', '999.0')")
        show(db, "south has a bad moment")

        db.sql("DELETE FROM readings WHERE value > :most", {"most": 100.0})
        show(db, "and it is taken back")

        moved = db.advance_watermark("readings", datetime.datetime(2024, 5, 1, 11, 0))
        print("the hour is over for:", ", ".join(moved))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sensors-warehouse")
