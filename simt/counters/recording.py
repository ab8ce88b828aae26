"""A recorded run writes down all that a block does: each visit of a basic block, address, and result.

The log is two lists, which generated code fills: heads of 16 bytes, and the 32 values that some of them have.
`Log.heads` and `Log.words` give them back as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir

from simt.analysis.accesses import Access
from simt.analysis.blocks import Block
from simt.analysis.lanes import VARYING
from simt.code.abi import I32, I64, POINTER, Frame, Value, load_field
from simt.code.checked_access import LANES_64, defined_once
from simt.code.emitter import Emitter, ObservedAccess
from simt.code.instructions import Kind
from simt.code.memory import Where, load
from simt.code.vectors import element_type, vector_type
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Instruction, Register
from simt.run.observer import LaunchRun, Observer
from simt.run.worker import Worker

LANES_32 = ir.VectorType(I32, WARP)
# What a head says: `tag` is the number of a basic block or an instruction, shifted, and one of these. The
# n-th result has RESULT + n, and what memory holds afterwards at the n-th address AFTER + n.
ENTER, ADDRESSES, RESULT, AFTER = 0, 1, 2, 24
MOST_RESULTS = AFTER - RESULT
TAG_BITS = 5
KEPT, MOST, WORDS, MOST_WORDS, ALL, VALUES = range(6)  # numbers of 64 bits before the heads
HEAD = np.dtype([("tag", "<i4"), ("mask", "<u4"), ("warp", "<i4"), ("words", "<i4")])


class Log:
    """Room for what a block does: `megabytes` for values, and a sixth of that for heads."""

    def __init__(self, megabytes: int) -> None:
        most = megabytes * 2**20 // (6 * HEAD.itemsize)
        self._words = np.empty(megabytes * 2**18, np.uint32)
        self._all = np.empty(VALUES + 1 + most * HEAD.itemsize // 8, np.int64)
        self._all[: VALUES + 1] = 0, most, 0, self._words.size, 0, self._words.ctypes.data

    @property
    def address(self) -> int:
        """Return where generated code finds it."""
        return self._all.ctypes.data

    @property
    def total(self) -> int:
        """Return how many heads there would be with room for all."""
        return int(self._all[ALL])

    @property
    def heads(self) -> np.ndarray:
        """Return the heads that were kept, as an array of HEAD."""
        return self._all[VALUES + 1 :].view(HEAD)[: self._all[KEPT]]

    @property
    def words(self) -> np.ndarray:
        """Return the values of all heads, one after the other: WARP values of 1 or 2 words each."""
        return self._words[: self._all[WORDS]]


class RecordingEmitter(Emitter):
    """Fills the log at the frame's `trace`."""

    is_ordered = True

    def attach(self, w: Warp) -> None:
        """Take the warp whose code is being written, and hear of each register that it writes."""
        super().attach(w)
        w.wrote = self.wrote
        self.current: Instruction | None = None

    def takes(self, instruction: Instruction, access: Access) -> bool:
        """Have every access take its careful form, which has an address per lane."""
        return False

    def enter(self, block: Block, whole: bool) -> None:
        """Write down that a warp enters a basic block."""
        b, self.current = self.w.b, None
        tag = ir.Constant(I32, self.w.index << TAG_BITS | ENTER)
        b.call(_function(b.module, 0), [self.w.frame, tag, self.w.active()])

    def reads(self, instruction: Instruction) -> None:
        """Note which instruction comes next."""
        self.current = instruction

    def resume(self, instruction: Instruction) -> None:
        """Note whose result comes next, after a barrier."""
        self.current = instruction

    def wrote(self, register: Register) -> None:
        """Write down a result, lane by lane."""
        w, instruction = self.w, self.current
        if instruction is None or register not in instruction.results[:MOST_RESULTS]:
            return
        bits = w.declared(register).bits
        if bits > 64:
            return
        value = w.value(register, Kind("pred" if bits == 1 else f"b{bits}"), WARP)
        number = RESULT + instruction.results.index(register)
        _write(w.b, w.frame, _tag(w.b, w.site(instruction), number), w.active(instruction), value)

    def careful(self, look: ObservedAccess) -> None:
        """Write down the addresses of an access, and what a store leaves there."""
        _write(look.b, look.frame, _tag(look.b, look.site, ADDRESSES), look.asked, look.addresses)
        if look.access.is_store:
            for number, value in enumerate(look.values):
                _write(look.b, look.frame, _tag(look.b, look.site, AFTER + number), look.mask, value)

    def after(self, instruction: Instruction, access: Access, addresses: Value, mask: Value) -> None:
        """Write down what memory holds after an atomic operation."""
        w, kind = self.w, Kind(instruction.type)
        (value,) = load(w.b, Where(addresses, VARYING), kind.llvm, access.size, [0], mask)
        _write(w.b, w.frame, _tag(w.b, w.site(instruction), AFTER), mask, value)


