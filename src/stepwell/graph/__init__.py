"""The graph: which relation reads which, in what order they are brought up to date, and what would close a cycle.

`Registry` holds it; `draw_text` and `draw_svg` show it.
"""

from stepwell.graph.drawing import Node, draw_svg, draw_text
from stepwell.graph.registry import Registry

__all__ = ["Node", "Registry", "draw_svg", "draw_text"]
