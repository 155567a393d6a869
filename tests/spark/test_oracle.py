"""Three answers, one result: random trees by the oracle, by Spark from the text that is printed, and by the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession

from oracle.expressions import written
from oracle.histories import MOST_TABLES, TYPES, Step, random_history, random_schemas
from oracle.laws import Fact, Played, at, bag, random_rows
from oracle.queries import Queries
from oracle.values import Stored, Struct, Value, exact
from stepwell.algebra.expressions import AggregateCall, Attribute, Call, Expression, Literal, transform
from stepwell.algebra.nodes import Aggregate, Fresh, Moment, Node, rebuilt
from stepwell.algebra.printing import name_of, print_tree, scan_name
from stepwell.engine.session import Pace, Spark
from stepwell.model.limits import Limits
from stepwell.rules import deltas, identity

DATABASES, QUERIES, CHANGES = 5, 150, 40
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A session as epochs have it, for small things."""
    spark = Spark(None, Limits())
    found = spark.maintenance()
    spark.keep_pace(found, Pace.FEW)
    found.conf.set("spark.sql.shuffle.partitions", "1")
    yield found
    for relation in range(1, MOST_TABLES + 1):
        for moment in Moment:
            found.catalog.dropTempView(scan_name(relation, moment))


@dataclass(frozen=True, slots=True)
class Shown:
    """Tables and one change of them, there as the views that printed trees read."""

    random: Random
    schemas: dict[int, list[str]]
    step: Step


def shown(session: SparkSession, seed: int) -> Shown:
    random = Random(seed)
    schemas = random_schemas(random)
    (step,) = random_history(random, schemas, 1)
    for relation, names in schemas.items():
        named = [*((name, TYPES[name]) for name in names), ("_sw_id", "BIGINT"), ("_diff", "BIGINT")]
        typed = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in named)
        for moment in Moment:
            # Two rows more than there are, which are filtered: Spark lets a DISTINCT of a single row be, and so its -0.0.
            rows = [*step.leaves[relation, moment], *[Stored(dict.fromkeys(names), None, 0)] * 2]
            cells = [f"({', '.join(written(_cell(row, name), type_) for name, type_ in named)})" for row in rows]
            values = f"VALUES {', '.join(cells)} AS t({', '.join(name for name, _ in named)})"
            session.sql(f"SELECT {typed} FROM {values} WHERE _diff <> 0").createOrReplaceTempView(
                scan_name(relation, moment)
            )
    return Shown(random, schemas, step)


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
    for seed in range(DATABASES):
        database = shown(session, seed)
        queries = Queries(database.random, database.schemas, ties=False)
        for _ in range(QUERIES // DATABASES):
            tree = settled(queries.query(database.random.choice([1, 2, 2, 3])))
            found = Counter(tuple(map(exact, row)) for row in asked(session, tree))
            assert found == bag(tree, database.step), f"seed {seed}\n{print_tree(tree)}\n{database.step}"
            played.add(tree, 1)
    record_property("trees on which Spark and the oracle agree", str(played))


def test_spark_and_the_oracle_agree_on_what_a_change_does(session: SparkSession, record_property: Record) -> None:
    played = Played()
    for seed in range(100, 100 + DATABASES):
        database = shown(session, seed)
        step = database.step
        for _ in range(CHANGES // DATABASES):
            tree = random_rows(database.random, database.schemas)
            change = deltas.Deltas(step.changed, Fresh(tree)).of(tree)
            if change is None:
                continue
            assert change.sign is not None
            found = counted(asked(session, change.tree), change.tree.output, tree.output, change.sign)
            difference = bag(at(tree, Moment.AFTER), step)
            difference.subtract(bag(at(tree, Moment.BEFORE), step))
            assert found == {fact: count for fact, count in difference.items() if count}, f"seed {seed}\n{tree}\n{step}"
            now = identity.at(tree, Moment.AFTER, Fresh(tree))
            place = now.tree.output.index(now.id)
            rows = asked(session, now.tree)
            assert len({row[place] for row in rows}) == len(rows), f"seed {seed}: an identity is there twice\n{tree}"
            played.add(tree, 1)
    record_property("changes on which Spark and the oracle agree", str(played))


def counted(
    rows: list[tuple[Value, ...]], columns: tuple[Attribute, ...], shown: tuple[Attribute, ...], sign: Attribute
) -> dict[Fact, int]:
    """How often each row came, less how often it went."""
    places = {column.id: place for place, column in enumerate(columns)}
    counts: Counter[Fact] = Counter()
    for row in rows:
        signed = row[places[sign.id]]
        assert isinstance(signed, int)
        counts[tuple(exact(row[places[each.id]]) for each in shown)] += signed
    return {fact: count for fact, count in counts.items() if count}
