"""Record one block of a launch: all that its warps do, with the source's names."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from simt.common.errors import SimtError, Timeout
from simt.common.limits import WARP, Dim3, as_dim3
from simt.compiler.debug_info import variables as debug_variables
from simt.compiler.macros import macros_of
from simt.compiler.nvrtc import MissingTool
from simt.counters.recording import ADDRESSES
from simt.findings import Finding
from simt.kernel import TOOLS, Launch, Size, launch_of
from simt.launch.twins import copies
from simt.module import AnyKernel, Kernel, Recorded
from simt.ptx import Address, Instruction, Symbol
from simt.recording import sides
from simt.recording.events import Events, events, kind_of
from simt.recording.memory import Memory
from simt.recording.variables import Variable, found

MEGABYTES = 32  # of values that a recording keeps
SECONDS = 5  # time limit of the recorded run
ROUNDS = 1024  # different orders of the warps; after them they come again


@dataclass(frozen=True)
class Recording:
    """What one block did: `events` in order, the memory and variables that they concern, and the findings.

    `code` are the PTX instructions; those in `inner` do not begin a basic block. `error` is what ended
    the run early, if anything did.
    """

    kernel: str
    launch: Launch
    at: Dim3
    source: Sequence[str]
    schedule: str
    is_debug: bool
    code: Sequence[Instruction]
    registers: dict[str, str]
    variables: Sequence[Variable]
    memory: Memory
    events: Events
    findings: Sequence[Finding]
    error: SimtError | None
    inner: frozenset[int]

    @property
    def warps(self) -> int:
        """Return the warps of the block."""
        return -(-math.prod(self.launch.block) // WARP)

    @cached_property
    def kinds(self) -> np.ndarray:
        """Return what each instruction does, in one word: see `kind_of`."""
        return np.array([kind_of(each) for each in self.code])

    @cached_property
    def seen(self) -> list[sides.Seen]:
        """Return the findings with their events."""
        return sides.seen(self)

    def is_any(self, *kinds: str) -> np.ndarray:
        """Say for each event whether it is of one of these kinds."""
        return np.isin(self.kinds, kinds)[self.events.site]

    def addresses(self, event: int) -> np.ndarray | None:
        """Return the addresses in an event by lane; None for one that accesses no memory."""
        host = self.events.vectors.values(event, ADDRESSES)
        return None if host is None else self.memory.places(host[None, :], self.events.warp[[event]])[0]

    @cached_property
    def lines(self) -> list[int]:
        """Return the line of each instruction. A jump at the end of a block belongs to the line before it."""
        found = [each.line for each in self.code]
        for number, each in enumerate(self.code):
            if self.kinds[number] == "branch" and not each.guard and number in self.inner:
                found[number] = found[number - 1]
        return found

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Return the number of each register that the code names."""
        return {name: number for number, name in enumerate(self.registers)}

    @property
    def cut(self) -> str:
        """Say how much was left out; "" where nothing was."""
        kept, total = self.events.kept, self.events.total
        if kept >= total:
            return ""
        return (
            f"The recording is full: it has the first {len(self.events):,} instructions of the warps, "
            f"{kept / total:.2g} of the run. Record a smaller launch, such as fewer threads or a smaller "
            "matrix, or give megabytes= to keep more."
        )


