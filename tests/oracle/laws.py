"""Laws: what must hold of the rules for every tree and every history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from oracle.blocks import tree_of
from oracle.histories import Step, random_history, random_schemas
from oracle.judging import judged
from oracle.meaning import Leaves, meaning
from oracle.queries import Queries
from oracle.trees import Trees
from oracle.upkeep import NotUpheldError, Pipeline, columns_of, looked_up, outputs_of
from oracle.values import Stored, exact, key
from stepwell.algebra.expressions import Attribute, Subquery, walk
from stepwell.algebra.lowering import lowered
from stepwell.algebra.nodes import (
    Fresh,
    Join,
    JoinKind,
    Moment,
    Node,
    Scan,
    expressions_of,
    nodes_of,
    rebuilt,
    scans_of,
)
from stepwell.algebra.pruning import pruned
from stepwell.algebra.pushing import pushed
from stepwell.algebra.reading import QueryTree
from stepwell.model.files import ROW_ID
from stepwell.model.limits import Limits
from stepwell.plan.cuts import Change, Cuts, Look, Sizes
from stepwell.plan.decomposition import decomposed
from stepwell.rules import deltas, identity
from stepwell.rules.blocks import GroupBlock, ViewPlan
from stepwell.rules.chunks import CHUNK, by_chunk, chunk_states, combined_rows
from stepwell.rules.groups import has_states
from stepwell.rules.programs import STATE, Occasion
from stepwell.rules.recompute import build

Fact = tuple[Any, ...]
"""A row as it is compared: its identity, then its values."""


class BrokenLawError(AssertionError):
    """A law that does not hold for a tree and a step."""


def demand(truth: bool, law: str) -> None:
    if not truth:
        raise BrokenLawError(law)


@dataclass
class Played:
    """How much was played: trees and steps, and how many of these had each kind of node in them."""

    trees: int = 0
    steps: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, tree: Node, steps: int) -> None:
        self.trees += 1
        self.steps += steps
        self.kinds.update(set(kinds_of(tree)))

    def __str__(self) -> str:
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.kinds.items()))
        return f"{self.trees} trees, {self.steps} steps; trees with {kinds}"


def kinds_of(tree: Node) -> Iterator[str]:
    seen: set[int] = set()
    for node in nodes_of(tree):
        match node:
            case Join(kind=kind):
                yield f"{kind} join"
            case _:
                yield type(node).__name__
        if any(isinstance(part, Subquery) for each in expressions_of(node) for part in walk(each)):
            yield "a subquery"
        relation = getattr(node, "relation", None)
        if relation is not None and relation in seen:
            yield "a relation twice"
        seen |= {relation} if relation is not None else set()


def facts(found: identity.Identified, columns: Iterable[Attribute], leaves: Leaves) -> list[tuple[Fact, int]]:
    """The rows of a tree with identities, as they are compared, and their signs."""
    columns = list(columns)
    rows = []
    for row in meaning(found.tree, leaves):
        fact = (key(row[found.id.id]), *(exact(row[each.id]) for each in columns))
        sign = row[found.sign.id] if found.sign is not None else 1
        assert sign in (1, -1)
        rows.append((fact, int(sign)))
    return rows


def added_up(rows: Iterable[tuple[Fact, int]]) -> dict[Fact, int]:
    """How often each row is there when + and - are added up; those that are not there are left out."""
    counts: Counter[Fact] = Counter()
    for fact, sign in rows:
        counts[fact] += sign
    return {fact: count for fact, count in counts.items() if count}


def follows(tree: Node, step: Step) -> None:
    """The rows before, and Δ, are the rows after; identities tell rows apart at each moment."""
    fresh = Fresh(tree)
    moments = {}
    for moment in (Moment.BEFORE, Moment.AFTER):
        rows = facts(identity.at(tree, moment, fresh), tree.output, step.leaves)
        demand(len({fact[0] for fact, _ in rows}) == len(rows), f"an identity is there twice {moment.name}")
        plain = Counter(
            tuple(exact(row[each.id]) for each in tree.output) for row in meaning(at(tree, moment), step.leaves)
        )
        demand(plain == Counter(fact[1:] for fact, _ in rows), f"identities change the rows {moment.name}")
        moments[moment] = rows
    found = deltas.Deltas(step.changed, fresh).of(tree)
    change = facts(found, tree.output, step.leaves) if found is not None else []
    demand(found is None or found.sign is not None, "a change without signs")
    after = added_up([*moments[Moment.BEFORE], *change])
    demand(set(after.values()) <= {1}, "a row is there twice, or less than never")
    demand(after == added_up(moments[Moment.AFTER]), "before and the change are not after")
    says_the_truth(tree, step, change)


def at(tree: Node, moment: Moment) -> Node:
    """The tree as it is written, over leaves of another moment."""
    return rebuilt(tree, lambda node: replace(node, moment=moment) if isinstance(node, Scan) else node)


def says_the_truth(tree: Node, step: Step, change: list[tuple[Fact, int]]) -> None:
    """`only_adds` and `is_netted` hold where they say so."""
    if not step.only_inserts:
        return
    if deltas.only_adds(tree, step.changed):
        demand(all(sign == 1 for _, sign in change), "a change that only adds takes away")
    if deltas.is_netted(tree, step.changed):
        demand(len({fact for fact, _ in change}) == len(change), "a change that is netted has a row twice")


# -- cuts -------------------------------------------------------------------------------------------------------------


def cuts_of(step: Step, fresh: Fresh) -> Cuts:
    """Cuts where every relation is large, and every change small."""
    few = {relation: Change(1, 1, 10) for relation in step.changed}
    return Cuts(Sizes(dict.fromkeys(step.before, 1), few, Limits(whole_relation_bytes=0)), fresh)


def with_looks(leaves: Leaves, cuts: Cuts) -> Leaves:
    """The leaves, and what each look finds."""
    found = dict(leaves)
    for look in cuts.steps:
        assert isinstance(look, Look)
        found[look.name] = looked_up(look, found)
    return found


def cut_follows(tree: Node, step: Step) -> None:
    """A change that reads only what it looks up is the change that reads everything."""
    whole = deltas.Deltas(step.changed, Fresh(tree)).of(tree)
    if whole is None:
        return
    fresh = Fresh(tree)
    cuts = cuts_of(step, fresh)
    cut = deltas.Deltas(step.changed, fresh, cuts).of(tree)
    assert cut is not None
    found = facts(cut, tree.output, with_looks(step.leaves, cuts))
    demand(added_up(found) == added_up(facts(whole, tree.output, step.leaves)), "a change that is cut is another")


def cut_finds(tree: Node, step: Step) -> None:
    """All rows that have certain keys are found where only what has these keys is read."""
    columns = [each for each in tree.output if each.type in ("INT", "STRING", "BOOLEAN")][:2]
    change = deltas.Deltas(step.changed, Fresh(tree)).of(tree)
    if change is None or not columns:
        return
    touched = {tuple(key(row[each.id]) for each in columns): row for row in meaning(change.tree, step.leaves)}
    names = [f"key{index}" for index in range(len(columns))]
    keys = [Stored({n: row[c.id] for n, c in zip(names, columns, strict=True)}, 0) for row in touched.values()]
    for moment in (Moment.BEFORE, Moment.AFTER):
        fresh = Fresh(tree)
        whole = identity.at(tree, moment, fresh)
        by = tuple(fresh.like(each) for each in columns)
        leaf = Scan(0, by, tuple(names), Moment.DELTA, cut="keys")
        cuts = cuts_of(step, fresh)
        pairs = [(own.id, other, True) for own, other in zip(columns, by, strict=True)]
        cut = replace(whole, tree=cuts.restricted(whole.tree, pairs, leaf))
        leaves = with_looks({**step.leaves, "keys": keys}, cuts)
        places = [1 + tree.output.index(each) for each in columns]

        def meeting(rows: list[tuple[Fact, int]], places: list[int] = places) -> Counter[Fact]:
            return Counter(fact for fact, _ in rows if tuple(fact[place] for place in places) in touched)

        found = meeting(facts(cut, tree.output, leaves))
        demand(found == meeting(facts(whole, tree.output, step.leaves)), "rows with a key are not found")


# -- lowering ---------------------------------------------------------------------------------------------------------

LOWERED = ("Scan", "Values", "Project", "Filter", "Join", "Aggregate", "Unnest", "Union", "Window")


def stays_itself(tree: Node, step: Step) -> None:
    """A tree that is lowered means the same, in fewer kinds of nodes."""
    found = lowered(QueryTree(tree, tree.output)).tree
    kinds = {type(node).__name__ for node in nodes_of(found)}
    demand(kinds <= set(LOWERED), f"not lowered: {kinds}")
    demand(not any(isinstance(node, Join) and node.kind == JoinKind.RIGHT for node in nodes_of(found)), "a right join")
    demand([each.id for each in found.output] == [each.id for each in tree.output], "the output is another")
    demand(bag(tree, step) == bag(found, step, tree.output), "the lowered tree means something else")


def bag(tree: Node, step: Step, columns: Iterable[Attribute] | None = None) -> Counter[Fact]:
    """How often a tree has each row."""
    shown = list(tree.output if columns is None else columns)
    return Counter(tuple(exact(row[each.id]) for each in shown) for row in meaning(tree, step.leaves))


def loses_nothing(tree: Node, step: Step) -> None:
    """A tree without the columns that nobody wants has the same rows in those that somebody does."""
    found = lowered(QueryTree(tree, tree.output)).tree
    wanted = tree.output[::2]
    short = pruned(found, {each.id for each in wanted})
    demand(bag(found, step, wanted) == bag(short, step, wanted), "a pruned tree has other rows")
    moved = pushed(found)
    demand(bag(found, step, wanted) == bag(moved, step, wanted), "a tree with conditions further down has other rows")


def plan_of(tree: Node) -> ViewPlan:
    """The blocks of a query."""
    query = lowered(QueryTree(tree, tree.output))
    query = replace(query, tree=pruned(pushed(query.tree), {each.id for each in query.outputs}))
    return decomposed(query, tuple(f"o{index}" for index in range(len(tree.output))), {}, Limits())


def upheld(tree: Node, random: Random) -> Callable[[Step], None]:
    """Blocks that are carried through a history by the programs of their rules are as if they were computed anew."""
    pipeline = Pipeline(plan_of(tree), random)
    started = False

    def follow(step: Step) -> None:
        nonlocal started
        try:
            if not started:
                pipeline.build(step.at_start)
                started = True
            pipeline.follow(step.leaves, step.changed, only_inserts=step.only_inserts)
        except NotUpheldError as error:
            raise BrokenLawError(f"{error} after {', '.join(pipeline.rules[-3:])}") from None

    return follow


def late(tree: Node, random: Random) -> Callable[[Step], None]:
    """What comes too late is in the ledger, and nothing else is missing."""
    check = judged(tree, random)

    def follow(step: Step) -> None:
        try:
            check(step)
        except NotUpheldError as error:
            raise BrokenLawError(str(error)) from None

    return follow


def falls_into_blocks(tree: Node, step: Step) -> None:
    """The blocks of a query, each over the rows of those before it, are the query."""
    plan = plan_of(tree)
    leaves = dict(step.leaves)
    for index, block in enumerate(plan.hidden):
        hidden = tree_of(block)
        cells = [[row[each.id] for each in hidden.output] for row in meaning(hidden, leaves)]
        stored = [Stored(dict(zip(block.names, row, strict=True)), id_) for id_, row in enumerate(cells)]
        leaves[-1 - index, Moment.NOW] = leaves[-1 - index, Moment.AFTER] = stored
    found = tree_of(plan.root)
    rows = [tuple(exact(row[each.id]) for each in found.output) for row in meaning(found, leaves)]
    demand(Counter(rows) == bag(tree, step), "the blocks mean something else")


def splits_into_chunks(tree: Node, step: Step) -> None:
    """The states of a group by chunk of one of its sources, put together again, are its rows."""
    block = plan_of(tree).root
    if not isinstance(block, GroupBlock) or not block.keys or not has_states(block) or plan_of(tree).hidden:
        return  # without keys there is a group of no rows, which no chunk has
    scanned = Counter(scan.relation for scan in scans_of(block.rows.tree))
    for source in (relation for relation, times in scanned.items() if times == 1):
        split = by_chunk(block, source)
        if split is not None:
            demand(chunked(block, split, source, step) == whole(block, step), "chunks do not come to the group")


def chunked(block: GroupBlock, split: GroupBlock, source: int, step: Step) -> list[str]:
    """The rows of a group, finished from its states by chunk; a row of the source is in one of three."""
    moment, columns = Moment.AFTER, columns_of(block)
    rows = [
        replace(row, values={**row.values, CHUNK: index % 3}) for index, row in enumerate(step.leaves[source, moment])
    ]
    occasion = Occasion(columns, frozenset(), Fresh(split.rows.tree))
    leaves = {**step.leaves, (source, moment): rows}
    states = [
        Stored(values, values[ROW_ID]) for _, values in outputs_of(chunk_states(split, occasion, exact=True), leaves)
    ]
    made = combined_rows(split, Occasion(columns, frozenset(), Fresh(split.rows.tree)))
    return sorted(
        repr(sorted((n, exact(v)) for n, v in values.items())) for _, values in outputs_of(made, {STATE: states})
    )


def whole(block: GroupBlock, step: Step) -> list[str]:
    made = build(block, Occasion(columns_of(block), frozenset(), Fresh(block.rows.tree)))
    return sorted(
        repr(sorted((name, exact(value)) for name, value in values.items()))
        for _, values in outputs_of(made, step.leaves)
    )


# -- playing ----------------------------------------------------------------------------------------------------------

Schemas = Mapping[int, list[str]]


def random_rows(random: Random, schemas: Schemas) -> Node:
    """A tree of rows, as rules know it."""
    return Trees(random, schemas).rows(random.choice([1, 2, 2, 3, 3, 4]))


def random_query(random: Random, schemas: Schemas) -> Node:
    """A tree as Spark's analyzer leaves it."""
    return Queries(random, schemas, ties=True).query(random.choice([1, 1, 2, 3]))


