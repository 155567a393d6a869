"""Leading: the one process that makes epochs of what has been acknowledged.

The `Leader` (`leader`) holds the lease and runs the loop; `barrier` closes an epoch, has views maintained, commits and
publishes, and after a crash finishes what was begun. `compaction` and `vacuum` tidy up behind it.
"""
