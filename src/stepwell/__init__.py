"""stepwell: cascading materialized views for Apache Spark.

`connect` opens a warehouse; the `Database` it gives takes SQL and data. Every error is a `StepwellError`.
"""

from stepwell.database import Database, connect
from stepwell.model.errors import ConflictError, InternalError, StepwellError, StepwellWarning
from stepwell.model.functions import Function
from stepwell.model.rows import Rows
from stepwell.notebook import load_ipython_extension
from stepwell.version import __version__

__all__ = [
    "ConflictError",
    "Database",
    "Function",
    "InternalError",
    "Rows",
    "StepwellError",
    "StepwellWarning",
    "__version__",
    "connect",
    "load_ipython_extension",
]