def record(
    kernel: AnyKernel,
    grid: Size,
    block: Size,
    args: Sequence[object],
    *,
    at: Size = 0,
    shared_mem: int = 0,
    first: int | None = None,
    seed: int | None = None,
    optimised: bool = False,
    megabytes: int = MEGABYTES,
    timeout: float = SECONDS,
) -> Recording:
    """Run the block `at` of a launch in the simulator, and keep all that its warps do. Arrays do not change.

    The kernel is compiled as a debugger needs it: line by line, with the source's variables. `optimised`
    keeps the code that profiles count and GPUs run, with registers alone; without NVRTC there is no other.
    Between two barriers warp `first` runs before the others, or all run in a random order from `seed`; by
    default warp 0 begins. `megabytes` of values are kept. Raises TypeError, ValueError for a block outside
    the grid, LaunchError, and SimtError for a kernel that cannot be recorded.
    """
    simulated = _simulated(kernel)
    given = kernel._for_simulator(launch_of(grid, block, args, shared_mem, timeout))
    debug = None if optimised else _debug_code(simulated)
    simulated = debug or simulated
    place = _block(at, as_dim3(grid, "grid"))
    launch, checked = (replace(given, args=copies(given.args)) for _ in range(2))
    warps = -(-math.prod(launch.block) // WARP)
    order, schedule = _order(warps, first, seed)
    number = place[0] + launch.grid[0] * (place[1] + launch.grid[1] * place[2])
    with redirect_stdout(io.StringIO()):
        with simulated.undisturbed():
            recorded = simulated.record(launch, number, order, megabytes)
        with simulated.undisturbed():
            findings = _findings(simulated, checked, number, recorded.error)
    code, module = recorded.code, simulated.module
    registers = _registers(simulated, code)
    named = debug_variables(module.ptx) if debug else []
    names = simulated.parameter_names
    macros, types = macros_of(module.options), _item_types(recorded)
    memory = Memory(recorded, names, module.code, macros, types, named)
    return Recording(
        kernel=simulated.name,
        launch=launch,
        at=place,
        source=module.lines,
        schedule=schedule,
        is_debug=debug is not None,
        code=code,
        registers=registers,
        variables=found(named, simulated.parsed.name, simulated.parsed.labels, list(registers)),
        memory=memory,
        events=events(recorded),
        findings=findings,
        error=recorded.error,
        inner=frozenset(site for each in recorded.blocks for site in each[1:]),
    )


def _simulated(kernel: Any) -> Kernel:
    found = getattr(kernel, "simulated", None)
    if not isinstance(found, Kernel):
        raise TypeError(
            "a kernel in CUDA C++ can be recorded, such as RawModule(code=...).get_function(name), not "
            f"{type(kernel).__name__}"
        )
    return found


def _debug_code(kernel: Kernel) -> Kernel | None:
    """Compile a kernel for debugging; its module's variables hold what they hold now. None without NVRTC."""
    module = kernel.module
    try:
        debug = module.with_options([*module.options, "-G"])
    except MissingTool:
        return None
    for name, memory in module.memory.items():
        if name in debug.memory and debug.memory[name].size == memory.size:
            debug.memory[name][:] = memory
    found = debug.get_function(kernel.name)
    found.max_dynamic_shared_size_bytes = kernel.max_dynamic_shared_size_bytes
    return found


def _block(at: Size, grid: Dim3) -> Dim3:
    """Return the block to record. Raises ValueError for one outside the grid."""
    given = (int(at),) if isinstance(at, int | np.integer) else tuple(int(each) for each in at)
    place = (*given, 0, 0, 0)[:3]
    if len(given) > 3 or not all(0 <= each < size for each, size in zip(place, grid, strict=True)):
        raise ValueError(f"block {given} is not in the grid of {grid[0]} x {grid[1]} x {grid[2]} blocks")
    return place[0], place[1], place[2]


def _order(warps: int, first: int | None, seed: int | None) -> tuple[np.ndarray, str]:
    """Return the orders of the warps, and what to call them."""
    if first is not None and seed is not None:
        raise ValueError("give either first= or seed=, not both")
    if seed is not None:
        random = np.random.default_rng(seed)
        return np.array([random.permutation(warps) for _ in range(ROUNDS)]), f"random order, seed {seed}"
    first = first or 0
    if not 0 <= first < warps:
        raise ValueError(f"the block has warps 0 to {warps - 1}, not {first}")
    others = [warp for warp in range(warps) if warp != first]
    return np.array([[first, *others]]), f"warp {first} first"


def _findings(kernel: Kernel, launch: Launch, number: int, error: SimtError | None) -> list[Finding]:
    """Return what a checked run of the block finds; a race with another block needs more blocks."""
    if isinstance(error, Timeout):  # it would take as long again
        return [error.finding] if isinstance(error.finding, Finding) else []
    return kernel.check_launch(launch, TOOLS, [number])


def _registers(kernel: Kernel, code: Sequence[Instruction]) -> dict[str, str]:
    """Return the registers that the code names, in the order of their first use, and their types."""
    named = dict.fromkeys(register.name for each in code for register in (*each.results, *each.sources))
    return {name: kernel.parsed.register_type(name) for name in named}


def _item_types(recorded: Recorded) -> dict[str, str]:
    """Return the type of items of each array in shared memory, where accesses name it."""
    return {
        operand.base.name: each.type
        for each in recorded.code
        if each.is_access
        for operand in each.operands
        if isinstance(operand, Address) and isinstance(operand.base, Symbol)
    }
