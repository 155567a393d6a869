"""Inspecting: answers about relations, and whether views are right.

`inspection` answers SHOW, DESCRIBE and EXPLAIN, without Spark where it can; `verify` compares views with their
queries.
"""
