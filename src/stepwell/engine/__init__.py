"""The engine: steps to DataFrames, and the loop that makes epochs of them.

`Runtime` is what it acts on, `Snapshot` what a statement sees; `run_query` answers queries, `stage_statement` and
`stage_data` compute what a write changes, the `Leader` runs the barriers, `compact` and `vacuum` tidy up behind it.
"""

from stepwell.engine.compaction import compact
from stepwell.engine.failures import translate, translated
from stepwell.engine.java import find_java
from stepwell.engine.leader import Leader
from stepwell.engine.queries import plain_name, run_query
from stepwell.engine.runtime import Runtime
from stepwell.engine.session import Spark
from stepwell.engine.snapshots import Snapshot
from stepwell.engine.staging import discard, require_files
from stepwell.engine.statements import Staging, stage_data, stage_statement
from stepwell.engine.system import SYSTEM_NAMESPACE, SYSTEM_TABLES, read_system_table
from stepwell.engine.vacuum import clean_orphans, vacuum

__all__ = [
    "SYSTEM_NAMESPACE",
    "SYSTEM_TABLES",
    "Leader",
    "Runtime",
    "Snapshot",
    "Spark",
    "Staging",
    "clean_orphans",
    "compact",
    "discard",
    "find_java",
    "plain_name",
    "read_system_table",
    "require_files",
    "run_query",
    "stage_data",
    "stage_statement",
    "translate",
    "translated",
    "vacuum",
]
