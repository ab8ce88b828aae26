"""Count the wavefronts of accesses to shared memory: the cycles that the banks take for each.

In a wavefront each bank delivers one word of 4 bytes. Accesses of 8 bytes per lane go by half-warps, those
of 16 by quarter-warps. Two neighbouring parts of a load go together where all lanes of the warp pair up: each
has the address of the lane beside it (its number's bit 0 differs), or of the one two further (bit 1). So a
load of 16 bytes that all lanes make from one address takes 2. `benchmarks/shared_wavefronts.py` records
accesses on a GPU, which `tests/simt/test_wavefronts.py` compares with this rule.
"""

from collections.abc import Sequence

from llvmlite import ir

from simt.analysis.accesses import Access
from simt.analysis.convergence import Groups
from simt.analysis.lanes import absorbed
from simt.code import abi
from simt.code.abi import I1, I32, I64, Value
from simt.code.addresses import where
from simt.code.checked_access import LANES_64, defined_once, shared_bounds
from simt.code.emitter import ObservedAccess
from simt.code.vectors import broadcast, expanded, mask_of, reshaped, shuffled
from simt.common.limits import WARP
from simt.counters.banks import BANK_BYTES, BANKS, sum_of_passes, words_of
from simt.counters.counting import Counting, CountingEmitter
from simt.counters.counts import Facts
from simt.counters.sectors import ONE, add
from simt.ptx import Instruction

PARTNERS = (1, 2)  # a lane's number and its partner's differ by this bit


def wavefronts(addresses: Sequence[int | None], size: int, is_load: bool) -> int:
    """Count the wavefronts of a warp's access of `size` bytes per lane; None: the lane takes no part."""
    words_each = max(1, size // BANK_BYTES)
    lanes_each = WARP // words_each
    if is_load and words_each > 1 and any(_pair_up(addresses, bit) for bit in PARTNERS):
        lanes_each *= 2
    total = 0
    for first in range(0, WARP, lanes_each):
        part = [address for address in addresses[first : first + lanes_each] if address is not None]
        words = {address // BANK_BYTES + i for address in part for i in range(words_each)}
        in_bank = [0] * BANKS
        for word in words:
            in_bank[word % BANKS] += 1
        total += max(in_bank)
    return total


def _pair_up(addresses: Sequence[int | None], bit: int) -> bool:
    pairs = ((one, addresses[lane ^ bit]) for lane, one in enumerate(addresses))
    return all(one == other or one is None or other is None for one, other in pairs)


def count_wavefronts(b: ir.IRBuilder, places: Value, mask: Value, size: Value, is_load: Value) -> Value:
    """Emit a call that counts as `wavefronts` does, for addresses known only when the kernel runs."""
    type_ = ir.FunctionType(I64, [LANES_64, I32, I64, I1])
    return b.call(defined_once(b.module, "wavefronts", type_, _emit), [places, mask, size, is_load])


def _emit(function: ir.Function) -> None:
    places, mask, size, is_load = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    words_each = words_of(b, size)
    merges = b.and_(is_load, b.icmp_unsigned(">", words_each, ONE))
    merges = b.and_(merges, b.or_(*(_emit_pair_up(b, places, mask, bit) for bit in PARTNERS)))
    parts = b.select(merges, b.lshr(words_each, ONE), words_each)
    b.ret(sum_of_passes(b, places, mask, words_each, parts, least=0))


def _emit_pair_up(b: ir.IRBuilder, places: Value, mask: Value, bit: int) -> Value:
    """Test whether each lane in `mask` has the address of its partner, if that is in `mask`, too."""
    partners = [lane ^ bit for lane in range(WARP)]
    differ = mask_of(b, b.icmp_unsigned("!=", places, shuffled(b, places, None, partners)))
    low = ir.Constant(I32, sum(1 << lane for lane in range(WARP) if not lane & bit))
    amount = ir.Constant(I32, bit)
    swapped = b.or_(b.shl(b.and_(mask, low), amount), b.and_(b.lshr(mask, amount), low))
    return b.icmp_unsigned("==", b.and_(differ, b.and_(mask, swapped)), abi.ZERO)


class IssuesEmitter(CountingEmitter):
    """Adds to the visits of each basic block, and to the wavefronts of each access to shared memory.

    The wavefronts stand where a counted run has bank conflicts.
    """

    flow = Groups

    def facts(self) -> Facts:
        """Return what the usual accesses cost; strides between lanes are of no use here."""
        return Facts(self.known, [None] * len(self.known))

    def fast(self, instruction: Instruction, access: Access) -> None:
        """Count an access that a whole warp makes."""
        if access.space != "shared":
            return
        b, shape, counter = self.w.b, access.shape, self._counter(instruction)
        if shape.bases == 1 and access.alignment >= BANK_BYTES:
            known = wavefronts(shape.lane_offsets(), access.alignment, not access.is_store)
            add(b, abi.Counter, counter, "conflicts", ir.Constant(I64, known))
            return
        self.count(access, counter, self.w.site(instruction))

    def count(self, access: Access, counter: Value, site: Value) -> None:
        """Count the wavefronts of a whole warp's access whose lanes are at no constant distances."""
        b, shape = self.w.b, access.shape
        address = where(self.w, access).base
        lanes = expanded(b, reshaped(b, address, shape, absorbed(shape)), WARP)
        counted = self.wavefronts(b, self.w.frame, site, lanes, ir.Constant(I32, -1), access)
        add(b, abi.Counter, counter, "conflicts", counted)

    def wavefronts(
        self, b: ir.IRBuilder, frame: Value, site: Value, places: Value, mask: Value, access: Access
    ) -> Value:
        """Emit how many wavefronts an access takes whose addresses are known only when the kernel runs."""
        sizes = ir.Constant(I64, access.alignment), ir.Constant(I1, not access.is_store)
        return count_wavefronts(b, places, mask, *sizes)

    def careful(self, look: ObservedAccess) -> None:
        """Count an access of some lanes."""
        if look.access.space != "shared":
            return
        b = look.b
        counters = abi.load_field(b, abi.Frame, look.frame, "counters")
        counter = b.gep(counters, [look.site], source_etype=abi.TYPES[abi.Counter])
        start, _ = shared_bounds(b, look.launch, look.frame)
        places = b.sub(look.addresses, broadcast(b, start, WARP))
        counted = self.wavefronts(b, look.frame, look.site, places, look.mask, look.access)
        add(b, abi.Counter, counter, "conflicts", counted)
        some = b.zext(b.icmp_unsigned("!=", look.mask, abi.ZERO), I64)
        add(b, abi.Counter, counter, "requests", some)

    def step(self, instruction: Instruction) -> None:
        """Count nothing else."""

    def part(self, instruction: Instruction, taken: Value, other: Value) -> None:
        """Count nothing of branches."""


class Issues(Counting):
    """Counts how often machine code issues each instruction, and wavefronts; the result is the totals."""

    name = "issued"
    emitter = IssuesEmitter
    by_warp = False
