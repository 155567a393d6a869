"""The JVM: the one module that touches Java. It has Spark's analyzed plans read, brought into one shape and compared.

The reader is Java source of ours, `PlanReader.java`, compiled at its first use by the compiler that Spark ships for
its own generated code. Its class carries a hash of the source in its name: py4j remembers methods by class name.
"""

from __future__ import annotations

import hashlib
import json
import threading
from importlib import resources
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

_compiling = threading.Lock()
_known: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()
"""The reader of each SparkContext: compiling takes a second."""

_OFTEN = (
    "functions",
    "PythonUtils",
    "PythonSQLUtils",
    "PythonRDD",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.classic.SparkSession$",
)
"""Classes of Spark's that PySpark asks Java for by name, one or several times a call of ours."""


def remember_classes(session: SparkSession) -> None:
    """Let PySpark keep the classes that it would look up again and again.

    Each time, Java would look for the name in every package that PySpark has imported, and so in all of some 300 jars.
    """
    jvm: Any = session._jvm
    for name in _OFTEN:
        setattr(jvm, name, getattr(jvm, name))


class PlanReader:
    """Analyzed plans of one JVM. A plan is an object of Java's that only this class looks into."""

    def __init__(self, session: SparkSession) -> None:
        self._reader = _compiled(session)
        self._lock = threading.Lock()

    def analyzed(self, frame: DataFrame) -> Any:
        """The analyzed plan of a query."""
        return frame._jdf.queryExecution().analyzed()

    def prepared(self, plan: Any) -> Any:
        """The plan in one shape: CTEs written out, subqueries as joins, Expand and PIVOT lowered."""
        return self._reader.prepared(plan)

    def read(self, plan: Any) -> dict[str, Any]:
        """A plan as a tree of dictionaries, nothing of it lost."""
        with self._lock:
            pieces = [self._reader.piece(index) for index in range(self._reader.read(plan))]
        found: dict[str, Any] = json.loads("".join(pieces))
        return found

    def same(self, one: Any, other: Any) -> bool:
        """Whether two prepared plans mean the same to Spark."""
        return bool(self._reader.same(one, other))

    def undetermined(self, plan: Any) -> str | None:
        """The name of a function in a plan that gives another value each time, such as rand()."""
        found: str | None = self._reader.undetermined(plan)
        return found

    def changes_with_time(self, plan: Any) -> bool:
        """Whether the plan asks for the current time, user or the like."""
        return bool(self._reader.changesWithTime(plan))


def _compiled(session: SparkSession) -> Any:
    source = resources.files("stepwell.engine").joinpath("PlanReader.java").read_text()
    name = f"PlanReader_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    jvm: Any = session._jvm
    with _compiling:
        context = session.sparkContext
        if context not in _known:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
            compiler.cook(source.replace("CLASS_NAME", name))
            made = (
                compiler.getClassLoader()
                .loadClass(name)
                .getDeclaredConstructors()[0]
                .newInstance(jvm.java.lang.reflect.Array.newInstance(jvm.Class.forName("java.lang.Object"), 0))
            )
            _known[context] = made
        return _known[context]
