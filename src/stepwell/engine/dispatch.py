"""Dispatch: which room of the engine a statement goes to. The one module beside the folders that knows them all."""

from __future__ import annotations

from pyspark.sql import DataFrame

from stepwell.engine.define.ddl import define
from stepwell.engine.inspect.inspection import answer_inspection
from stepwell.engine.inspect.verdicts import answer_verify
from stepwell.engine.lead.leader import Leader
from stepwell.engine.lead.vacuum import vacuum
from stepwell.engine.read.naming import relation_named
from stepwell.engine.read.queries import answer_query, explain_query
from stepwell.engine.read.snapshots import readable_epoch
from stepwell.engine.read.system import system_rows
from stepwell.engine.runtime import Runtime
from stepwell.engine.settings import DATABASE_SETTINGS, SESSION_SETTINGS, change_setting, read_setting
from stepwell.engine.write.copying import copy_files
from stepwell.engine.write.statements import stage_statement
from stepwell.engine.write.transactions import Writer
from stepwell.model.rows import Rows
from stepwell.sql import Dialect
from stepwell.sql import statements as s


def run_statement(runtime: Runtime, writer: Writer, leader: Leader, body: s.Body, dialect: Dialect) -> DataFrame | Rows:
    """Run one statement; what it answers, or no columns."""
    match body:
        case s.Query(text):
            return system_rows(runtime, text) or answer_query(runtime, text, writer.snapshot)
        case s.ExplainQuery(text, extended):
            return explain_query(runtime, writer.snapshot(), text, extended=extended)
        case s.Insert() | s.Update() | s.Delete() | s.Merge() | s.Truncate():
            return writer.write(stage_statement(runtime, body))
        case s.Copy():
            return copy_files(runtime, writer, body)
        case (
            s.CreateTable() | s.DropRelations() | s.RenameTable() | s.AddColumns() | s.CreateView() | s.AlterView()
        ):  # fmt: skip
            writer.require_none_open()
            define(runtime, body, leader.wait_written)
        case s.Begin():
            writer.begin()
        case s.Commit():
            return writer.commit()
        case s.Rollback():
            writer.roll_back()
        case s.Flush():
            leader.emit()
            return Rows(["epoch"], [(readable_epoch(runtime),)])
        case s.Verify():
            return answer_verify(runtime, body, leader.wait_written)
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
