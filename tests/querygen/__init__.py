"""Random queries, end to end: text in Spark's dialect, histories of changes, and views held against plain Spark.

`make_case` makes a case from a seed: queries as small trees, some of them over the views of others, and what is done to
the tables epoch by epoch. `play` runs a case through real views and says what was wrong and which rules it went through.
`shrink` makes a failing case smaller while it fails. `Runs` does all of it for many seeds. But for how large a table
counts as, nothing here knows more of stepwell than its users do.
"""

from querygen.cases import Case, View, make_case
from querygen.counts import RULES, Counts
from querygen.runner import Failure, Outcome, play
from querygen.runs import Runs
from querygen.shrinking import shrink

__all__ = ["RULES", "Case", "Counts", "Failure", "Outcome", "Runs", "View", "make_case", "play", "shrink"]
