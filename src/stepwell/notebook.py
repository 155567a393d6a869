"""Notebooks: `%load_ext stepwell` gives the cell magic `%%stepwell`.

    %%stepwell [--limit N] [DATABASE]
    SELECT …

runs the statements of the cell in the database that a variable holds (default: `db`) and shows the last answer; the
answer itself, a DataFrame or Rows, is kept in `_stepwell`.
"""

from __future__ import annotations

from typing import Any

from stepwell.database import Database, translated
from stepwell.model.errors import StepwellError, UndefinedTableError, nearest
from stepwell.model.rows import Rows

LIMIT = 50
"""How many rows of a query a cell shows."""


def load_ipython_extension(ipython: Any) -> None:
    """What IPython calls for `%load_ext stepwell`."""

    def magic(line: str, cell: str) -> Rows | None:
        try:
            return run_cell(ipython.user_ns, line, cell)
        except StepwellError as error:  # as a person wants to read it: without a traceback
            print(f"error: {error}")
            return None

    ipython.register_magic_function(magic, magic_kind="cell", magic_name="stepwell")


def run_cell(variables: dict[str, Any], line: str, cell: str) -> Rows:
    """Run a cell, and give back what to show of its answer."""
    words = line.split()
    limit = LIMIT
    if "--limit" in words:
        at = words.index("--limit")
        if not "".join(words[at + 1 : at + 2]).isdigit():
            raise StepwellError("--limit takes a number of rows", sqlstate="42601")
        limit = int(words[at + 1])
        del words[at : at + 2]
    if len(words) > 1:
        raise StepwellError(f'"{line}" is more than the name of a variable', sqlstate="42601")
    name = words[0] if words else "db"
    database = variables.get(name)
    if not isinstance(database, Database):
        known = [each for each, value in variables.items() if isinstance(value, Database)]
        raise UndefinedTableError(
            f'the variable "{name}" holds no database',
            hint=nearest(name, known)
            or (f"There is {', '.join(known)}." if known else "db = stepwell.connect(…) first."),
        )
    answer = database.sql(cell)
    variables["_stepwell"] = answer
    if isinstance(answer, Rows):
        return answer
    with translated():
        rows = [tuple(row) for row in answer.limit(limit + 1).collect()]
    notes = [f"the first {limit} rows; _stepwell holds the DataFrame"] if len(rows) > limit else []
    return Rows(answer.columns, rows[:limit], notes)
