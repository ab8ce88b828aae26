"""What a launch costs: kernels that do little, and the tail of one whose blocks have unequal work."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from labkit.ladder.limits.machine import Limit, Machine

BLOCKS_PER_SM = (0, 1, 8, 64, 512)  # 0: one block in all
THREADS = (32, 256, 1024)
ORDERS = {"even": 0, "growing": 1, "shrinking": -1}
INSTANCES: list[str] = []


def limits() -> Iterator[Limit]:
    """Yield the times of launches."""
    for threads in THREADS:
        for per_sm in BLOCKS_PER_SM:
            blocks = f"{per_sm} blocks/SM" if per_sm else "1 block"
            yield Limit("launch", f"{blocks} x {threads}", "us", partial(_empty, per_sm, threads))
    yield Limit("launch", "one float", "us", _one_float)
    for name, order in ORDERS.items():
        yield Limit("tail", name, "us", partial(_tail, order))


def _empty(per_sm: int, threads: int, machine: Machine) -> float:
    blocks = machine.rounds(per_sm) * machine.multiprocessors if per_sm else 1
    return 1e6 * machine.seconds(machine.kernel("launches", "empty"), blocks, threads, ())


def _one_float(machine: Machine) -> float:
    args = (_floats(machine, 0), _floats(machine, 1))
    return 1e6 * machine.seconds(machine.kernel("launches", "one_float"), 1, 1, args)


def _tail(order: int, machine: Machine) -> float:
    grid, threads = machine.rounds(8) * machine.multiprocessors, 1024 if machine.is_gpu else 32
    args = (_floats(machine, 0), np.float32(1), np.float32(1), order, 1, 0)
    return 1e6 * machine.seconds(machine.kernel("launches", "work"), grid, threads, args)


def _floats(machine: Machine, place: int) -> Any:
    return machine.array(16, place).view(np.float32)
