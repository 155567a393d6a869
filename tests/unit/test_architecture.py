"""The layers of the design, held by reading the imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepwell

SOURCE = Path(stepwell.__file__).parent

NOUNS = {"model", "version"}
PLANNING = NOUNS | {"sql", "graph", "algebra", "rules", "plan"}
ENGINE = PLANNING | {"catalog", "storage", "engine"}
LAYERS: dict[str, set[str]] = {
    "version": set(),
    "model": set(),
    "sql": NOUNS,
    "graph": NOUNS,
    "algebra": NOUNS | {"sql", "graph"},
    "rules": NOUNS | {"algebra"},
    "plan": PLANNING,
    "catalog": NOUNS | {"sql", "plan"},
    "storage": NOUNS | {"sql", "plan"},
    "engine": ENGINE,
    "database": ENGINE,
    "notebook": ENGINE | {"database"},
    "slt": ENGINE | {"database"},
    "bench": ENGINE | {"database"},
    "web": NOUNS,
    "cli": NOUNS | {"sql", "graph", "database", "bench", "web"},
}
"""The parts, and the other parts that each may import."""

ENGINE_FOLDERS = ("", "read", "define", "write", "maintain", "lead", "inspect")
"""The folders of the engine: each may import those before it. The first is the engine's root, which knows none."""

DISPATCH = "dispatch"
"""The one module beside the folders that knows them all, and that none of them knows."""

SEEN_FROM_SEVERAL_LAYERS: dict[str, set[str]] = {
    "assignment": {"plan", "engine.write"},
    "bench": {"", "cli"},
    "checkpoints": {"model", "storage", "engine.lead", "engine.inspect", "bench"},
    "compaction": {"plan", "engine.lead"},
    "copying": {"sql", "engine.write"},
    "costs": {"plan", "engine"},
    "deferred": {"engine.read", "engine.maintain"},
    "drawing": {"graph", "web"},
    "emission": {"rules", "engine.maintain"},
    "files": {"model", "catalog"},
    "functions": {"model", "engine"},
    "jobs": {"model", "catalog", "engine.lead", "engine.inspect"},
    "lateness": {"rules", "plan"},
    "lineage": {"plan", "engine.read"},
    "loads": {"model", "catalog"},
    "programs": {"rules", "plan"},
    "relations": {"model", "catalog"},
    "report": {"web", "cli"},
    "runs": {"sql", "engine.define"},
    "settings": {"catalog", "engine"},
    "sql": {"", "cli"},
    "statements": {"sql", "engine.write"},
    "types": {"model", "storage"},
    "verify": {"engine.inspect", "cli"},
    "views": {"model", "sql", "catalog", "bench"},
    "watermarks": {"model", "catalog"},
    "writes": {"model", "catalog"},
}
"""The names that several modules have, each because it is one concept seen from two layers or more."""

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
    allowed = LAYERS[part] | {part}
    assert parts_imported(path) <= allowed, f"{part} may not import {parts_imported(path) - allowed}"


def test_the_folders_of_the_engine_import_only_those_before_them() -> None:
    folder = SOURCE / "engine"
    assert {path.parent.name for path in folder.glob("*/__init__.py")} == set(ENGINE_FOLDERS) - {""}
    found = set()
    for path in folder.rglob("*.py"):
        if path == folder / "__init__.py":
            continue  # the list of what the engine offers
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        here = len(ENGINE_FOLDERS) if module == DISPATCH else ENGINE_FOLDERS.index(module.rpartition(".")[0])
        for name in engine_modules(imports_of(path)):
            if name == DISPATCH or ENGINE_FOLDERS.index(name.rpartition(".")[0]) > here:
                found.add((module, name))
    assert found == set()


def engine_modules(names: set[str]) -> set[str]:
    """The modules of the engine among imported names, as `folder.module`, or just `module` in its root."""
    inside = {name.removeprefix("stepwell.engine.") for name in names if name.startswith("stepwell.engine.")}
    return {name for name in inside if (SOURCE / "engine" / f"{name.replace('.', '/')}.py").is_file()}


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
    for path in (SOURCE / "model").glob("*.py"):
        imported = {each.split(".")[0] for each in imports_of(path)}
        assert not imported & outside or path.stem in {"failpoints", "rows"}, path.stem


@pytest.mark.parametrize("path", [path for path in modules() if part_of(path) in {"algebra", "rules", "plan"}], ids=str)
def test_planning_reaches_for_nothing(path: Path) -> None:
    imported = imports_of(path)
    assert not {name.split(".")[0] for name in imported} & {"os", "pathlib", "time", "pyspark"}
    assert not {name for name in imported if name.startswith("stepwell.model.clock")}


def test_planning_never_loads_spark() -> None:
    parts = [part for part in sorted(PLANNING) if (SOURCE / part).is_dir()]
    names = ", ".join(f"stepwell.{part}" for part in parts)
    code = f"import sys, {names}; assert 'pyspark' not in sys.modules, 'pyspark'"
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


def test_two_modules_share_a_name_only_as_one_concept_seen_from_several_layers() -> None:
    found: dict[str, set[str]] = {}
    for path in modules():
        parts = path.relative_to(SOURCE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and parts[-1] != "__main__" and "migrations" not in parts:
            found.setdefault(parts[-1], set()).add(".".join(parts[:-1]))
    assert {name: places for name, places in found.items() if len(places) > 1} == SEEN_FROM_SEVERAL_LAYERS


def test_no_two_types_share_a_name() -> None:
    names = Counter(name for path in modules() for name in types_of(path))
    assert {name for name, times in names.items() if times > 1} == set()


def types_of(path: Path) -> Iterator[str]:
    """The public types that a module makes: classes, and other names in capital and small letters, as types have."""
    for node in ast.parse(path.read_text()).body:
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
            ):
                if name[0].isupper() and not name.isupper():
                    yield name
            case _:
                pass
