"""SQL: from text to statements.

`parse` reads the statements of a text, `runs_of` says which go together; `find_references` tells which relations a
query names and where, `bind_arguments` which values its parameters stand for; a `Composition` puts a text for Spark
together from slices of the user's; `outside_code` finds what reaches beyond the database. Spark itself judges queries,
and nothing here rewrites one, unless it is written in another dialect.
"""

from stepwell.sql.composition import Composition
from stepwell.sql.dialects import Dialect
from stepwell.sql.literals import TypedLiteral, literal_of, literals_in_values
from stepwell.sql.outside_code import is_file, not_allowed, outside_code, refuse_outside
from stepwell.sql.parameters import Arguments, BoundArguments, bind_arguments
from stepwell.sql.parser import parse, split
from stepwell.sql.references import (
    EXPRESSION,
    QUERY,
    RELATION,
    AsOf,
    ChangesOf,
    Reference,
    called_functions,
    find_references,
    forbidden_function,
)
from stepwell.sql.runs import runs_of
from stepwell.sql.windowing import window_calls

__all__ = [
    "EXPRESSION",
    "QUERY",
    "RELATION",
    "Arguments",
    "AsOf",
    "BoundArguments",
    "ChangesOf",
    "Composition",
    "Dialect",
    "Reference",
    "TypedLiteral",
    "bind_arguments",
    "called_functions",
    "find_references",
    "forbidden_function",
    "is_file",
    "literal_of",
    "literals_in_values",
    "not_allowed",
    "outside_code",
    "parse",
    "refuse_outside",
    "runs_of",
    "split",
    "window_calls",
]
