"""A hundred typical queries: which of them follow a change incrementally, and why the others do not."""

from __future__ import annotations

from pathlib import Path

import stepwell
from typical import QUERIES, TABLES
from views import answer

WHOLE = {
    "last_purchase": "Spark does not take what we would write for it",
    "latest_sales": "a LIMIT, or an OVER without a PARTITION BY that all windows share, looks at all rows",
    "shares_of_all": "a LIMIT, or an OVER without a PARTITION BY that all windows share, looks at all rows",
}
"""The views that are recomputed, in the end or in a part, and how the reason begins."""


def test_typical_queries_are_incremental_but_for_these(tmp_path: Path) -> None:
    assert len(QUERIES) == 100
    found: dict[str, str] = {}
    with stepwell.connect(tmp_path / "warehouse") as db:
        for name, columns in TABLES.items():
            db.sql(f"CREATE TABLE {name} ({columns})")
        for name, query in QUERIES.items():
            for part, _, rule, why, _ in answer(db, f"EXPLAIN CREATE MATERIALIZED VIEW seen AS {query}"):
                if rule == "recompute and diff":
                    found[name] = f"{part}: {why}"
    expected = {name: f"seen: {why}" for name, why in WHOLE.items()}
    assert {name: why[: len(expected.get(name, why))] for name, why in found.items()} == expected
