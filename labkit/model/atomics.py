"""How long atomic additions take at least: those at one address take turns.

The rates were measured on a GPU (`labkit.records.limits`). In global memory the L2 cache adds, one addition
at an address after the other. In shared memory the multiprocessor adds: an addition of integers takes one
clock per turn, and one of floats, for which it has no instruction, twelve.
"""

from functools import cache

from labkit import records
from simt.common.limits import WARP
from simt.common.occupancy import Gpu
from simt.counters.sectors import SECTOR_BYTES

WORD_BYTES = 4
GLOBAL, SHARED = "atomics", "shared_atomic_clocks"  # quantities of a table of limits


@cache
def one_address(kind: str = "int", machine: str = "h200") -> float:
    """Return the additions per second to one address of global memory; `kind` is int or float."""
    return 1e9 * _limit(machine, GLOBAL, f"{kind}, 1 lane per request, one address")


@cache
def sectors(kind: str = "int", machine: str = "h200") -> float:
    """Return the sectors per second of additions to different addresses, of which a sector has eight."""
    lanes = _limit(machine, GLOBAL, f"{kind}, 32 lanes per request, distinct addresses")
    return 1e9 * lanes * WORD_BYTES / SECTOR_BYTES


@cache
def clocks_per_turn(kind: str = "int", machine: str = "h200") -> float:
    """Return the clocks that a multiprocessor takes for a turn of additions to shared memory."""
    return _limit(machine, SHARED, f"{kind}, one address") / WARP


def in_global(touched: float, busiest: int, kind: str = "int", machine: str = "h200") -> float:
    """Return the seconds that additions to global memory take at least, `busiest` of them at one address.

    `touched` is the sum of the sectors over all requests (`sectors` of `Profile.lines`).
    """
    return max(touched / sectors(kind, machine), busiest / one_address(kind, machine))


def in_shared(turns: float, gpu: Gpu, kind: str = "int", machine: str = "h200") -> float:
    """Return the seconds that additions to shared memory take at least.

    `turns` is the sum over all warps' requests (`turns` of `Profile.lines`), spread evenly over the GPU.
    """
    assert gpu.boost_mhz is not None
    return turns * clocks_per_turn(kind, machine) / (gpu.multiprocessors * gpu.boost_mhz * 1e6)


def _limit(machine: str, quantity: str, variant: str) -> float:
    rows = records.limits(machine).query("quantity == @quantity and variant == @variant")
    return float(rows.value.item())
