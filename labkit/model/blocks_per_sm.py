"""A block on an SM: how much it takes of each resource, how many such blocks fit, and what would let more in.

The rules are those of `simt.common.occupancy`, with all the shared memory that an SM can separate from its
L1.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from simt.common.limits import MAX_THREADS, WARP
from simt.common.occupancy import Gpu, occupancy

RESOURCES = {"registers": "registers", "shared_mem": "shared memory", "warps": "warps", "blocks": "blocks"}
LEAST_REGISTERS = 16  # per thread


@dataclass(frozen=True)
class Block:
    """A block of `threads` on an SM of a GPU: its registers per thread, and bytes of shared memory."""

    on: Gpu
    threads: int
    registers: int
    shared: int

    @property
    def warps(self) -> int:
        """Return the warps per block; the last may be partly empty."""
        return -(-self.threads // WARP)

    @property
    def registers_of_warp(self) -> int:
        """Return the registers that each of its warps takes, in whole units."""
        return _whole(self.registers * WARP, self.on.register_unit)

    @property
    def shared_taken(self) -> int:
        """Return the bytes of shared memory that it takes, with the driver's part, in whole units."""
        return _whole(self.shared + self.on.reserved_shared_bytes, self.on.shared_unit)

    @property
    def limits(self) -> dict[str, int]:
        """Return the blocks that fit an SM by each resource, with as much shared memory as an SM can have."""
        limits = occupancy(self.on, self.threads, self.registers, self.shared).limits
        if self.shared_taken and self.shared <= self.on.shared_bytes_per_block:
            limits["shared_mem"] = self.on.shared_bytes_per_sm // self.shared_taken
        return {name: limits[name] for name in RESOURCES}

    @property
    def blocks(self) -> int:
        """Return the blocks that an SM holds at once."""
        return min(self.limits.values())

    @property
    def percent(self) -> float:
        """Return the theoretical occupancy in percent."""
        return 100 * self.blocks * self.warps / self.on.warps_per_sm

    @property
    def limited_by(self) -> list[str]:
        """Return the resources that allow the fewest blocks, among those that it uses."""
        fewest = [name for name, blocks in self.limits.items() if blocks == self.blocks]
        return [name for name in fewest if name != "shared_mem" or self.shared_taken]


def cures(block: Block) -> dict[str, Block]:
    """Map each limiting resource to the block after the smallest change to it that gives more warps."""
    found = {}
    for name in block.limited_by:
        better = next((each for each in _CHANGES[name](block) if each.percent > block.percent), None)
        if better:
            found[name] = better
    return found


def _fewer_registers(block: Block) -> Iterable[Block]:
    return (replace(block, registers=count) for count in range(block.registers - 1, LEAST_REGISTERS - 1, -1))


def _less_shared(block: Block) -> Iterable[Block]:
    unit = block.on.shared_unit
    return (replace(block, shared=size) for size in range(block.shared // unit * unit, -1, -unit))


def _fewer_threads(block: Block) -> Iterable[Block]:
    return (replace(block, threads=count) for count in range(block.threads - WARP, 0, -WARP))


def _more_threads(block: Block) -> Iterable[Block]:
    return (replace(block, threads=count) for count in range(block.threads + WARP, MAX_THREADS + 1, WARP))


_CHANGES: dict[str, Callable[[Block], Iterable[Block]]] = {
    "registers": _fewer_registers,
    "shared_mem": _less_shared,
    "warps": _fewer_threads,
    "blocks": _more_threads,
}


def _whole(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit
