"""Where parameters, shared and local variables, a warp's frame and the valid memory lie."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from simt.analysis.convergence import Groups
from simt.analysis.flow import Flow
from simt.analysis.pointees import find_pointees
from simt.analysis.unset import may_be_unset
from simt.common.limits import WARP, Dim3
from simt.ptx import TYPE_BYTES, Kernel, Module, Symbol, Variable

DYNAMIC_ALIGN = 16
STRIDE = 1 << 20  # bytes between the shared memories of two blocks of a cluster
FRAME_HEAD = 96  # bytes of abi.Frame at the start of a frame
# A kernel with more instructions is large: its code is outlined (simt/code/outline.py), so that the time to
# build it grows with the kinds of its instructions. One product of matrices is as much code as ten others.
LARGE = 400
OF_A_PRODUCT = 10


# Shared memory that CUDA keeps for cooperative groups of several warps, by the name of its special register.
RESERVED = Variable("%reserved_smem_offset_1", "b8", 288, 16)


def rounded_up(size: int, align: int) -> int:
    """Round `size` up to a multiple of `align`."""
    return -(-size // align) * align


def placed(variables: list[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Return the offsets of variables that lie one after another, and their end."""
    offsets = {}
    for variable in variables:
        start = rounded_up(start, variable.align)
        offsets[variable.name] = start
        start += variable.size
    return offsets, start


def granules(kernel: Kernel) -> dict[str, int]:
    """Return, by memory, the bytes per word of shadow: the smallest that it reads or writes, at most 4."""
    sizes = [(i.space, TYPE_BYTES[i.type]) for i in kernel.code if i.is_access]
    return {
        space: min([4, *(size for where, size in sizes if where in (space, "generic"))])
        for space in ("global", "shared")
    }


@dataclass(frozen=True)
class Storage:
    """Offsets in bytes, by name, that do not depend on the block shape.

    `ranges` numbers the valid ranges of global memory: first one per parameter, then one per module variable.
    `constants` are the numbers of the `__constant__` variables.
    """

    params: dict[str, int]
    param_bytes: int
    shared: dict[str, int]
    static_shared_bytes: int
    dynamic_shared_start: int
    local: dict[str, int]
    local_bytes: int
    ranges: dict[str, int]
    constants: frozenset[int]


def storage(kernel: Kernel, module: Module) -> Storage:
    """Lay out a kernel's variables; `extern __shared__ a[]` begins after the static arrays, aligned."""
    params, param_bytes = placed(kernel.params)
    in_module = [variable for space, variable in module.variables.values() if space == "shared"]
    static = [variable for variable in [*kernel.shared, *in_module] if variable.size]
    if any(Symbol(RESERVED.name) in instruction.operands for instruction in kernel.code):
        static.append(RESERVED)
    shared, shared_bytes = placed(static)
    dynamic = [variable for variable in in_module if not variable.size]
    start = rounded_up(shared_bytes, max([DYNAMIC_ALIGN, *(variable.align for variable in dynamic)]))
    shared |= {variable.name: start for variable in dynamic}
    local, local_bytes = placed(kernel.local)
    memory = {variable.name: space for space, variable in module.variables.values() if space != "shared"}
    names = [*(param.name for param in kernel.params), *memory]
    ranges = {name: i for i, name in enumerate(names)}
    constants = frozenset(ranges[name] for name, space in memory.items() if space == "const")
    local_bytes = rounded_up(local_bytes, 16)
    return Storage(params, param_bytes, shared, shared_bytes, start, local, local_bytes, ranges, constants)


