"""Rules: from a block of a query to the program of its change.

`blocks` are the parts in which a query is maintained. A rule takes one and returns a program: a tree over the leaves
*before*, *after* and *delta* of each relation and over what is stored of the view, and which of its rows are the
changes of the view, its state and its ledger. Its law is its docstring. `identity` and `deltas` are what all rules
stand on; `row_changes`, `fold`, `touched_groups`, `partitions`, `recompute`, `lateness` and `emission` are a rule each.
Nothing here knows a session, a file or a text: states of aggregates are values, and one printer writes Spark's SQL.
"""
