"""Limits: one value holds every threshold, and nobody has another."""

from __future__ import annotations

import ast
import itertools
import threading
from dataclasses import fields
from pathlib import Path

import stepwell
from stepwell.engine.backoff import RefoldBackOff
from stepwell.model import limits
from stepwell.model.limits import Limits
from stepwell.model.views import RelationId

SOURCE = Path(stepwell.__file__).parent

NO_THRESHOLDS = {
    "engine/java.py": {"OLDEST"},
    "engine/define/deferral.py": {"_GROUPED"},
    "engine/inspect/rehearsal.py": {"_FIRST_NUMBER"},
    "engine/write/loading.py": {"_SHOWN"},
    "engine/write/staging.py": {"_FIRST", "_SERIES", "_SPARK_STRIDE"},
    "algebra/aggregates.py": {"_LIMB"},
    "rules/blocks.py": {"LEAF", "VERSION"},
    "rules/lateness.py": {"_DAY"},
    "plan/times.py": {"_DAY", "_MONDAY"},
    "storage/parquet.py": {"ROW_GROUP", "_DAY"},
    "storage/time_ranges.py": {"_DAY"},
}
"""The numbers that stand in a module, since they are part of a format, a law of nature or a meaning."""


def test_every_limit_says_why() -> None:
    tree = ast.parse(Path(limits.__file__).read_text())
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef))
    said = [
        first.target.id
        for first, second in itertools.pairwise(body)
        if isinstance(first, ast.AnnAssign)
        and isinstance(first.target, ast.Name)
        and isinstance(second, ast.Expr)
        and isinstance(second.value, ast.Constant)
    ]
    assert said == [each.name for each in fields(Limits)]


def test_nobody_keeps_a_threshold_of_its_own() -> None:
    found: dict[str, set[str]] = {}
    for part in ("engine", "plan", "storage", "rules", "algebra"):
        for path in (SOURCE / part).rglob("*.py"):
            names = {name for node in ast.parse(path.read_text()).body for name in _numbers(node)}
            if names:
                found[str(path.relative_to(SOURCE))] = names
    assert found == NO_THRESHOLDS


def _numbers(node: ast.stmt) -> set[str]:
    """The names that a statement gives to numbers."""
    if not isinstance(node, ast.Assign):
        return set()
    names = [each for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return {name.id for name, value in zip(names, values, strict=False) if _is_number(value)}


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=each):
            return isinstance(each, int | float) and not isinstance(each, bool)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) or _is_number(right)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
    return False


def test_folding_is_tried_again_after_so_many_refreshes() -> None:
    back_off, view, other = RefoldBackOff(), RelationId(1), RelationId(2)
    assert view not in back_off.waiting
    back_off.failed(view, 3)
    seen = []
    for _ in range(5):
        seen.append(view in back_off.waiting)
        back_off.refreshed(view)
    assert seen == [True, True, True, False, False]
    assert other not in back_off.waiting


def test_two_threads_never_both_count_one_refresh() -> None:
    back_off, view = RefoldBackOff(), RelationId(1)
    back_off.failed(view, 1001)

    def refresh() -> None:
        for _ in range(500):
            back_off.refreshed(view)

    threads = [threading.Thread(target=refresh) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert view in back_off.waiting
    back_off.refreshed(view)
    assert view not in back_off.waiting
