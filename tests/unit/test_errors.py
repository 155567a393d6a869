from __future__ import annotations

import pytest

from stepwell.model.errors import ConflictError, Place, SqlSyntaxError, StepwellError, mask, nearest


def test_an_error_shows_the_line_with_a_caret_below_the_place() -> None:
    text = "SELECT a,\n  regon FROM t"
    error = SqlSyntaxError("no", place=Place(text, 12, 17), detail="d", hint="h")
    assert str(error).splitlines() == [
        "no",
        "  2 |   regon FROM t",
        "    |   ^^^^^",
        "DETAIL: d",
        "HINT: h",
        "SQLSTATE: 42601",
    ]


def test_a_long_line_is_shown_around_the_place() -> None:
    text = "INSERT INTO t VALUES " + ", ".join(f"({i})" for i in range(1000))
    drawn = Place(text, 3000, 3004).draw().splitlines()
    assert len(drawn[0]) < 200
    assert drawn[0][drawn[1].index("^") :][:4] == text[3000:3004]


def test_a_place_keeps_the_first_one_given() -> None:
    error = StepwellError("x", place=Place("abc", 0, 1))
    assert error.at(Place("xyz", 1, 2)).place == Place("abc", 0, 1)


def test_conflicts_have_the_sqlstate_that_clients_retry_on() -> None:
    assert ConflictError("x").sqlstate == "40001"


@pytest.mark.parametrize(("name", "hint"), [("traeds", 'Did you mean "Trades"?'), ("zzz", None)])
def test_the_nearest_name_is_offered_in_its_own_spelling(name: str, hint: str | None) -> None:
    assert nearest(name, ["Trades", "quotes"]) == hint


SECRETS = [
    ("s3://key:secret@bucket/a", "s3://key:***@bucket/a"),
    ("postgresql://me:se@cr@et@host/db", "postgresql://me:***@host/db"),
    ("postgresql://me@corp:secret@host/db", "postgresql://me@corp:***@host/db"),
    ("postgresql://me:a/b:c@host:5432/db", "postgresql://me:***@host:5432/db"),
    ("postgresql://h/db?user=u&password=s%40x&ssl=1", "postgresql://h/db?user=u&password=***&ssl=1"),
    ("postgresql://h/db?sslpassword=s;x", "postgresql://h/db?sslpassword=***;x"),
    ("s3://b/p?access_key=A&secret_key=B&region=x", "s3://b/p?access_key=***&secret_key=***&region=x"),
    ("https://h/p?X-Amz-Security-Token=T#f", "https://h/p?X-Amz-Security-Token=***"),
    ("host=h password=x dbname=d", "host=h password=*** dbname=d"),
    ("host=h PASSWORD='x y' dbname=d", "host=h PASSWORD=*** dbname=d"),
    ("postgresql://host:5432/db", "postgresql://host:5432/db"),
    ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
]


def test_passwords_are_masked_wherever_an_error_quotes_a_url() -> None:
    assert mask("postgresql+psycopg://me:secret@host/db") == "postgresql+psycopg://me:***@host/db"
    for url, shown in SECRETS:
        assert mask(url) == shown
        assert mask(f'cannot open "{url}": {url}') == f'cannot open "{shown}": {shown}'
    text = f"COPY t FROM '{SECRETS[0][0]}'"
    drawn = Place(text, 5, 6).draw().splitlines()
    assert "secret" not in drawn[0]
    assert drawn[0].index("t FROM") == drawn[1].index("^")
    assert "secret" not in str(StepwellError("cannot open postgresql://me:secret@h/d", detail="x://u:secret@h"))
