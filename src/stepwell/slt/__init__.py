"""Scenarios: files in the sqllogictest dialect, run against a database of their own.

`parse_file` reads records, `run_file` plays them; `python -m stepwell.slt FILE…` does both and counts.
"""

from stepwell.slt.records import parse_file
from stepwell.slt.runner import FileOutcome, run_file

__all__ = ["FileOutcome", "parse_file", "run_file"]
