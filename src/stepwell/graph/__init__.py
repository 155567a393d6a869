"""The graph: which relation reads which, in what order they are brought up to date, and what would close a cycle.

`Registry` holds it, `WatermarkTracker` the event time that flows through it; `draw_text` and `draw_svg` show it.
"""

from stepwell.graph.drawing import DrawnRelation, draw_svg, draw_text
from stepwell.graph.registry import Registry
from stepwell.graph.tracker import WatermarkTracker

__all__ = ["DrawnRelation", "Registry", "WatermarkTracker", "draw_svg", "draw_text"]
