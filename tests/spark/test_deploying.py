"""`stepwell run` as a deploy tool: what a file has to do where some of it is there, rehearsed before it is done."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

import stepwell
from stepwell.catalog import settings
from stepwell.cli import main
from views import answer

PIPELINE = """
CREATE TABLE events (id INT, kind STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 0 SECONDS);
COPY events FROM 'data/events.csv' WITH (label = 'first');
CREATE MATERIALIZED VIEW minutes AS SELECT window(at, '1 minute').start AS minute, count(*) AS n
  FROM events GROUP BY window(at, '1 minute') EMIT ON WINDOW CLOSE;
CREATE MATERIALIZED VIEW kinds AS SELECT kind, count(*) AS n FROM events WHERE id > 0 GROUP BY kind;
"""


class Deploy:
    """A folder with a pipeline, and a warehouse elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = folder / "warehouse"
        self.file = folder / "pipeline" / "pipeline.sql"
        (folder / "pipeline" / "data").mkdir(parents=True)
        (folder / "pipeline" / "data" / "events.csv").write_text(
            "id,kind,at\n1,a,2024-05-01 10:00:10\n2,b,2024-05-01 10:05:00\n"
        )

    def run(self, text: str, *options: str) -> Result:
        self.file.write_text(text)
        return CliRunner().invoke(main, ["run", str(self.file), "-w", str(self.warehouse), *options])

    def names(self) -> list[str]:
        with stepwell.connect(self.warehouse) as db:
            return [each.name for each in db.relations()]


@pytest.fixture(scope="module")
def deploy(tmp_path_factory: pytest.TempPathFactory) -> Deploy:
    return Deploy(tmp_path_factory.mktemp("deploy"))


def test_a_rehearsal_creates_nothing_and_fails_on_what_would_fail(deploy: Deploy) -> None:
    dry = deploy.run(PIPELINE, "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "3/4 create: CREATE MATERIALIZED VIEW minutes" in dry.stderr
    assert not deploy.warehouse.exists()
    for wrong, said in [
        ("SELECT id FROM kind;", 'relation "kind" does not exist'),
        ("SELECT nn FROM kinds;", '"nn" does not exist'),
        ("INSERT INTO kinds SELECT 'x';", "2 columns"),
        ("COPY events FROM 'nowhere.csv';", "there is no file at"),
        ("CREATE MATERIALIZED VIEW v AS SELECT minute, nobody FROM minutes;", '"nobody" does not exist'),
    ]:
        failed = deploy.run(PIPELINE + wrong, "--dry-run")
        assert (failed.exit_code, said in failed.stderr) == (1, True), failed.output
    assert not deploy.warehouse.exists()


def test_what_is_done_once_is_left_alone_however_it_is_written(deploy: Deploy) -> None:
    first = deploy.run(PIPELINE)
    assert first.exit_code == 0, first.output
    with stepwell.connect(deploy.warehouse) as db:
        assert answer(db, "SELECT count(*) FROM events") == [(2,)]
        db.sql("INSERT INTO events VALUES (3, 'late', TIMESTAMP '2024-05-01 10:00:20')")
        [ids] = [dict(answer(db, "SELECT name, id FROM stepwell.tables"))]
    respelt = PIPELINE.replace("SELECT kind, count(*) AS n", "SELECT  kind,\n  COUNT(1) AS n").replace(
        "window(at, '1 minute').start AS minute", "window( at, '1 minute' ).start   AS minute"
    )
    second = deploy.run(respelt)
    assert second.exit_code == 0, second.output
    assert "1 run, 3 unchanged" in second.stderr
    with stepwell.connect(deploy.warehouse) as db:
        assert dict(answer(db, "SELECT name, id FROM stepwell.tables")) == ids
        assert answer(db, "SELECT sum(rows_inserted) FROM stepwell.late_rows") == [(1,)], "its ledger is there still"


def test_a_change_of_closed_windows_is_shown_and_has_to_be_wanted(deploy: Deploy) -> None:
    changed = PIPELINE.replace("count(*) AS n\n  FROM events", "count(id) AS n\n  FROM events WHERE id < 9")
    refused = deploy.run(changed)
    assert refused.exit_code == 1
    assert 'replacing "minutes" computes its closed windows anew and forgets 1 late row of its ledger' in refused.stderr
    assert "--replace-closed" in refused.stderr
    with stepwell.connect(deploy.warehouse) as db:
        assert answer(db, "SELECT n FROM minutes") == [(1,)]
    done = deploy.run(changed, "--replace-closed")
    assert "3/4 replace: CREATE MATERIALIZED VIEW minutes" in done.stderr
    with stepwell.connect(deploy.warehouse) as db:
        assert answer(db, "SELECT n FROM minutes") == [(2,)]


def test_tables_gain_columns_views_options_and_what_the_file_has_not_is_named(deploy: Deploy) -> None:
    changed = PIPELINE.replace("at TIMESTAMP,", "at TIMESTAMP, extra DOUBLE,", 1)
    refused = deploy.run(changed, "--dry-run")
    assert "It has at TIMESTAMP" not in refused.stderr
    assert "1/4 alter: CREATE TABLE events" in refused.stderr
    lines = PIPELINE.split("CREATE MATERIALIZED VIEW minutes")[0] + (
        "CREATE MATERIALIZED VIEW kinds WITH (priority = 3) AS"
        " SELECT kind, count(*) AS n FROM events WHERE id > 0 GROUP BY kind;"
    )
    named = deploy.run(lines.replace("at TIMESTAMP,", "at TIMESTAMP, extra DOUBLE,", 1))
    assert named.exit_code == 0, named.output
    assert "3/3 alter: CREATE MATERIALIZED VIEW kinds" in named.stderr
    assert 'not in the file: materialized view "minutes", left alone; --prune drops it' in named.stderr
    assert "minutes" in deploy.names()
    pruned = deploy.run(lines, "--prune")
    assert pruned.exit_code == 0, pruned.output
    assert deploy.names() == ["events", "kinds"]
    other = deploy.run(lines.replace("id INT", "id BIGINT"))
    assert other.exit_code == 1
    assert "It has id INT where the file has id BIGINT." in other.stderr
    assert "nothing was done" in other.stderr


def test_what_came_before_a_failure_stays_and_is_said(deploy: Deploy) -> None:
    lines = PIPELINE + (
        "INSERT INTO events (id, kind) VALUES (7, 'seven');"
        "INSERT INTO events (id, kind) SELECT CAST(raise_error('no') AS INT), 'x';"
    )
    failed = deploy.run(lines)
    assert failed.exit_code == 1
    assert "5 of 6 statements are done, and stay" in failed.stderr
    with stepwell.connect(deploy.warehouse) as db:
        assert answer(db, "SELECT count(*) FROM events WHERE id = 7") == [(1,)]


def test_following_changes_no_setting(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stepwell.cli.run.time", SimpleNamespace(sleep=interrupted, monotonic=time.monotonic))
    followed = deploy.run("CREATE TABLE IF NOT EXISTS more (a INT);", "--follow")
    assert "following; Ctrl-C ends it" in followed.stderr
    with stepwell.connect(deploy.warehouse) as db, db._runtime.catalog.read() as tx:
        assert settings.get(tx, "barrier_interval") is None
