"""Structure: a query as sqlglot sees it.

Its parser takes the word WINDOW after GROUP BY for the clause of that name, also where it is Spark's function; there
the token is given another type before it is parsed.
"""

from __future__ import annotations

import itertools

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import TokenType


def structure_of(text: str, level: ErrorLevel = ErrorLevel.IMMEDIATE) -> exp.Expr:
    """The tree of one query in Spark's dialect."""
    dialect = sqlglot.Dialect.get_or_raise("spark")
    tokens = dialect.tokenize(text)
    for token, following in itertools.pairwise(tokens):
        if token.token_type == TokenType.WINDOW and following.token_type in (TokenType.L_PAREN, TokenType.DOT):
            token.token_type = TokenType.VAR
    trees = dialect.parser(error_level=level).parse(tokens, text)
    if not trees or trees[0] is None:
        raise ParseError("there is no query in this text")
    return trees[0]
