"""Which names in a query are relations, and that nothing else of it is touched."""

from __future__ import annotations

import pytest

from stepwell.model.errors import SqlSyntaxError
from stepwell.sql import EXPRESSION, RELATION, ChangesOf, Composition, Reference, find_references
from stepwell.sql.statements import Slice


def references(text: str, prefix: str = "") -> list[Reference]:
    return find_references(Slice(text, 0, len(text)), prefix)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT a FROM t", ["t"]),
        ("SELECT a FROM t x JOIN main.`u v` USING (a), w", ["t", "main.`u v`", "w"]),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c", ["t"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b", ["b"]),
        ("SELECT extract(YEAR FROM ts), trim(BOTH ' ' FROM s) FROM t WHERE a IS DISTINCT FROM b", ["t"]),
        ("SELECT (SELECT max(a) FROM u) FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.a = t.a)", ["u", "t", "v"]),
        ("SELECT * FROM range(10), explode(array(1))", []),
        ("SELECT 'FROM t', `FROM` FROM t -- FROM z", ["t"]),
        ("SELECT * FROM t UNION ALL SELECT * FROM u", ["t", "u"]),
        ("VALUES (1), (2)", []),
    ],
)
def test_relations_are_told_from_everything_else(text: str, found: list[str]) -> None:
    assert [each.slice.text for each in references(text)] == found


def test_versions_belong_to_what_is_replaced() -> None:
    first, second = references("SELECT * FROM t VERSION AS OF 5 a, u TIMESTAMP AS OF '2026-01-01' WHERE 1 = 1")
    assert first.slice.text == "t VERSION AS OF 5"
    assert first.as_of is not None
    assert (first.as_of.kind, first.as_of.value, first.aliased) == ("version", "5", True)
    assert second.as_of is not None
    assert (second.as_of.kind, second.as_of.value, second.aliased) == ("timestamp", "2026-01-01", False)


def test_changes_is_a_relation_with_epochs() -> None:
    [found] = references("SELECT * FROM changes(t, 3, 7) WHERE a > 1")
    assert (str(found.name), found.changes, found.slice.text) == ("t", ChangesOf(3, 7), "changes(t, 3, 7)")
    [open_ended] = references("SELECT * FROM changes(`my t`, 3)")
    assert (str(open_ended.name), open_ended.changes) == ("my t", ChangesOf(3, None))


@pytest.mark.parametrize("text", ["SELECT * FROM changes(t)", "SELECT * FROM changes(t, 'x')"])
def test_what_makes_no_sense_is_pointed_at(text: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        references(text)
    assert caught.value.place is not None


def test_expressions_and_relations_have_places_of_their_own() -> None:
    assert [each.slice.text for each in references("a IN (SELECT b FROM u)", EXPRESSION)] == ["u"]
    assert [each.slice.text for each in references("main.u", RELATION)] == ["main.u"]


def test_a_composition_replaces_by_place_and_leads_back() -> None:
    text = "SELECT tt.t FROM t AS tt WHERE t > 1"
    [reference] = references(text)
    whole = Slice(text, 0, len(text))
    composed = Composition().add("EXPLAIN ").add_slice(whole, {reference.slice: "_sw_0"})
    assert composed.text == "EXPLAIN SELECT tt.t FROM _sw_0 AS tt WHERE t > 1"
    at = composed.text.index("t > 1")
    place = composed.origin(at, at + 1)
    assert place is not None
    assert place.start == text.index("t > 1")
    inside = composed.text.index("_sw_0")
    place = composed.origin(inside, inside + 5)
    assert place is not None
    assert text[place.start : place.end] == "t"
    assert composed.origin(0, 3) is None
