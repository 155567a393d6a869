"""Defining: from CREATE, ALTER and DROP to what the catalog holds of a view.

`analysis` has Spark say what a query means and which types it has; `creation` enters the definition, replaces it,
changes its options and takes it away again. Rows are computed later, at a barrier.
"""
