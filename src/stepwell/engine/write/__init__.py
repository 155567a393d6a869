"""Writing: from a statement, a file or a DataFrame to files that can be acknowledged.

`statements` chooses what computes the change: `upsert` for INSERT, `updates` for UPDATE and DELETE, `merge` for MERGE;
`loading` takes what comes in files and batches, `sources` what comes from Python. Values are fitted to the columns of
the table by `assignment`, and `staging` reserves ids and writes the files. Nothing here commits.
"""
