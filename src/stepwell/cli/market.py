"""A market: trades as an exchange might send them, the same for the same seed.

Few symbols are busy and many are not; several trades share a moment; each arrives up to two seconds after it was made;
in the second hour prices move more and trades come faster.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

NAMES = ("AAPL", "MSFT", "NVDA", "AMZN", "META", "TSLA", "GOOG", "AVGO", "COST", "NFLX", "AMD", "PEP",
         "ADBE", "CSCO", "TMUS", "INTC", "QCOM", "TXN", "AMGN", "HON")  # fmt: skip
OPENING = round(datetime(2026, 1, 5, 14, 30, tzinfo=UTC).timestamp())
"""Monday, 5 January 2026, 9:30 in New York."""

SCHEMA = pa.schema(
    [("id", pa.int64()), ("symbol", pa.string()), ("price", pa.float64()), ("quantity", pa.int64()),
     ("event_time", pa.timestamp("us", tz="UTC"))]
)  # fmt: skip

Trade = tuple[int, str, float, int, int]
"""Number, symbol, price, quantity, and its time in microseconds."""


@dataclass
class Market:
    """Trades from the opening on. `rate` is how many there are a second, on average, while it is quiet."""

    symbols: int = 12
    rate: float = 5.0
    seed: int = 7
    now: int = OPENING
    _next: int = 1
    _prices: dict[str, float] = field(default_factory=dict)
    _waiting: list[tuple[int, Trade]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        again = [str(each // len(NAMES) or "") for each in range(self.symbols)]
        self._names = [NAMES[each % len(NAMES)] + suffix for each, suffix in enumerate(again)]
        self._weights = [1 / (rank + 1) ** 1.2 for rank in range(self.symbols)]
        self._prices = {name: round(self._random.uniform(50, 400), 2) for name in self._names}

    @property
    def busiest(self) -> str:
        return self._names[0]

    def is_volatile(self) -> bool:
        return OPENING + 3600 <= self.now < OPENING + 7200

    def run(self, seconds: int) -> list[Trade]:
        """The trades that arrive in the next seconds, in the order in which they do."""
        for _ in range(seconds):
            self._second()
            self.now += 1
        arrived = [each for each in self._waiting if each[0] < self.now * 1_000_000]
        self._waiting = [each for each in self._waiting if each[0] >= self.now * 1_000_000]
        return [trade for _, trade in sorted(arrived)]

    def late(self, count: int, back: int) -> list[Trade]:
        """Trades of the busiest symbols that were made some while ago, up to `back` seconds, and come only now."""
        found = []
        for _ in range(count):
            at = self.now * 1_000_000 - self._random.randrange(10_000_000, back * 1_000_000)
            symbol = self._names[self._random.randrange(min(3, self.symbols))]
            found.append(self._trade(symbol, at, self._prices[symbol] * self._random.uniform(0.985, 1.015)))
        return found

    def wrong(self) -> Trade:
        """A trade of the busiest symbol that was typed in with the point in the wrong place."""
        symbol = self.busiest
        return self._trade(symbol, self.now * 1_000_000 - 600_000_000, self._prices[symbol] * 10)

    def _second(self) -> None:
        pace, step = (3.0, 0.0012) if self.is_volatile() else (1.0, 0.0003)
        count = min(int(self._random.expovariate(1 / (self.rate * pace)) + 0.5), int(self.rate * pace * 6))
        shared = self.now * 1_000_000 + self._random.randrange(10) * 100_000
        for _ in range(count):
            symbol = self._random.choices(self._names, self._weights)[0]
            self._prices[symbol] *= 1 + self._random.gauss(0, step)
            together = self._random.random() < 0.6
            at = shared if together else self.now * 1_000_000 + self._random.randrange(1_000_000)
            delay = min(int(self._random.expovariate(4) * 1_000_000), 2_000_000)
            self._waiting.append((at + delay, self._trade(symbol, at, self._prices[symbol])))

    def _trade(self, symbol: str, at: int, price: float) -> Trade:
        number, self._next = self._next, self._next + 1
        return number, symbol, round(price, 2), self._random.choice((1, 5, 10, 25, 100)), at


def to_arrow(trades: list[Trade]) -> pa.Table:
    columns = [[trade[index] for trade in trades] for index in range(len(SCHEMA))]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
