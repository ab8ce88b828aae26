"""Run, verify and time the rungs of the ladders, look up recorded times and compare them.

The names here are those of the module `running`; a notebook imports them as `labkit.ladder`.
"""

from labkit.ladder.running import Case, case, cases, here, measure, recorded, rungs, time_rung

__all__ = ["Case", "case", "cases", "here", "measure", "recorded", "rungs", "time_rung"]
