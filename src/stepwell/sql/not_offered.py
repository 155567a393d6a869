"""What is not offered: statements and clauses that other databases have, each with what to use instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepwell.model.errors import Place, UnsupportedError
from stepwell.sql.tokens import Token, TokenKind

_ONE_NAMESPACE = "There is one namespace, main; another warehouse is another database."
_IN_A_TRANSACTION = "BEGIN … COMMIT is all or nothing; conflicts are reported with SQLSTATE 40001."
_PARAMETERS = "Database.sql(text, args=…) binds parameters."
_OTHER_TABLE = "CREATE TABLE another one, and INSERT INTO it with SELECT."
_CONSTRAINTS = (
    "A table has NOT NULL columns and a PRIMARY KEY, from its CREATE on; a view can show rows that break a rule."
)

_ANY = "*"
"""Stands for one name in a beginning below."""

_BEGINNINGS: dict[tuple[str, ...], str] = {
    ("COMMENT",): "Write comments into the file of the pipeline; the text of a view is kept as it was written.",
    ("GRANT",): "Who may read and write follows from the rights to the warehouse's folder and the catalog's database.",
    ("REVOKE",): "Who may read and write follows from the rights to the warehouse's folder and the catalog's database.",
    ("ANALYZE",): "There is no need for it: what is known of each file is kept with it.",
    ("USE",): _ONE_NAMESPACE,
    ("CREATE", "SCHEMA"): _ONE_NAMESPACE,
    ("CREATE", "DATABASE"): _ONE_NAMESPACE,
    ("DROP", "SCHEMA"): _ONE_NAMESPACE,
    ("DROP", "DATABASE"): _ONE_NAMESPACE,
    ("CREATE", "INDEX"): "A PRIMARY KEY sorts a table by its key, a WATERMARK or chunks by time.",
    ("CREATE", "UNIQUE", "INDEX"): "A PRIMARY KEY sorts a table by its key, and keeps one row of each.",
    ("DROP", "INDEX"): "There are no indexes: a PRIMARY KEY sorts a table by its key.",
    ("CREATE", "FUNCTION"): "Database.function registers a function in Python, which views may call.",
    ("CREATE", "TRIGGER"): "A materialized view follows every change; changes(t, after) is a feed of them.",
    ("CREATE", "SEQUENCE"): "Give rows their numbers when they are inserted.",
    ("CREATE", "TEMP"): "Use WITH in a query, or CREATE VIEW for a name of one.",
    ("CREATE", "TEMPORARY"): "Use WITH in a query, or CREATE VIEW for a name of one.",
    ("CREATE", "OR", "REPLACE", "TABLE"): "DROP TABLE it, and CREATE it anew; ALTER TABLE … ADD COLUMN keeps its rows.",
    ("CREATE", "TABLE", _ANY, "AS"): "CREATE TABLE with its columns and INSERT INTO it, or CREATE MATERIALIZED VIEW.",
    ("CREATE", "TABLE", _ANY, "LIKE"): "CREATE TABLE with its columns; SHOW CREATE shows those of another.",
    ("ALTER", "TABLE", _ANY, "DROP"): "CREATE VIEW over it without the column.",
    ("ALTER", "TABLE", _ANY, "ALTER"): _OTHER_TABLE,
    ("ALTER", "TABLE", _ANY, "MODIFY"): _OTHER_TABLE,
    ("ALTER", "TABLE", _ANY, "CHANGE"): _OTHER_TABLE,
    ("ALTER", "TABLE", _ANY, "RENAME", "COLUMN"): "CREATE VIEW over it with the other name.",
    ("ALTER", "TABLE", _ANY, "ADD", "CONSTRAINT"): _CONSTRAINTS,
    ("ALTER", "TABLE", _ANY, "ADD", "CHECK"): _CONSTRAINTS,
    ("ALTER", "TABLE", _ANY, "ADD", "UNIQUE"): _CONSTRAINTS,
    ("ALTER", "TABLE", _ANY, "ADD", "PRIMARY"): _CONSTRAINTS,
    ("ALTER", "TABLE", _ANY, "ADD", "FOREIGN"): _CONSTRAINTS,
    ("INSERT", "OVERWRITE"): "TRUNCATE and INSERT between BEGIN and COMMIT.",
    ("SAVEPOINT",): _IN_A_TRANSACTION,
    ("RELEASE",): _IN_A_TRANSACTION,
    ("LOCK",): _IN_A_TRANSACTION,
    ("CALL",): "Call functions in a query.",
    ("PREPARE",): _PARAMETERS,
    ("EXECUTE",): _PARAMETERS,
    ("DEALLOCATE",): _PARAMETERS,
    ("UNDROP",): "What was dropped is gone; VERSION AS OF shows earlier epochs of what is there.",
    ("REPLACE",): "INSERT INTO a table with a PRIMARY KEY replaces rows of the same key.",
    ("UPSERT",): "INSERT INTO a table with a PRIMARY KEY replaces rows of the same key.",
    ("CACHE",): "A materialized view is kept up to date and stored.",
    ("DESCRIBE", "HISTORY"): "stepwell.epochs lists what can be read, and changes(t, after) what each one did.",
}

_OF_COLUMNS = {
    "CHECK": _CONSTRAINTS,
    "REFERENCES": _CONSTRAINTS,
    "UNIQUE": "PRIMARY KEY keeps one row of each key.",
    "DEFAULT": "Name the columns in INSERT; those that are left out are NULL.",
    "GENERATED": "CREATE VIEW over it with the computed column, or number the rows when they are inserted.",
    "AUTO_INCREMENT": "Number the rows when they are inserted.",
    "SERIAL": "Write BIGINT, and number the rows when they are inserted.",
    "BIGSERIAL": "Write BIGINT, and number the rows when they are inserted.",
    "COMMENT": "Write comments into the file of the pipeline.",
}
_OF_TABLES = {
    "PARTITIONED": "Tables with event time are stored by chunk: WATERMARK FOR column, or CHUNK BY.",
    "CLUSTER": "A PRIMARY KEY sorts a table by its key.",
    "COMMENT": "Write comments into the file of the pipeline.",
    "TBLPROPERTIES": "There are none; SET changes settings.",
    "LOCATION": "Tables lie in the warehouse; COPY loads files from elsewhere.",
    "USING": "Tables are Parquet files with a Delta log, always.",
    "STORED": "Tables are Parquet files with a Delta log, always.",
}


def refuse_not_offered(text: str, tokens: Sequence[Token]) -> None:
    """Refuse a statement that stepwell does not offer, with what to use instead."""
    for beginning, instead in _BEGINNINGS.items():
        matched = _matches(tokens, beginning)
        if matched is not None:
            raise _refusal(" ".join(word for word in beginning if word != _ANY), instead, text, matched)
    if tokens[0].says("CREATE") and len(tokens) > 1 and tokens[1].says("TABLE"):
        for token, instead in _clauses(tokens):
            raise _refusal(token.text.upper(), instead, text, [token])


def _refusal(what: str, instead: str, text: str, tokens: Sequence[Token]) -> UnsupportedError:
    return UnsupportedError(f"{what} is not offered", place=Place(text, tokens[0].start, tokens[-1].end), hint=instead)


def _matches(tokens: Sequence[Token], beginning: Sequence[str]) -> Sequence[Token] | None:
    """The last words of a beginning that a statement has; None if it begins otherwise."""
    index = 0
    for word in beginning:
        if index >= len(tokens):
            return None
        if word == _ANY:
            while _is_condition(tokens, index):
                index += 1
            index += 1
            while index + 1 < len(tokens) and tokens[index].says("."):
                index += 2
            continue
        if not tokens[index].says(word):
            return None
        index += 1
    return tokens[index - 1 : index] if _ANY in beginning else tokens[:index]


def _is_condition(tokens: Sequence[Token], index: int) -> bool:
    """Whether a token belongs to IF NOT EXISTS before a name."""
    words = [token.text.upper() for token in tokens[2:5]]
    return words[:1] == ["IF"] and tokens[index].says("IF", "NOT", "EXISTS") and index < 5


def _clauses(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """The clauses of CREATE TABLE that are not offered: of a column behind its name, of the table behind them all."""
    depth, position = 0, 0
    for index, token in enumerate(tokens):
        if token.says("(", "<"):
            depth, position = depth + 1, 0 if depth == 0 else position
        elif token.says(")", ">", ">>"):
            depth -= len(token.text)
        elif token.says(",") and depth == 1:
            position = 0
        elif token.kind == TokenKind.WORD:
            word = token.text.upper()
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            is_first = position == 0 and not (following is not None and following.says("("))
            if depth == 1 and word in _OF_COLUMNS and not is_first:
                yield token, _OF_COLUMNS[word]
            elif depth == 1 and position == 0 and word in ("CONSTRAINT", "FOREIGN") and _is_constraint(tokens, index):
                yield token, _CONSTRAINTS
            elif depth == 0 and index > 2 and word in _OF_TABLES and tokens[index - 1].says(")"):
                yield token, _OF_TABLES[word]
            position += 1
        else:
            position += 1


def _is_constraint(tokens: Sequence[Token], index: int) -> bool:
    behind = [token.text.upper() for token in tokens[index + 1 : index + 3]]
    return behind[:1] == ["KEY"] or behind[1:] in (["CHECK"], ["UNIQUE"], ["FOREIGN"], ["PRIMARY"])
