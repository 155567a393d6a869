"""The report: one HTML file that shows bars, the graph of views and the last epochs, and needs no network.

`Report` and the values in it say what there is to show; `render_report` makes the page. Nothing here reads a catalog,
a clock or Spark: whoever has the content hands it over, and writes the text wherever it should go.
"""

from stepwell.web.facts import Bar, Level, Report, ReportEpoch, ReportNode
from stepwell.web.report import render_report

__all__ = ["Bar", "Level", "Report", "ReportEpoch", "ReportNode", "render_report"]
