"""The engine: steps to DataFrames, and the loop that makes epochs of them.

`Runtime` is what it acts on and `RunningStatement` what is in flight there; `Snapshot` is what a statement sees.
`run_together` runs whatever a user says; the `Writer` acknowledges what was staged, the `Leader` runs the barriers,
`vacuum` tidies up. An `Onlooker` only looks.
"""

from stepwell.engine.damages import naming_relations
from stepwell.engine.dispatch import run_together
from stepwell.engine.failures import translated
from stepwell.engine.functions import register_function
from stepwell.engine.inspect.inspection import answer_inspection, graph_nodes
from stepwell.engine.inspect.refreshes import refresh_view
from stepwell.engine.inspect.rehearsal import rehearse
from stepwell.engine.inspect.standing import Damage, Onlooker, Standing
from stepwell.engine.java import find_java
from stepwell.engine.lead.leader import Leader
from stepwell.engine.lead.vacuum import clean_orphans, vacuum
from stepwell.engine.maintain.event_time import advance_watermark, moved_views
from stepwell.engine.opening import open_existing, open_runtime
from stepwell.engine.read.naming import user_relations
from stepwell.engine.read.queries import answer_changes, answer_query
from stepwell.engine.read.snapshots import Snapshot, readable_epoch
from stepwell.engine.read.system import SYSTEM_NAMESPACE, SYSTEM_TABLES
from stepwell.engine.running import Progress, RunningStatement
from stepwell.engine.runtime import Runtime
from stepwell.engine.settings import DATABASE_SETTINGS, SESSION_SETTINGS
from stepwell.engine.write.copying import copy_parquet
from stepwell.engine.write.labels import once
from stepwell.engine.write.statements import stage_data
from stepwell.engine.write.streams import start_stream
from stepwell.engine.write.transactions import Writer

__all__ = [
    "DATABASE_SETTINGS",
    "SESSION_SETTINGS",
    "SYSTEM_NAMESPACE",
    "SYSTEM_TABLES",
    "Damage",
    "Leader",
    "Onlooker",
    "Progress",
    "RunningStatement",
    "Runtime",
    "Snapshot",
    "Standing",
    "Writer",
    "advance_watermark",
    "answer_changes",
    "answer_inspection",
    "answer_query",
    "clean_orphans",
    "copy_parquet",
    "find_java",
    "graph_nodes",
    "moved_views",
    "naming_relations",
    "once",
    "open_existing",
    "open_runtime",
    "readable_epoch",
    "refresh_view",
    "register_function",
    "rehearse",
    "run_together",
    "stage_data",
    "start_stream",
    "translated",
    "user_relations",
    "vacuum",
]
