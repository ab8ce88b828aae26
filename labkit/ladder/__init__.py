"""The rungs of the ladders: run, verified, timed, recorded, and put beside each other.

The names here are those of `running`, which a notebook knows as `labkit.ladder`.
"""

from labkit.ladder.running import Case, case, cases, here, measure, recorded, rungs, time_rung

__all__ = ["Case", "case", "cases", "here", "measure", "recorded", "rungs", "time_rung"]
