"""The layers of the design, held by reading the imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell

SOURCE = Path(stepwell.__file__).parent

NOUNS = {
    "errors", "epochs", "files", "relations", "writes", "types", "durations", "clock", "failpoints", "definitions", "rows", "version", "views", "loads", "functions", "watermarks",
}  # fmt: skip
LAYERS: dict[str, set[str]] = {
    "sql": NOUNS,
    "graph": NOUNS,
    "plan": NOUNS | {"sql", "graph"},
    "catalog": NOUNS | {"sql", "plan"},
    "storage": NOUNS | {"sql", "plan"},
    "engine": NOUNS | {"sql", "graph", "plan", "catalog", "storage"},
    "database": NOUNS | {"sql", "graph", "plan", "catalog", "storage", "engine"},
    "bench": NOUNS | {"sql", "graph", "plan", "catalog", "storage", "engine", "database"},
    "notebook": NOUNS | {"sql", "graph", "plan", "catalog", "storage", "engine", "database"},
    "slt": NOUNS | {"sql", "graph", "plan", "catalog", "storage", "engine", "database"},
    "web": NOUNS,
    "cli": NOUNS | {"sql", "graph", "plan", "catalog", "storage", "engine", "database", "bench", "web"},
}
MAY_IMPORT_SPARK = {"engine", "storage", "bench"}
NEVER_FOR_DATA = {"pandas", "polars", "duckdb", "pyarrow.compute"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Full names of everything a module imports at any depth, but for what only type checkers see."""
    tree = ast.parse(path.read_text())
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def parts_imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports_of(path) if name.startswith("stepwell.")}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_part_imports_only_what_stands_above_it(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        return
    allowed = NOUNS if part in NOUNS else LAYERS[part] | {part}
    assert parts_imported(path) <= allowed, f"{part} may not import {parts_imported(path) - allowed}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_engine_and_storage_know_spark(path: Path) -> None:
    uses = {name for name in imports_of(path) if name.split(".")[0] == "pyspark"}
    if path.name == "rows.py":
        uses -= {"pyspark.sql", "pyspark.sql.Row"}  # the class that collect() answers with, imported when it is called
    assert not uses or part_of(path) in MAY_IMPORT_SPARK


@pytest.mark.parametrize("path", [path for path in modules() if part_of(path) in {"engine", "storage"}], ids=str)
def test_rows_are_computed_by_spark_alone(path: Path) -> None:
    assert not imports_of(path) & NEVER_FOR_DATA


def test_the_nouns_do_no_input_or_output() -> None:
    outside = {"os", "pathlib", "sqlalchemy", "pyarrow", "pyspark", "deltalake"}
    for name in NOUNS - {"failpoints", "rows"}:
        imported = {each.split(".")[0] for each in imports_of(SOURCE / f"{name}.py")}
        assert not imported & outside, name


def test_planning_never_loads_spark() -> None:
    code = "import sys, stepwell.plan, stepwell.sql; assert 'pyspark' not in sys.modules, 'pyspark'"
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['stepwell'] = None\n{_without_facade(code)}"], check=True
    )


def _without_facade(code: str) -> str:
    """The facade imports everything; planning is imported by itself, as a package whose parent stays empty."""
    return (
        "import types, sys\n"
        f"parent = types.ModuleType('stepwell'); parent.__path__ = [{str(SOURCE)!r}]\n"
        "sys.modules['stepwell'] = parent\n"
        f"{code}"
    )


@pytest.mark.parametrize("arguments", [["--help"], ["sql", "--help"], ["status", "--help"]])
def test_help_starts_no_jvm(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom stepwell.cli import main\n"
        f"sys.argv = ['stepwell', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "context = sys.modules.get('pyspark')\n"
        "assert context is None or context.SparkContext._gateway is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
