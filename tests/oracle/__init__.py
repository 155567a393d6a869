"""The oracle: what each node of the algebra means, over bags of rows in plain Python, a few lines a node.

`meaning` evaluates any tree over leaves that are given; `trees` and `histories` make random ones; `laws` holds the
rules to their laws on them. It knows nothing of Spark, which is asked for its own answer in another test.
"""

from oracle.meaning import Leaves, meaning
from oracle.values import Id, Row, Stored, Struct, Value, exact, key

__all__ = ["Id", "Leaves", "Row", "Stored", "Struct", "Value", "exact", "key", "meaning"]
