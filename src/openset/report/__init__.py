"""One run as one self-contained HTML page."""

from __future__ import annotations

from openset.report.build import build
from openset.report.data import Example, Group, ReportData, TargetMap
from openset.report.page import write_report

__all__ = ["Example", "Group", "ReportData", "TargetMap", "build", "write_report"]