def random_window(random: Random, schemas: Schemas) -> Node:
    """A window over few sources."""
    queries = Queries(random, schemas, ties=True)
    return queries.window(queries.rows(random.choice([1, 1, 1, 2])))


def random_groups(random: Random, schemas: Schemas) -> Node:
    """Groups of rows that several sources make."""
    queries = Queries(random, schemas, ties=True)
    return queries.aggregate(queries.rows(random.choice([1, 2, 2, 3])))


@dataclass(frozen=True, slots=True)
class Law:
    """What holds of every tree of a kind, at every step of a history."""

    trees: Callable[[Random, Schemas], Node]
    holds: Callable[[Node, Step], None] | None = None
    steps: int = 3
    rows: int = 4
    carries: Callable[[Node, Random], Callable[[Step], None]] | None = None
    """Instead of `holds`, where something is carried from step to step."""

    def play(self, seeds: Iterable[int]) -> Played:
        """Hold random trees to the law: one for each seed, which makes the same tree and history again."""
        played = Played()
        for seed in seeds:
            random = Random(seed)
            schemas = random_schemas(random)
            tree = self.trees(random, schemas)
            holds: Callable[[Step], None] | None = partial(self.holds, tree) if self.holds is not None else None
            if self.carries is not None:
                holds = self.carries(tree, random)
            assert holds is not None
            for count, step in enumerate(random_history(random, schemas, self.steps, self.rows)):
                try:
                    holds(step)
                except BrokenLawError as error:
                    raise BrokenLawError(f"{error}: seed {seed}, step {count}\n{tree}\n{step}") from None
            played.add(tree, self.steps)
        return played


DELTA = Law(random_rows, follows)
CUT_CHANGES = Law(random_rows, cut_follows)
CUT_ROWS = Law(random_rows, cut_finds)
LOWERING = Law(random_query, stays_itself, steps=2)
PRUNING = Law(random_query, loses_nothing, steps=2)
BLOCKS = Law(random_query, falls_into_blocks, steps=2)
UPKEEP = Law(random_query, steps=4, carries=upheld)
GROUP_UPKEEP = Law(random_groups, steps=4, rows=5, carries=upheld)
CHUNKS = Law(random_groups, splits_into_chunks, steps=2, rows=8)
LATENESS = Law(random_rows, steps=5, carries=late)
WINDOW_UPKEEP = Law(random_window, rows=8, carries=upheld)
WINDOWS = Law(random_window, stays_itself, steps=2, rows=8)


def is_broken(law: Law, seeds: Iterable[int]) -> bool:
    """Whether the law is seen not to hold. An error of any other kind is none that counts."""
    try:
        law.play(seeds)
    except BrokenLawError:
        return True
    return False
