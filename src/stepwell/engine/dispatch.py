"""Dispatch: which room of the engine a statement goes to. The one module beside the folders that knows them all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pyspark.sql import DataFrame

from stepwell.engine.damages import naming_relations
from stepwell.engine.define.ddl import define
from stepwell.engine.define.runs import create_all
from stepwell.engine.failures import pointing_at, translated
from stepwell.engine.inspect.checkpoints import answer_checkpoint, show_checkpoints
from stepwell.engine.inspect.inspection import answer_inspection
from stepwell.engine.inspect.jobs import change_job, wait_for_jobs
from stepwell.engine.inspect.refreshes import answer_refresh, run_job
from stepwell.engine.inspect.verdicts import answer_verify
from stepwell.engine.lead.leader import Leader
from stepwell.engine.lead.restoring import restore
from stepwell.engine.lead.vacuum import vacuum
from stepwell.engine.read.naming import relation_named
from stepwell.engine.read.queries import answer_query, explain_query
from stepwell.engine.read.snapshots import readable_epoch
from stepwell.engine.read.system import finished, reads_system_alone, system_rows
from stepwell.engine.runtime import Runtime
from stepwell.engine.settings import DATABASE_SETTINGS, SESSION_SETTINGS, change_setting, read_setting
from stepwell.engine.write.copying import copy_files
from stepwell.engine.write.statements import stage_statement
from stepwell.engine.write.transactions import Writer
from stepwell.model.rows import Rows
from stepwell.sql import Dialect
from stepwell.sql import statements as s


def run_together(
    runtime: Runtime, writer: Writer, leader: Leader, run: Sequence[s.Statement], dialect: Dialect
) -> DataFrame | Rows:
    """Run one statement, or several CREATEs as one; what it answers, or no columns."""
    first, *others = run
    body = first.body
    if isinstance(body, s.CreateTable | s.CreateView):
        with pointing_at(first):
            writer.require_none_open()
        with naming_relations(runtime):
            left = create_all(runtime, run, leader)
        return Rows(["job"], [(job,) for job in left]) if left else Rows([], [])
    assert not others, "only CREATEs run together"
    with pointing_at(first), naming_relations(runtime), translated():
        return _run(runtime, writer, leader, body, dialect)


def _run(runtime: Runtime, writer: Writer, leader: Leader, body: s.Single, dialect: Dialect) -> DataFrame | Rows:
    match body:
        case s.Query(text):
            known = system_rows(runtime, text)
            if known is not None:
                return known
            frame = answer_query(runtime, text, writer.snapshot)
            return finished(frame) if reads_system_alone(text) else frame
        case s.ExplainQuery(text, extended):
            return explain_query(runtime, writer.snapshot(), text, extended=extended)
        case s.Insert() | s.Update() | s.Delete() | s.Merge() | s.Truncate():
            return writer.write(stage_statement(runtime, body))
        case s.Copy():
            return copy_files(runtime, writer, body)
        case s.DropRelations() | s.RenameTable() | s.AddColumns() | s.AlterView():
            writer.require_none_open()
            define(runtime, body, leader.wait_written)
        case s.Begin():
            writer.begin()
        case s.Commit():
            return writer.commit()
        case s.Rollback():
            writer.roll_back()
        case s.Flush(publishes, name):
            relation_id = relation_named(runtime, name).id if name is not None else None
            leader.emit()
            if publishes:
                leader.publish(relation_id)
            return Rows(["epoch"], [(readable_epoch(runtime),)])
        case s.Verify():
            return answer_verify(runtime, body, leader.wait_written, lambda asked: run_job(runtime, asked, leader))
        case s.RefreshView():
            writer.require_none_open()
            return answer_refresh(runtime, body, leader)
        case s.CheckpointTo(path):
            writer.require_none_open()
            return answer_checkpoint(runtime, path, leader)
        case s.ShowCheckpoints(path):
            return show_checkpoints(path)
        case s.RestoreFrom(path, epoch):
            writer.require_none_open()
            report = dataclasses.asdict(restore(runtime, path, epoch))
            leader.interval_changed()
            leader.start_if_needed()
            return Rows(list(report), [tuple(report.values())])
        case s.ChangeJob():
            change_job(runtime, body)
            leader.ensure_led()
        case s.WaitForJobs():
            wait_for_jobs(runtime, body, leader)
        case s.SetOption(name, value):
            if name not in DATABASE_SETTINGS | SESSION_SETTINGS and dialect != Dialect.SPARK:
                return Rows([], [], notes=[f'there is no setting "{name}": ignored'])
            change_setting(runtime, name, value)
            leader.interval_changed()
        case s.Optimize(name):
            relation = relation_named(runtime, name)
            leader.optimize(relation.id)
            return Rows(["name", "epoch"], [(relation.name, readable_epoch(runtime))])
        case s.Vacuum():
            return Rows(["files_removed"], [(vacuum(runtime, read_setting(runtime, "retention")),)])
        case _:
            return answer_inspection(runtime, body)
    return Rows([], [])
