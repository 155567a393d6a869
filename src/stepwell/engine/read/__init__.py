"""Reading: from names in a query to the rows that they stand for at one epoch.

A `Snapshot` (`snapshots`) pins an epoch and finds the content of a relation at it; `queries` binds the names in a
user's text to such content and lets Spark analyze the text. `system` answers for the namespace `stepwell`, with the
`lineage` of columns among it; `stopped` is what a reader is told of a view that does not follow. Changelogs are netted
by `consolidation`, where values are compared in their `canonical` form.
"""