@dataclass
class Layout:
    """The storage of a kernel and the frame of its warps, for one block shape.

    `warps` are those of one block. `places` are the offsets of registers in the frame: of those that are
    needed after a barrier, and in a large kernel of all. `turns` are those of the `barriers` at which a warp
    only lets others run. Lanes may then wait at other blocks: `waiting` has an offset for each. `parking` has
    the offsets of what is known of lanes that park at a block (code/parking.py). The frame of a checked run
    has a map after the warp's local memory: a byte for each of its bytes, and for each register that may be
    unset a word with the lanes that have set it.
    """

    storage: Storage
    block: Dim3
    flow: Flow
    is_checked: bool = False
    barriers: list[int] = field(init=False)
    places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.params, self.shared, self.local = self.storage.params, self.storage.shared, self.storage.local
        self.local_bytes, self.variables = self.storage.local_bytes, self.storage.ranges
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.warps = -(-self.threads // WARP)
        self.pointees = find_pointees(self.flow.kernel, self.storage.ranges)
        blocks = self.flow.blocks
        self.barriers = [i for i, block in enumerate(blocks) if block.last and block.last.stops]
        self.turns = [i for i in self.barriers if blocks[i].code[-1].gives_way]
        self.spins = [i for i, block in enumerate(blocks) if block.last and block.last.spins]
        self.gathers = [i for i, each in enumerate(blocks) if each.may_park and each.code[-1].gathers]
        self.meetings = [i for i in self.barriers if blocks[i].may_park and blocks[i].code[-1].is_barrier]
        self.parks = [*self.spins, *self.gathers, *self.meetings]
        # A warp's state: the number of the barrier at which it waits, or that all its lanes are parked.
        self.parked = len(self.barriers) + 1
        self.turn_states = [self.barriers.index(i) + 1 for i in self.turns]
        self.turn_states += [self.parked] if self.spins else []
        self.awaits_blocks = any(blocks[i].code[-1].awaits_blocks for i in self.spins)
        self.grid_barriers = [i for i in self.barriers if blocks[i].code[-1].meets_grid]
        self.is_resumed = bool(self.grid_barriers) or self.awaits_blocks  # may a block give way to others?
        code = self.flow.kernel.code
        self.is_large = sum(OF_A_PRODUCT if each.family.joins_lanes else 1 for each in code) > LARGE
        self.places, end = self._all_places() if self.is_large else self._places_after_barriers()
        self.waiting: dict[int, int] = {}
        for index in sorted(set().union(*(blocks[i].may_wait for i in self.turns))):
            self.waiting[index] = end = rounded_up(end, 4)
            end += 4
        self.parking: dict[int, int] = {}
        self.parking_start = end = rounded_up(end, 4)
        if self.spins:
            end += 4  # are lanes apart, so that some are parked or were?
            for index in self.parks:
                self.parking[index] = end
                end += 12  # the lanes that are parked; those that came to a spin last, and how often
        self.parking_bytes = end - self.parking_start
        self.regions = end = rounded_up(end, 4)
        if isinstance(self.flow, Groups):  # the lanes of each region, and those that have ended
            end += 4 * (len(self.flow.meetings()) + 1)
        self.local_start = rounded_up(end, 64)
        self.local_map_start = self.local_start + WARP * self.local_bytes
        end = self.local_map_start
        self.unset: dict[str, int] = {}
        if self.is_checked:
            end += WARP * self.local_bytes
            self.unset = {name: end + 4 * i for i, name in enumerate(may_be_unset(blocks))}
            end += 4 * len(self.unset)
        self.map_bytes = end - self.local_map_start
        self.frame_bytes = rounded_up(end, 64)

    def live_after(self, index: int) -> set[str]:
        """Return the registers that lanes need after a stop at the end of block `index`."""
        block = self.flow.blocks[index]
        following = [*block.successors, *(block.elsewhere if index in self.turns else ())]
        return {name for each in following for name in self.flow.blocks[each].live_in}

    @property
    def live_when_parked(self) -> set[str]:
        """Return the registers that parked lanes need."""
        return {name for each in self.parks for name in self.flow.blocks[each].live_in}

    def alignment(self, register: str) -> int:
        """Return the alignment of a register's place in the frame."""
        return min(64, 1 << (self._bytes(register) - 1).bit_length())

    def _bytes(self, register: str) -> int:
        flow = self.flow
        return TYPE_BYTES[flow.kernel.register_type(register)] * flow.shapes[register].bases

    def _places_after_barriers(self) -> tuple[dict[str, int], int]:
        """Place the registers that are needed after a barrier; return the end, too."""
        needed = {name for i in self.barriers for name in self.live_after(i)}
        needed |= self.live_when_parked
        return self._placed(sorted(needed & self.flow.shapes.keys()), FRAME_HEAD)

    def _placed(self, registers: Iterable[str], end: int) -> tuple[dict[str, int], int]:
        places = {}
        for name in registers:
            places[name] = rounded_up(end, self.alignment(name))
            end = places[name] + self._bytes(name)
        return places, end

    def _all_places(self) -> tuple[dict[str, int], int]:
        """Place all registers; those of one basic block alone take places that are free again."""
        shapes = self.flow.shapes
        blocks = [
            [{r.name for r in (*code.sources, *code.results)} & shapes.keys() for code in block.code]
            for block in self.flow.blocks
        ]
        in_blocks = Counter(name for named in blocks for name in set().union(*named))
        shared = {name for name, count in in_blocks.items() if count > 1}
        shared |= set().union(*(block.live_in for block in self.flow.blocks)) & shapes.keys()
        places, end = self._placed(sorted(shared), FRAME_HEAD)
        free: dict[int, list[int]] = {}
        for named in blocks:
            last_use = {name: i for i, names in enumerate(named) for name in names}
            for i, names in enumerate(named):
                for name in names:
                    if name not in places:
                        size = self._bytes(name)
                        if not free.get(size):
                            end = rounded_up(end, self.alignment(name)) + size
                            free[size] = [end - size]
                        places[name] = free[size].pop()
                for name in names:
                    if last_use[name] == i and name not in shared:
                        free[self._bytes(name)].append(places[name])
        return places, end
