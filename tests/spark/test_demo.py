"""What a newcomer runs first: the demo in a terminal and in a pipe, its page, `stepwell init`, `run` and `report`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from click.testing import CliRunner

import stepwell
from stepwell.cli import main
from stepwell.cli.market import Market, to_arrow
from views import answer

SMALL = ["--symbols", "3", "--rate", "0.2", "--hours", "1.2", "--epochs", "2"]
COMMAND = [sys.executable, "-m", "stepwell.cli"]


def page_data(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, object] = json.loads(found[1])
    return data


def test_the_demo_in_a_pipe_shows_every_step_and_leaves_a_page_and_a_warehouse(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "demo", *SMALL], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    for said in (
        "batch 2/2", "watermark", "lag", "a second", "late trades", "before", "after", "EXPLAIN REFRESH ohlc_1m",
        "equal to its query", "What to try next",
    ):  # fmt: skip
        assert said in done.stdout, said
    assert "NOT EQUAL" not in done.stdout
    page = (tmp_path / "stepwell-demo.html").read_text()
    assert page_data(page)
    assert "ohlc_1h" in page
    with stepwell.connect(tmp_path / "stepwell-demo") as db:
        corrected = answer(db, "SELECT count(*) FROM changes(ohlc_1m, 5) WHERE _diff < 0")
        assert corrected[0][0] > 0
        assert answer(db, "VERIFY ohlc_1h")[0][2] is True


def test_the_demo_in_a_terminal_draws_and_can_be_stopped(tmp_path: Path) -> None:
    """Ctrl-C leaves a warehouse that opens again."""
    child = pexpect.spawn(
        COMMAND[0], [*COMMAND[1:], "demo", *SMALL], cwd=tmp_path, dimensions=(40, 80), timeout=300, encoding="utf-8",
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    child.expect("bars appear")
    child.expect("watermark")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.wait()  # closing would kill what has not ended yet
    child.close()
    assert child.exitstatus == 1
    with stepwell.connect(tmp_path / "stepwell-demo") as db:
        db.flush()
        assert answer(db, "SELECT count(*) FROM trades")[0][0] >= 0


def test_a_pipeline_to_start_from_runs_and_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    assert runner.invoke(main, ["init", "p"]).exit_code == 0
    again = runner.invoke(main, ["init", "p"])
    assert again.exit_code == 2
    assert "exists already" in again.output
    monkeypatch.chdir(tmp_path / "p")
    dry = runner.invoke(main, ["run", "pipeline.sql", "--dry-run"])
    assert dry.exit_code == 0, dry.output
    assert "1/6 create: CREATE TABLE trades" in dry.output
    first = runner.invoke(main, ["run", "pipeline.sql"])
    assert first.exit_code == 0, first.output
    assert "AAPL" in first.stdout
    second = runner.invoke(main, ["run", "pipeline.sql"])
    assert second.exit_code == 0, second.output
    assert "4 unchanged" in second.output
    with stepwell.connect("warehouse") as db:
        assert answer(db, "SELECT count(*) FROM trades") == [(9,)]
    pipeline = Path("pipeline.sql")
    pipeline.write_text(
        pipeline.read_text().replace("max(bar_time) AS bar_time", "max(bar_time) AS bar_time, count(*) AS n")
    )
    third = runner.invoke(main, ["run", "pipeline.sql"])
    assert third.exit_code == 0, third.output
    assert "4/6 replace" in third.output
    with stepwell.connect("warehouse") as db:
        assert [row[0] for row in answer(db, "SELECT n FROM last_close ORDER BY symbol")] == [2, 2]
    written = runner.invoke(main, ["report", "--out", "page.html"])
    assert written.exit_code == 0, written.output
    assert page_data(Path("page.html").read_text())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "nothing.sql"], 2, "cannot read"),
        (["run", "bad.sql"], 1, 'expected CREATE|does not begin a statement'),
        (["run", "fails.sql"], 1, 'relation "missing" does not exist'),
        (["run", "table.sql"], 1, "exists already"),
        (["report", "-w", "nowhere"], 1, "there is no warehouse"),
        (["demo", "--hours", "0"], 2, "--hours"),
        (["init", "bad.sql"], 2, "cannot write"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.sql").write_text("CREATE TABLE t (a INT); FROB x;")
    Path("fails.sql").write_text("CREATE TABLE t (a INT); SELECT * FROM missing; CREATE TABLE u (a INT);")
    Path("table.sql").write_text("CREATE TABLE t (a INT); CREATE TABLE t (a STRING);")
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == code, done.output
    assert re.search(said, done.output)
    if arguments[-1] == "bad.sql" and code == 1:  # it is read before anything is run
        assert not Path("warehouse").exists() or "CREATE TABLE t" not in done.output


def test_the_market_is_the_same_for_the_same_seed_and_as_it_is_said_to_be() -> None:
    first, second = (Market(symbols=6, rate=4, seed=3).run(7200) for _ in range(2))
    assert first == second
    times = [trade[4] for trade in first]
    assert len(set(times)) < 0.8 * len(times), "ties are the rule"
    assert times != sorted(times), "some arrive later than others"
    symbols = [trade[1] for trade in first]
    assert symbols.count("AAPL") > 3 * symbols.count("TSLA"), "few are busy"
    quiet = [trade for trade in first if trade[4] < times[0] + 3_600_000_000]
    assert len(first) - len(quiet) > 2 * len(quiet), "the second hour is busier"
    assert to_arrow(first).num_rows == len(first)
    assert to_arrow([]).num_rows == 0
