"""EXPLAIN REFRESH before a barrier, and what the barrier then did: one plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import stepwell
from limited import limit
from views import answer, creates

VIEWS = {
    "filtered": "SELECT a, g, s FROM t WHERE a > 0",
    "joined": "SELECT t.a, u.c FROM t JOIN u ON t.g = u.a",
    "padded": "SELECT t.a, u.c FROM t LEFT JOIN u ON t.g = u.a",
    "folded": "SELECT g, count(*) AS n, sum(a) AS total FROM t GROUP BY g",
    "extremes": "SELECT g, min(a) AS lo, max(a) AS hi FROM t GROUP BY g",
    "listed": "SELECT g, collect_list(a) AS xs FROM t GROUP BY g",
    "ranked": "SELECT a, g, rank() OVER (PARTITION BY g ORDER BY a) AS r FROM t",
    "limited": "SELECT a FROM t ORDER BY a LIMIT 3",
    "above": "SELECT count(*) AS groups, max(total) AS most FROM folded",
    "beside": "SELECT f.g, f.n, e.hi FROM folded AS f JOIN extremes AS e ON f.g = e.g",
}

STATEMENTS = (
    "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y')",
    "INSERT INTO u VALUES (1, 'one'), (2, 'two')",
    "INSERT INTO t VALUES (5, 1, 'x')",
    "UPDATE t SET a = a + 1 WHERE g = 1",
    "DELETE FROM t WHERE a = 6",
    "INSERT INTO u VALUES (3, 'three')",
    "BEGIN; INSERT INTO t VALUES (7, 3, 'z'); DELETE FROM u WHERE a = 1; COMMIT",
    "UPDATE u SET c = 'TWO' WHERE a = 2",
    "INSERT INTO t SELECT id, id % 5, 'm' FROM range(40)",
    "DELETE FROM t WHERE a > 30",
    "UPDATE t SET s = 'same' WHERE s = 'nobody'",
    "INSERT INTO t VALUES (-1, 1, 'n')",
    "ALTER MATERIALIZED VIEW folded PAUSE",
    "INSERT INTO t VALUES (9, 9, 'p')",
    "ALTER MATERIALIZED VIEW folded RESUME",
)


def test_what_explain_says_beforehand_is_what_runs(
    db: stepwell.Database, record_property: Callable[[str, object], None]
) -> None:
    db.sql("CREATE TABLE t (a INT, g INT, s STRING); CREATE TABLE u (a INT, c STRING)")
    db.sql(creates(VIEWS))
    db.sql("SET barrier_interval = '1 hour'")
    seen: Counter[str] = Counter()
    epochs = 0
    ((last,),) = answer(db, "SELECT max(epoch) FROM stepwell.epochs")
    for turn in range(40):
        if turn == 15:
            limit(db, recomputed_rows=3, recomputed_share=0.1)  # now a few rows are most of a table
        db.sql(STATEMENTS[turn % len(STATEMENTS)])
        if STATEMENTS[turn % len(STATEMENTS)].startswith("ALTER"):  # which has waited for a barrier of its own
            ((last,),) = answer(db, "SELECT max(epoch) FROM stepwell.epochs")
            continue
        said = {name: answer(db, f"EXPLAIN REFRESH {name}")[-1] for name in VIEWS}
        db.sql("FLUSH")
        ((epoch,),) = answer(db, "SELECT max(epoch) FROM stepwell.epochs")
        ran = dict(answer(db, f"SELECT name, rule FROM stepwell.refreshes WHERE epoch > {last} AND NOT is_part"))
        epochs, last = epochs + (epoch > last), epoch
        for name in VIEWS:
            _, _, step, why, _ = said[name]
            possible = {step, *_others(why)}
            if step == "none":
                assert name not in ran, (turn, name, said[name], ran)
            elif name in ran:
                assert ran[name] in possible, (turn, name, said[name], ran[name])
                if name not in ("above", "beside"):  # these read views, so theirs is a choice
                    assert ran[name] == step, (turn, name, said[name], ran[name])
            else:
                assert name in ("above", "beside"), (turn, name, said[name])
            seen[ran.get(name, "none")] += 1
    record_property("epochs explained and run", f"{epochs}; {dict(seen)}")
    assert epochs >= 30
    assert len(seen) >= 8, seen


def _others(why: str | None) -> list[str]:
    """The rules that a choice names beside the one that is usual."""
    return [each.split(" if ")[0] for each in (why or "").split("; ") if " if " in each]
