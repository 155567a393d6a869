"""Rows: a small finished answer that needed no Spark."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import Row


class Rows:
    """Columns and rows, with the methods of a DataFrame that make sense for something already computed."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str] = ()) -> None:
        """`notes` are lines for a person beside the answer."""
        self.columns = list(columns)
        self.notes = list(notes)
        self._rows = [tuple(row) for row in rows]

    def tuples(self) -> list[tuple[Any, ...]]:
        """The rows as plain tuples."""
        return list(self._rows)

    def collect(self) -> list[Row]:
        from pyspark.sql import Row  # the class alone: no JVM, but half a second nobody else should pay for

        return [Row(**dict(zip(self.columns, row, strict=True))) for row in self._rows]

    def count(self) -> int:
        return len(self._rows)

    def show(self) -> None:
        """Print the rows as a table."""
        print(self)

    def to_arrow(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.Table.from_pylist([dict(zip(self.columns, row, strict=True)) for row in self._rows])

    def toPandas(self) -> pandas.DataFrame:  # noqa: N802  # as Spark calls it
        import pandas

        return pandas.DataFrame(self._rows, columns=self.columns)

    def __str__(self) -> str:
        cells = [[_text(value) for value in row] for row in self._rows]
        widths = [max(len(name), *(len(row[i]) for row in cells), 0) for i, name in enumerate(self.columns)]
        lines = [" | ".join(name.ljust(width) for name, width in zip(self.columns, widths, strict=True)).rstrip()]
        lines.append("-+-".join("-" * width for width in widths))
        lines += [
            " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The rows as a table, for a notebook."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(value))}</td>" for value in row) + "</tr>" for row in self._rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if self.columns else ""
        return table + notes

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The rows as text, for IPython in a terminal."""
        printer.text(str(self) if self.columns else repr(self))

    def __repr__(self) -> str:
        return f"Rows({', '.join(self.columns)}; {len(self._rows)} rows)"


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)
