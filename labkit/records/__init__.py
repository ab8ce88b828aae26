"""Figures that were printed in a report or recorded on a GPU, as tables with their source.

`tables` defines the columns and reads and writes the files, `shipped` finds and compares the tables under
data/, `shown` shows them to students, and `provenance` says on what a run was recorded. The names here are
those that a notebook uses.
"""

from labkit.records.provenance import provenance, provenance_of
from labkit.records.shipped import (
    PINNED,
    REPORT_TIME,
    beside,
    counterparts,
    limits,
    load,
    recorded,
    reports,
    sanitizer,
)
from labkit.records.shown import Table, table
from labkit.records.tables import COLUMNS, INTEGERS, frame_of, read
from labkit.records.tools import NoReport, tool_figures, tool_machine, tool_report, tool_source

__all__ = [
    "COLUMNS",
    "INTEGERS",
    "PINNED",
    "REPORT_TIME",
    "NoReport",
    "Table",
    "beside",
    "counterparts",
    "frame_of",
    "limits",
    "load",
    "provenance",
    "provenance_of",
    "read",
    "recorded",
    "reports",
    "sanitizer",
    "table",
    "tool_figures",
    "tool_machine",
    "tool_report",
    "tool_source",
]
