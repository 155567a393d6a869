from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.model.errors import StepwellError, UnstorableTypeError
from stepwell.model.types import _PRIMITIVES, Array, DataType, Decimal, Map, Struct, parse_type

names = st.text(st.characters(codec="utf-8", exclude_characters="`", exclude_categories=["Cc", "Cs"]), min_size=1)
types: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from(_PRIMITIVES)
    | st.builds(lambda p, s: Decimal(p, min(p, s)), st.integers(1, 38), st.integers(0, 38)),
    lambda inner: (
        st.builds(Array, inner)
        | st.builds(Map, inner, inner)
        | st.builds(
            Struct,
            st.lists(st.tuples(names, inner), min_size=1, max_size=3, unique_by=lambda field: field[0].lower()).map(
                tuple
            ),
        )
    ),
    max_leaves=5,
)


@given(types)
def test_a_type_reads_back_as_it_is_written(type_: DataType) -> None:
    assert parse_type(str(type_)) == type_


@pytest.mark.parametrize(
    ("text", "meaning"),
    [("integer", "INT"), ("long", "BIGINT"), ("decimal", "DECIMAL(10,0)"), ("numeric(12, 3)", "DECIMAL(12,3)"),
     ("map< string , array<int> >", "MAP<STRING,ARRAY<INT>>"), ("struct<a int, `b c`: string>", "STRUCT<`a`:INT,`b c`:STRING>")],
)  # fmt: skip
def test_other_spellings_are_understood(text: str, meaning: str) -> None:
    assert str(parse_type(text)) == meaning


@pytest.mark.parametrize("text", ["INTERVAL DAY", "VARIANT", "VARCHAR(10)", "VOID", "STRING COLLATE UNICODE"])
def test_what_cannot_be_stored_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(UnstorableTypeError) as caught:
        parse_type(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ARRAY<",
        "DECIMAL(40,2)",
        "DECIMAL(a)",
        "MAP<INT>",
        "INT INT",
        "STRUCT<a",
        "STRUCT<>",
        "STRUCT<a:INT,A:INT>",
        "integr",
    ],
)
def test_nonsense_is_an_error_and_never_a_crash(text: str) -> None:
    with pytest.raises(StepwellError):
        parse_type(text)
