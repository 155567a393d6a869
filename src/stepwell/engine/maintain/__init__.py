"""Maintaining: from what an epoch changed in tables to what it changes in the views on them.

`maintenance` goes through the views, parents before children, and follows each one's rule; `workspace` gives it the
rows before, after and between, and `cutting` as few of them as the `keys` and times of a change allow. `event_time`
moves watermarks, `emission` decides what a view shows of its change, and `lateness` what came too late for it.
"""
