"""Benchmarks: ratios within one run on one machine, since machines are shared and noisy.

`BENCHMARKS` names them; each takes a `Report` and its sizes, and tells the report what it saw.
"""

from stepwell.bench.ingest import run_ingest
from stepwell.bench.measure import Report

BENCHMARKS = {"ingest": run_ingest}

__all__ = ["BENCHMARKS", "Report", "run_ingest"]
