"""The exercise of 14_profile_for_real: a diagnosis from a recorded report of Nsight Compute alone."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from labkit.course.criteria.python import called, number_of, shown
from labkit.course.exercise import Exercise, Unmet, criterion
from labkit.records import tool_figures

REPORT = "ncu_unnamed"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
SECTORS, REQUESTS = (f"l1tex__t_{unit}_pipe_lsu_mem_global_op_ld.sum" for unit in ("sectors", "requests"))


class Cause(NamedTuple):
    """The figure that shows a cause, and how it follows from the figures of a report."""

    figure: str
    value: Callable[[dict[str, float]], float]


# Each thread of the three kernels loads once from global memory, so requests there are loads of a warp.
CAUSES = {
    "scattered loads": Cause("sectors per load request", lambda read: read[SECTORS] / read[REQUESTS]),
    "bank conflicts": Cause("conflicts per load of a warp", lambda read: read[CONFLICTS] / read[REQUESTS]),
    "few warps": Cause("achieved active warps per SM", lambda read: read["Achieved Active Warps Per SM"]),
    "memory bandwidth": Cause("DRAM throughput in per cent", lambda read: read["DRAM Throughput"]),
    "arithmetic": Cause("SM throughput in per cent", lambda read: read["Compute (SM) Throughput"]),
}
LIMITS = {"x": "bank conflicts", "y": "few warps", "z": "memory bandwidth"}
MARGIN = 0.02  # of a figure: people round
START = (
    'The section "GPU Speed Of Light Throughput" says which part is busiest. If none is busy, warps wait: '
    "see the sections Occupancy and Scheduler Statistics. If a cache is, see what its requests cost."
)


@cache
def _report(kernel: str) -> dict[str, float]:
    return tool_figures(REPORT, kernel)


@criterion("kernel {kernel}: the limit, and the figure that shows it")
def _diagnosed(diagnosis: Callable[..., Any], kernel: str) -> None:
    got, call = called(diagnosis, kernel), f"diagnosis({kernel!r})"
    said = list(got) if isinstance(got, tuple | list) else []
    value = number_of(said[1]) if len(said) == 2 else None
    if value is None or not isinstance(said[0], str) or said[0] not in CAUSES:
        raise Unmet(
            f"{call} returns {shown(got)}.\nReturn a limit and a figure, such as "
            f'("arithmetic", 50). The limits are {", ".join(CAUSES)}.'
        )
    if said[0] != LIMITS[kernel]:
        raise Unmet(f"{call} returns {said[0]!r}: that is not what limits the kernel.\n{START}")
    cause = CAUSES[said[0]]
    figure = cause.value(_report(kernel))
    if not abs(value - figure) <= MARGIN * figure:
        raise Unmet(f"{call} has the right limit, and {value:.4g} is not its figure: {cause.figure}.")


EXERCISES = (
    Exercise("14.1", "Three reports", 3, magic="answer", function="diagnosis").asks(*map(_diagnosed, LIMITS)),
)
