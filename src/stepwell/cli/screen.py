"""The screen of the demo: a table that is drawn again in a terminal, and lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

WIDTH = 80


@dataclass(frozen=True, slots=True)
class Shown:
    """A level of bars at one moment: how many there are, the newest of one symbol, how far time is, how far behind."""

    name: str
    bars: int
    newest: str
    watermark: str
    lag: str


class Screen:
    """Says what happens. What is told twice a second in a terminal is a line an epoch in a pipe."""

    def __init__(self) -> None:
        self.console = Console(width=min(Console().width, WIDTH) if sys.stdout.isatty() else WIDTH, highlight=False)
        self._live: Live | None = None

    @property
    def is_terminal(self) -> bool:
        return sys.stdout.isatty()

    def title(self, text: str) -> None:
        click.echo("")
        click.secho(text, bold=True)

    def say(self, text: str) -> None:
        click.echo(text)

    def code(self, text: str) -> None:
        click.secho(text, fg="cyan")

    @contextmanager
    def following(self) -> Iterator[None]:
        """While bars appear."""
        if not self.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=4) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def show(self, heading: str, levels: list[Shown]) -> None:
        """Where every level stands now."""
        if self._live is not None:
            self._live.update(self._table(heading, levels))
            return
        if self.is_terminal:
            self.console.print(self._table(heading, levels))
            return
        click.echo(heading)
        for each in levels:
            where = f"watermark {each.watermark}, lag {each.lag}"
            click.echo(f"  {each.name:<8} {each.bars:>6} bars, {where:<31} {each.newest}"[:WIDTH])

    def _table(self, heading: str, levels: list[Shown]) -> Table:
        table = Table(title=heading, title_justify="left", title_style="", width=self.console.width, pad_edge=False)
        for name, side in (("level", "left"), ("bars", "right"), ("watermark", "left"), ("lag", "right")):
            table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]  # rich wants the literals
        table.add_column("newest")
        for each in levels:
            table.add_row(each.name, str(each.bars), each.watermark, each.lag, each.newest)
        return table
