"""The engine: steps to DataFrames, and the loop that makes epochs of them.

`Runtime` is what it acts on, `Snapshot` what a statement sees; `run_query` answers queries, `stage_statement` and
`stage_data` compute what a write changes, the `Leader` runs the barriers, `compact` and `vacuum` tidy up behind it.
"""

from stepwell.engine.compaction import compact
from stepwell.engine.creation import (
    alter_view,
    create_view,
    drop_relations,
    require_built,
    require_resumed,
    view_called,
)
from stepwell.engine.definitions import load_in
from stepwell.engine.failures import translate, translated
from stepwell.engine.inspection import (
    create_text,
    differences,
    graph_nodes,
    inspect,
    is_system,
    refuse_system,
    relation_called,
)
from stepwell.engine.java import find_java
from stepwell.engine.leader import Leader, stopped_waiting
from stepwell.engine.loading import Loading
from stepwell.engine.queries import EXTERNAL_CODE, plain_name, run_query
from stepwell.engine.runtime import Runtime
from stepwell.engine.session import Spark
from stepwell.engine.snapshots import Snapshot
from stepwell.engine.staging import discard, give_back, require_files
from stepwell.engine.statements import Staging, stage_data, stage_statement
from stepwell.engine.stopped import failed_in
from stepwell.engine.system import SYSTEM_NAMESPACE, SYSTEM_TABLES, read_system_table, system_rows
from stepwell.engine.vacuum import clean_orphans, vacuum
from stepwell.engine.verify import Verdict, mark_for_repair, verify
from stepwell.engine.watermarks import advance_watermark

__all__ = [
    "EXTERNAL_CODE",
    "SYSTEM_NAMESPACE",
    "SYSTEM_TABLES",
    "Leader",
    "Loading",
    "Runtime",
    "Snapshot",
    "Spark",
    "Staging",
    "Verdict",
    "advance_watermark",
    "alter_view",
    "clean_orphans",
    "compact",
    "create_text",
    "create_view",
    "differences",
    "discard",
    "drop_relations",
    "failed_in",
    "find_java",
    "give_back",
    "graph_nodes",
    "inspect",
    "is_system",
    "load_in",
    "mark_for_repair",
    "plain_name",
    "read_system_table",
    "refuse_system",
    "relation_called",
    "require_built",
    "require_files",
    "require_resumed",
    "run_query",
    "stage_data",
    "stage_statement",
    "stopped_waiting",
    "system_rows",
    "translate",
    "translated",
    "vacuum",
    "verify",
    "view_called",
]
