"""Reports for tests: a market of two symbols at three levels, with a graph in which edges pass over layers."""

from __future__ import annotations

from stepwell.web import Bar, Level, Report, ReportEpoch, ReportNode

START = 1_714_521_600  # 2024-05-01
MINUTES = {"minutes": 1, "quarters": 15, "hours": 60}
COUNTS = {
    ("minutes", "ACME"): 480, ("minutes", "GLOBEX"): 300,
    ("quarters", "ACME"): 32, ("quarters", "GLOBEX"): 20,
    ("hours", "ACME"): 8, ("hours", "GLOBEX"): 5,
}  # fmt: skip
CORRECTED = {
    ("minutes", "ACME"): 13, ("minutes", "GLOBEX"): 0,
    ("quarters", "ACME"): 4, ("quarters", "GLOBEX"): 1,
    ("hours", "ACME"): 2, ("hours", "GLOBEX"): 0,
}  # fmt: skip


def make_bars(count: int, minutes: int, corrected: int) -> tuple[Bar, ...]:
    """Prices that wander the same way every time; the corrected bars are the last but one, every third before it."""
    bars: list[Bar] = []
    price, seed = 100.0, 7
    marked = (
        {count - 2 - 3 * index for index in range(corrected)} if 3 * corrected < count + 2 else set(range(corrected))
    )
    for index in range(count):
        seed = (seed * 1_103_515_245 + 12_345) % 2**31
        step, wick = seed % 1000 / 500 - 1, seed % 77 / 100
        close = price + step
        bars.append(
            Bar(
                time=START + index * minutes * 60,
                open=round(price, 2),
                high=round(max(price, close) + wick, 2),
                low=round(min(price, close) - wick, 2),
                close=round(close, 2),
                volume=float(100 + seed % 2900),
                corrected=index in marked,
            )
        )
        price = close
    return tuple(bars)


def make_node(name: str, *parents: str, kind: str = "materialized view", state: str | None = "running") -> ReportNode:
    return ReportNode(
        name=name,
        kind=kind,
        state=state,
        time_column="minute",
        watermark="2024-05-01 08:00:00",
        lag="1 min",
        rows=1_234,
        rules=("aggregate: groups that changed", "combine: sum, min, max") if parents else (),
        parents=parents,
        behind=3,
        query="SELECT minute, count(*) AS n FROM trades GROUP BY minute" if parents else None,
        columns=(("minute", "TIMESTAMP"), ("n", "BIGINT")),
        first_rows=(("2024-05-01 08:00:00", "12"), ("2024-05-01 08:01:00", "NULL")),
        refreshes=((53, 120.0, 1_000), (54, 80.5, 20)) if parents else (),
        late_rows=7 if parents else None,
        lineage=(f"{name}.n -> {parents[0]}.price",) if parents else (),
    )


def make_report() -> Report:
    return Report(
        title="Trades into bars",
        made_at="2024-05-01 08:00:03 UTC",
        warehouse="warehouse/market",
        epoch=54,
        levels=tuple(
            Level(
                name,
                {"minutes": "1 minute", "quarters": "15 minutes", "hours": "1 hour"}[name],
                {
                    symbol: make_bars(COUNTS[name, symbol], width, CORRECTED[name, symbol])
                    for symbol in ("ACME", "GLOBEX")
                },
            )
            for name, width in MINUTES.items()
        ),
        nodes=(
            make_node("trades", kind="table", state=None),
            make_node("symbols", kind="table", state=None),
            make_node("clean", "trades", kind="view", state=None),
            make_node("minutes", "clean"),
            make_node("quarters", "minutes"),
            make_node("hours", "quarters"),
            make_node("sectors", "hours", "symbols", state="paused"),
            make_node("leaders_of_the_whole_market_today", "quarters", "symbols", state="error"),
        ),
        epochs=tuple(
            ReportEpoch(
                number=number,
                readable_at=f"2024-05-01 08:{number:02d}:04",
                inserted=number * 7919 % 4000,
                retracted=number * 31 % 400 if number % 3 == 0 else 0,
                jobs=2 + number % 7,
                milliseconds=120.0 + number * 104_729 % 1800,
                views=6,
            )
            for number in range(30, 55)
        ),
        notes=("Rows that came more than ten minutes late are in the late ledger.",),
    )
