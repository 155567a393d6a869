"""The algebra: a query as Spark has analyzed it, as a small tree of typed values.

`reading` takes the plan that the reader in the JVM has written down; `lowering` brings it to the few kinds of nodes
that have rules; `pushing` moves conditions down, `pruning` drops the columns that nobody reads; `printing` writes any
tree as Spark's SQL, a name of its own for every column. Nothing here knows a session.
"""