def _tag(b: ir.IRBuilder, site: Value, what: int) -> Value:
    return b.or_(b.shl(site, ir.Constant(I32, TAG_BITS)), ir.Constant(I32, what))


def _write(b: ir.IRBuilder, frame: Value, tag: Value, mask: Value, lanes: Value) -> None:
    """Emit a head with a value per lane, in words of 32 or 64 bits."""
    element = element_type(lanes)
    if not isinstance(element, ir.IntType):
        bits = {ir.HalfType: 16, ir.FloatType: 32, ir.DoubleType: 64}[type(element)]
        element = ir.IntType(bits)
        lanes = b.bitcast(lanes, vector_type(element, WARP))
    wide = I64 if element.width > 32 else I32
    if element.width < wide.width:
        lanes = b.zext(lanes, vector_type(wide, WARP))
    b.call(_function(b.module, wide.width // 32), [frame, tag, mask, lanes])


def _function(module: ir.Module, words: int) -> ir.Function:
    """Define void log(frame, i32 tag, i32 mask, values); `words` per lane, 0 for a head without values."""
    values = {0: [], 1: [LANES_32], 2: [LANES_64]}[words]
    type_ = ir.FunctionType(ir.VoidType(), [POINTER, I32, I32, *values])

    def emit(function: ir.Function) -> None:
        frame, tag, mask, *lanes = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        log = load_field(b, Frame, frame, "trace")
        places = [b.gep(log, [ir.Constant(I64, i)], source_etype=I64) for i in range(VALUES + 1)]
        kept, most, used, room, everything, start = (b.load(place, typ=I64) for place in places)
        b.store(b.add(everything, ir.Constant(I64, 1)), places[ALL])
        after = b.add(used, ir.Constant(I64, words * WARP))
        fits = b.and_(b.icmp_signed("<", kept, most), b.icmp_signed("<=", after, room))
        with b.if_else(fits) as (then, otherwise):
            with then:
                b.store(b.add(kept, ir.Constant(I64, 1)), places[KEPT])
                b.store(after, places[WORDS])
                head = b.gep(log, [ir.Constant(I64, VALUES + 1)], source_etype=I64)
                head = b.gep(head, [b.mul(kept, ir.Constant(I64, 4))], source_etype=I32)
                warp = load_field(b, Frame, frame, "warp")
                for i, value in enumerate((tag, mask, warp, ir.Constant(I32, words * WARP))):
                    b.store(value, b.gep(head, [ir.Constant(I64, i)], source_etype=I32), align=4)
                for value in lanes:
                    to = b.gep(b.inttoptr(start, POINTER), [used], source_etype=I32)
                    b.store(value, to, align=4)
            with otherwise:  # what comes later and is smaller must not be kept
                b.store(kept, places[MOST])
        b.ret_void()

    return defined_once(module, f"log_{words}", type_, emit)


class Recording(Observer[Log]):
    """Records a block; the result is the log, and it also says where shared and local memory lay.

    `order` has a row per round: the numbers of the block's warps, in the order in which they run. `blocks`
    has the numbers of the instructions of each basic block.
    """

    blocks: Sequence[Sequence[int]]
    name = "recorded"
    emitter = RecordingEmitter
    one_by_one = True

    def __init__(self, megabytes: int, order: np.ndarray) -> None:
        self.log, self.order = Log(megabytes), np.ascontiguousarray(order, np.int32)
        self.shared_start, self.local_starts = 0, list[int]()

    def begin(self, run: LaunchRun) -> None:
        """Give the launch the order of the warps."""
        run.launch.order, run.launch.rounds = self.order.ctypes.data, len(self.order)
        self.blocks = run.compiled.blocks

    def attach(self, run: LaunchRun, worker: Worker) -> None:
        """Have a worker's warps fill the log."""
        self.shared_start = worker.shared.ctypes.data
        start, compiled = worker.frames.ctypes.data + run.compiled.local_start, run.compiled
        self.local_starts = [start + warp * compiled.frame_bytes for warp in range(compiled.warps)]
        for head in worker.heads:
            head.trace = self.log.address

    def finish(self, run: LaunchRun) -> None:
        """Give back the log."""
        self.result = self.log
