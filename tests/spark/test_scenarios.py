"""Every scenario of tests/scenarios, and the runner's own: what passes must pass, and what is wrong must fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import stepwell
from stepwell.slt import run_file
from stepwell.slt.records import ScenarioError
from stepwell.slt.runner import rewrite

SCENARIOS = Path(__file__).parent.parent / "scenarios"


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.slt")), ids=lambda path: path.stem)
def test_a_scenario_comes_out_as_it_says(path: Path, db: stepwell.Database) -> None:
    outcome = run_file(path, db)
    assert outcome.failures == []
    assert outcome.ran > 0


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("postgres/*.slt")), ids=lambda path: path.stem)
def test_a_scenario_in_postgresqls_dialect_comes_out_as_it_says(path: Path, tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "warehouse", dialect="postgres") as db:
        outcome = run_file(path, db)
    assert outcome.failures == []
    assert outcome.ran > 0


def test_the_runner_counts_and_says_what_failed(tmp_path: Path) -> None:
    """As a program: a line for each record that fails, totals, exit 1 on failures."""
    good = tmp_path / "good.slt"
    good.write_text("statement ok\ncreate table t (a varchar)\n\nquery T\nselect name from stepwell.tables\n----\nt\n")
    bad = scenario(tmp_path, "query T\nselect name from stepwell.tables\n----\nu\n")
    broken = tmp_path / "broken.slt"
    broken.write_text("statement perhaps\nselect 1\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "stepwell.slt", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    passed = run(str(good), "--dialect", "postgres")
    assert (passed.returncode, passed.stdout) == (0, "2 passed, 0 failed\n")
    failed = run(str(good), str(bad), str(broken), "--dialect", "postgres")
    assert failed.returncode == 1
    assert failed.stdout.splitlines() == [
        f"{bad}:1: 0 rows instead of 1: expected 'u'",
        f'{broken}:1: a statement is ok, error or count, not "perhaps"',
        "2 passed, 2 failed",
    ]
    assert run(str(tmp_path / "missing.slt")).returncode == 1
    assert run().returncode == 2


def scenario(folder: Path, text: str) -> Path:
    path = folder / "scenario.slt"
    path.write_text(text)
    return path


def test_what_does_not_come_out_as_expected_is_a_line_each(db: stepwell.Database, tmp_path: Path) -> None:
    path = scenario(
        tmp_path,
        """
statement ok
CREATE TABLE t (a INT, b STRING)

statement ok
INSERT INTO nowhere VALUES (1)

statement error
INSERT INTO t VALUES (1, 'x')

statement error never said
SELECT nope FROM t

statement count 5
INSERT INTO t VALUES (2, '')

query IT
SELECT * FROM t ORDER BY a
----
1 y
2 (empty)

query I
SELECT a, b FROM t
----
1 x

changes t
a | b       | _diff
2 | (empty) |    -1

query I rowsort
SELECT a FROM t
----
2
1
""",
    )
    outcome = run_file(path, db)
    assert outcome.ran == 9
    assert [failure.split(": ", 1)[1][:40] for failure in outcome.failures] == [
        'failed: relation "nowhere" does not exis',
        "should have failed",
        'failed otherwise than "never said": colu',
        "touched 1 rows instead of 5",
        "expected '1 y', found '1 x'",
        "has 2 columns instead of 1",
        "expected '2 | (empty) |    -1', found '2",
    ]
    rewrite(outcome)
    again = run_file(path, db)
    assert [failure.split(": ", 1)[1][:20] for failure in again.failures][:2] == [
        'failed: relation "t"',
        'failed: relation "no',
    ]


def test_controls_conditions_and_includes(db: stepwell.Database, tmp_path: Path) -> None:
    (tmp_path / "part.slt.part").write_text("statement ok\nCREATE TABLE t (a DOUBLE, b BOOLEAN, c TIMESTAMP)\n")
    path = scenario(
        tmp_path,
        """
include *.part

control sortmode rowsort

let $number = 2.0

control substitution on

statement ok
INSERT INTO t VALUES ($number, true, TIMESTAMP '2024-05-01'), (0.5, false, NULL)

query RTT retry 2 backoff 10ms
SELECT * FROM t
----
2 t 2024-05-01 00:00:00
0.5 f NULL

query T valuesort
SELECT b FROM t
----
t
f

skipif stepwell
statement ok
SELECT nonsense

onlyif postgres
statement ok
SELECT nonsense

system ok
rm -rf nothing

sleep 1ms

query error nope
SELECT nope FROM t

halt

statement ok
SELECT nonsense
""",
    )
    outcome = run_file(path, db)
    assert (outcome.failures, outcome.ran, outcome.skipped) == ([], 5, 2)


@pytest.mark.parametrize(
    "text",
    ["nonsense", "statement", "statement maybe\nSELECT 1", "statement ok\n\n", "statement count x\nSELECT 1", "control sortmode odd",
     "control nothing", "include missing*", "sleep soon", "changes"],
)  # fmt: skip
def test_a_malformed_file_is_refused_with_its_line(db: stepwell.Database, tmp_path: Path, text: str) -> None:
    with pytest.raises(stepwell.StepwellError) as caught:
        run_file(scenario(tmp_path, "# first\n" + text), db)
    assert not isinstance(caught.value, ScenarioError) or "scenario.slt:2" in caught.value.message
