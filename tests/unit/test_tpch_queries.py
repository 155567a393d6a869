"""The queries of TPC-H: every one is taken apart, and nothing of it is left to be recomputed as a whole."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp
from stepwell.plan.decompose import Decomposer

from stepwell.bench.tpch_queries import QUERIES, TABLES
from stepwell.plan.blocks import Whole
from stepwell.sql import parse
from stepwell.sql.statements import CreateTable

NUMBERS = {name: f"_sw_rel{number}" for number, name in enumerate(TABLES, start=1)}


def columns_of(table: str) -> tuple[str, ...]:
    [statement] = parse(f"CREATE TABLE {table} ({TABLES[table]})")
    assert isinstance(statement.body, CreateTable)
    return tuple(column.name for column in statement.body.columns)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_of_tpch_has_a_rule_for_every_part(name: str) -> None:
    tree = sqlglot.parse_one(QUERIES[name], read="spark")
    assert isinstance(tree, exp.Query)
    for table in tree.find_all(exp.Table):
        if table.name in NUMBERS:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias or table.name))
            table.replace(exp.Table(this=exp.to_identifier(NUMBERS[table.name]), alias=alias))
    known = {NUMBERS[table]: columns_of(table) for table in TABLES}
    plan, _ = Decomposer(known).plan(tree.sql("spark"), tuple(each.alias_or_name for each in tree.selects))
    assert [block.reason for block in (plan.root, *plan.hidden) if isinstance(block, Whole)] == []
