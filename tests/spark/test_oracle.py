"""Three answers, one result: random trees by the oracle, by Spark from the text that is printed, and by the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession

from oracle.histories import TYPES, Step, random_history, random_schemas
from oracle.laws import Fact, Played, at, bag, random_rows
from oracle.queries import Queries
from oracle.values import Stored, Struct, Value, exact
from stepwell.algebra.expressions import AggregateCall, Call, Column, Expression, Literal, transform
from stepwell.algebra.nodes import Aggregate, Fresh, Moment, Node, rebuilt
from stepwell.algebra.printing import name_of, print_tree, scan_name
from stepwell.engine.session import Spark
from stepwell.rules import delta, identity

QUERIES, CHANGES = 150, 60
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A session for small things: no compiling, no replanning."""
    found = Spark(None).session.newSession()
    found.conf.set("spark.sql.ansi.enabled", "true")
    found.conf.set("spark.sql.adaptive.enabled", "false")
    found.conf.set("spark.sql.codegen.wholeStage", "false")
    found.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    found.conf.set("spark.sql.shuffle.partitions", "1")
    yield found
    for view in found.catalog.listTables():
        found.catalog.dropTempView(view.name)


def literal(value: Value, type_: str) -> str:
    match value:
        case None:
            return f"CAST(NULL AS {type_})"
        case bool():
            return str(value).lower()
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case str():
            return f"'{value}'"
        case tuple():
            return f"CAST(array({', '.join(literal(each, 'INT') for each in value)}) AS {type_})"
        case _:
            return str(value)


def show(session: SparkSession, step: Step, schemas: dict[int, list[str]]) -> None:
    """The tables of a step, as the views that printed trees read."""
    for (relation, moment), rows in step.leaves.items():
        named = [*((name, TYPES[name]) for name in schemas[relation]), ("_sw_id", "BIGINT"), ("_diff", "BIGINT")]
        cells = [f"({', '.join(literal(_cell(row, name), type_) for name, type_ in named)})" for row in rows]
        names = ", ".join(name for name, _ in named)
        typed = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in named)
        nothing = f"({', '.join(literal(None, type_) for _, type_ in named)})"
        text = f"SELECT {typed} FROM VALUES {', '.join(cells) or nothing} AS t({names}){'' if rows else ' WHERE false'}"
        session.sql(text).createOrReplaceTempView(scan_name(relation, moment))


def _cell(row: Stored, name: str) -> Value:
    return {"_sw_id": row.id, "_diff": row.sign}.get(name) if name.startswith("_") else row.values[name]


def asked(session: SparkSession, tree: Node) -> list[tuple[Value, ...]]:
    """What Spark says of a tree, from its text."""
    names = [name_of(each) for each in tree.output]
    rows = session.sql(f"SELECT {', '.join(names)} FROM ({print_tree(tree)})").collect()
    return [tuple(_value(each) for each in row) for row in rows]


def _value(found: Any) -> Value:
    if isinstance(found, SparkRow):
        return Struct(tuple((name, _value(each)) for name, each in found.asDict().items()))
    if isinstance(found, list):
        return tuple(map(_value, found))
    value: Value = found
    return value


def settled(tree: Node) -> Node:
    """The tree with sets in an order, which Spark does not promise."""

    def in_order(each: Expression) -> Expression | None:
        if isinstance(each, AggregateCall) and each.function == "CollectSet":
            return Call("SortArray", (each, Literal("true", "BOOLEAN")), each.type, True, (("name", "sort_array"),))
        return None

    def change(node: Node) -> Node:
        if not isinstance(node, Aggregate):
            return node
        items = tuple(replace(item, expression=transform(item.expression, in_order)) for item in node.items)
        return replace(node, items=items)

    return rebuilt(tree, change)


def test_spark_and_the_oracle_agree_on_what_a_tree_means(session: SparkSession, record_property: Record) -> None:
    played = Played()
    for seed in range(QUERIES):
        random = Random(seed)
        schemas = random_schemas(random)
        tree = settled(Queries(random, schemas, ties=False).query(random.choice([1, 2, 2, 3])))
        (step,) = random_history(random, schemas, 1)
        show(session, step, schemas)
        found = Counter(tuple(map(exact, row)) for row in asked(session, tree))
        assert found == bag(tree, step), f"seed {seed}\n{print_tree(tree)}\n{step}"
        played.add(tree, 1)
    record_property("trees on which Spark and the oracle agree", played)


def test_spark_and_the_oracle_agree_on_what_a_change_does(session: SparkSession, record_property: Record) -> None:
    played = Played()
    for seed in range(1000, 1000 + CHANGES):
        random = Random(seed)
        schemas = random_schemas(random)
        tree = random_rows(random, schemas)
        (step,) = random_history(random, schemas, 1)
        change = delta.Deltas(step.changed, Fresh(tree)).of(tree)
        if change is None:
            continue
        show(session, step, schemas)
        now = identity.at(tree, Moment.AFTER, Fresh(tree))
        rows = asked(session, now.tree)
        place = now.tree.output.index(now.id)
        assert len({row[place] for row in rows}) == len(rows), f"seed {seed}: an identity is there twice"
        assert change.sign is not None
        found = counted(asked(session, change.tree), change.tree.output, tree.output, change.sign)
        difference = bag(at(tree, Moment.AFTER), step)
        difference.subtract(bag(at(tree, Moment.BEFORE), step))
        assert found == {fact: count for fact, count in difference.items() if count}, f"seed {seed}\n{tree}\n{step}"
        played.add(tree, 1)
    record_property("changes on which Spark and the oracle agree", played)


def counted(
    rows: list[tuple[Value, ...]], columns: tuple[Column, ...], shown: tuple[Column, ...], sign: Column
) -> dict[Fact, int]:
    """How often each row came, less how often it went."""
    places = {column.id: place for place, column in enumerate(columns)}
    counts: Counter[Fact] = Counter()
    for row in rows:
        signed = row[places[sign.id]]
        assert isinstance(signed, int)
        counts[tuple(exact(row[places[each.id]]) for each in shown)] += signed
    return {fact: count for fact, count in counts.items() if count}
