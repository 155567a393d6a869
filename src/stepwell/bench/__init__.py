"""Benchmarks: ratios within one run on one machine, since machines are shared and noisy.

`BENCHMARKS` names them; each takes a `BenchReport`, a folder and sizes of its own, and tells the report what it saw.
"""

from stepwell.bench.checkpoints import run_checkpoints
from stepwell.bench.continuous_aggregates import run_aggregates
from stepwell.bench.ingest import run_ingest
from stepwell.bench.load import run_load
from stepwell.bench.measure import BenchReport, own_settings
from stepwell.bench.ohlc import run_ohlc
from stepwell.bench.tpch import run_tpch
from stepwell.bench.views import run_views

BENCHMARKS = ("aggregates", "checkpoint", "ingest", "load", "ohlc", "tpch", "views")

__all__ = [
    "BENCHMARKS", "BenchReport", "own_settings", "run_aggregates", "run_checkpoints", "run_ingest", "run_load",
    "run_ohlc", "run_tpch", "run_views",
]  # fmt: skip
