"""Rules: from a tree to the tree of its change.

A rule takes nodes and returns nodes over the leaves *before*, *after* and *delta* of each relation; its law is its
docstring. Nothing here knows a session, a file or a text: the printer writes Spark's SQL from what comes out.
"""
