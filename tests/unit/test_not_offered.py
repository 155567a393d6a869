"""Statements that other databases have: each is refused by its name, with what to use instead."""

from __future__ import annotations

import pytest

from stepwell.model.errors import UnsupportedError
from stepwell.sql import Dialect, parse

REFUSED = {
    "COMMENT ON TABLE t IS 'x'": "COMMENT",
    "ALTER TABLE t DROP COLUMN a": "DROP",
    "ALTER TABLE main.t ALTER COLUMN a TYPE BIGINT": "ALTER",
    "ALTER TABLE t RENAME COLUMN a TO b": "COLUMN",
    "ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0)": "CONSTRAINT",
    "CREATE TABLE q (a INT CHECK (a > 0))": "CHECK",
    "CREATE TABLE q (a INT, CHECK (a > 0))": "CHECK",
    "CREATE TABLE q (a INT, CONSTRAINT c UNIQUE (a))": "CONSTRAINT",
    "CREATE TABLE q (a INT, FOREIGN KEY (a) REFERENCES t (a))": "FOREIGN",
    "CREATE TABLE q (a INT REFERENCES t (id))": "REFERENCES",
    "CREATE TABLE q (a INT UNIQUE)": "UNIQUE",
    "CREATE TABLE q (a INT NOT NULL DEFAULT 1)": "DEFAULT",
    "CREATE TABLE q (id BIGINT GENERATED ALWAYS AS IDENTITY)": "GENERATED",
    "CREATE TABLE q (id SERIAL)": "SERIAL",
    "CREATE TABLE q (a INT COMMENT 'x')": "COMMENT",
    "CREATE TABLE q (a INT) PARTITIONED BY (a)": "PARTITIONED",
    "CREATE TABLE q (a INT) USING delta": "USING",
    "CREATE TABLE IF NOT EXISTS q AS SELECT 1 AS a": "AS",
    "CREATE TEMP TABLE q (a INT)": "CREATE TEMP",
    "CREATE INDEX i ON t (id)": "CREATE INDEX",
    "CREATE SCHEMA s": "CREATE SCHEMA",
    "USE s": "USE",
    "GRANT SELECT ON t TO x": "GRANT",
    "INSERT OVERWRITE t SELECT 1": "INSERT OVERWRITE",
    "SAVEPOINT s": "SAVEPOINT",
    "EXECUTE x": "EXECUTE",
    "DESCRIBE HISTORY t": "DESCRIBE HISTORY",
}


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_offered_is_named_with_what_to_use_instead(text: str, dialect: Dialect) -> None:
    with pytest.raises(UnsupportedError) as error:
        parse(text, dialect)
    assert error.value.message.endswith("is not offered")
    assert error.value.hint
    assert error.value.place is not None
    place = error.value.place
    assert place.text[place.start : place.end].upper() == REFUSED[text]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (comment STRING, default INT, check BOOLEAN, unique INT, key STRING, PRIMARY KEY (key))",
        "CREATE TABLE t (a STRUCT<comment: STRING, check: INT>, generated DATE NOT NULL)",
        "CREATE TABLE t (constraint STRING, foreign INT)",
        "CREATE TABLE IF NOT EXISTS t (a INT)",
        "ALTER TABLE t ADD COLUMN comment STRING",
        "ALTER TABLE t RENAME TO u",
        "DESCRIBE comment",
        "SELECT 1 AS comment",
    ],
)
def test_names_may_be_what_they_like(text: str) -> None:
    assert len(parse(text)) == 1
