"""The graph: which relation reads which, in what order they are brought up to date, and what would close a cycle."""

from stepwell.graph.registry import Registry

__all__ = ["Registry"]
