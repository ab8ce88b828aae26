"""Emit the bases of special registers (`%tid.x`, `%laneid`, ...) and of variables' addresses."""

import os
import platform
from typing import Protocol

from llvmlite import ir

from simt.analysis.lanes import thread_index
from simt.analysis.layout import Layout
from simt.code.abi import I1, I32, I64, POINTER, ZERO, Frame, Launch, Value, load_field
from simt.code.vectors import vector_type
from simt.common.errors import SimtError
from simt.common.limits import WARP
from simt.common.occupancy import DEFAULT_GPU, gpu

MULTIPROCESSORS = gpu(DEFAULT_GPU).multiprocessors
_REAL_TIME, _MONOTONIC = 0, 6 if platform.system() == "Darwin" else 1


class Place(Protocol):
    """What special registers are read from: the function of a warp to which code is being added."""

    b: ir.IRBuilder
    function: ir.Function
    layout: Layout
    launch: Value
    frame: Value

    @property
    def number(self) -> Value:
        """Return the warp's number in its block."""

    def range(self, number: int, name: str) -> Value:
        """Return a field of the record of valid memory `number`."""


def special(warp: Place, name: str) -> Value:
    """Return the bases of `name`, in the shape that ShapeRules gives it."""
    b, layout = warp.b, warp.layout
    base, _, axis = name.lstrip("%").partition(".")
    match base:
        case "tid":
            return _thread_index(warp, axis)
        case "ntid":
            return ir.Constant(I32, layout.block["xyz".index(axis)])
        case "ctaid":
            return load_field(b, Frame, warp.frame, axis)
        case "nctaid":
            return load_field(b, Launch, warp.launch, f"grid_{axis}")
        case "laneid":
            return ZERO
        case "warpid":
            return warp.number
        case "nwarpid":
            return ir.Constant(I32, layout.warps)
        case "smid":  # as if the blocks took the multiprocessors in turn
            return b.urem(load_field(b, Frame, warp.frame, "x"), ir.Constant(I32, MULTIPROCESSORS))
        case "nsmid":
            return ir.Constant(I32, MULTIPROCESSORS)
        case "cluster_ctarank":
            return load_field(b, Frame, warp.frame, "rank")
        case "cluster_nctarank":
            return ir.Constant(I32, layout.flow.kernel.blocks_together)
        case "cluster_nctaid":
            return ir.Constant(I32, layout.flow.kernel.cluster["xyz".index(axis)])
        case "cluster_ctaid" | "clusterid":
            side = ir.Constant(I32, layout.flow.kernel.cluster["xyz".index(axis)])
            place = load_field(b, Frame, warp.frame, axis)
            return b.udiv(place, side) if base == "clusterid" else b.urem(place, side)
        case "nclusterid":
            side = ir.Constant(I32, layout.flow.kernel.cluster["xyz".index(axis)])
            return b.udiv(load_field(b, Launch, warp.launch, f"grid_{axis}"), side)
        case "is_explicit_cluster":
            return ir.Constant(I1, int(layout.flow.kernel.blocks_together > 1))
        case "gridid":
            return ir.Constant(I64, 1)
        case "total_smem_size":
            return b.trunc(load_field(b, Launch, warp.launch, "shared_bytes"), I32)
        case "dynamic_smem_size":
            start = layout.storage.dynamic_shared_start
            dynamic = b.sub(load_field(b, Launch, warp.launch, "shared_bytes"), ir.Constant(I64, start))
            none = b.icmp_signed("<", dynamic, ir.Constant(I64, 0))
            return b.trunc(b.select(none, ir.Constant(I64, 0), dynamic), I32)
        case "clock64" | "clock":
            return clock(b)
        case "clock_hi":
            return b.lshr(clock(b), ir.Constant(I64, 32))
        case "globaltimer" | "globaltimer_lo":
            return nanoseconds(b, _REAL_TIME)
        case "globaltimer_hi":
            return b.lshr(nanoseconds(b, _REAL_TIME), ir.Constant(I64, 32))
    if base.startswith("lanemask_"):
        return _lane_masks(base.removeprefix("lanemask_"))
    if name in layout.shared:
        return ir.Constant(I64, layout.shared[name])
    if name in layout.local:
        return b.add(local_start(warp), ir.Constant(I64, layout.local[name]))
    if name in layout.variables:
        return warp.range(layout.variables[name], "start")
    raise SimtError(f"the simulator does not know the special register or variable `{name}`")


def clock(b: ir.IRBuilder) -> Value:
    """Emit a counter that only grows: the host's cycles or nanoseconds. A GPU's speed is not in it."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return b.call(_declared(b, "llvm.readcyclecounter", ir.FunctionType(I64, [])), [])
    return nanoseconds(b, _MONOTONIC)


def _declared(b: ir.IRBuilder, name: str, type_: ir.FunctionType) -> ir.Function:
    return b.module.globals.get(name) or ir.Function(b.module, type_, name)


def nanoseconds(b: ir.IRBuilder, which: int) -> Value:
    """Emit the host's time, from the C library."""
    if os.name == "nt":
        return clock(b)
    read = _declared(b, "clock_gettime", ir.FunctionType(I32, [I32, POINTER]))
    time = ir.LiteralStructType([I64, I64])
    with b.goto_entry_block():
        slot = b.alloca(time)
    b.call(read, [ir.Constant(I32, which), slot])
    seconds, rest = (
        b.load(b.gep(slot, [ZERO, ir.Constant(I32, i)], source_etype=time), typ=I64) for i in (0, 1)
    )
    return b.add(b.mul(seconds, ir.Constant(I64, 10**9)), rest)


def local_start(warp: Place) -> Value:
    """Return the address of the warp's local memory, which begins with lane 0's."""
    return warp.b.add(warp.b.ptrtoint(warp.frame, I64), ir.Constant(I64, warp.layout.local_start))


def _thread_index(warp: Place, axis: str) -> Value:
    """Read it from a table: one base per warp, or one index per lane where rows do not line up with warps."""
    shape, index = thread_index(axis, warp.layout.block)
    if shape.bases == 1:
        rows = [ir.Constant(I32, index(number)) for number in range(warp.layout.warps)]
        if len({row.constant for row in rows}) == 1:
            return rows[0]
    else:
        lanes = [
            [ir.Constant(I32, index(WARP * n + lane)) for lane in range(WARP)]
            for n in range(warp.layout.warps)
        ]
        rows = [ir.Constant(vector_type(I32, WARP), row) for row in lanes]
    module, name = warp.function.module, f"tid.{axis}"
    if name not in module.globals:
        table = ir.GlobalVariable(module, ir.ArrayType(rows[0].type, len(rows)), name)
        table.initializer = ir.Constant(table.value_type, rows)
        table.global_constant, table.linkage = True, "internal"
    table = module.globals[name]
    place = warp.b.gep(table, [ZERO, warp.number], source_etype=table.value_type)
    return warp.b.load(place, typ=rows[0].type)


def _lane_masks(name: str) -> Value:
    """Return `%lanemask_lt` or a similar register: one bit mask per lane."""
    masks = {
        "eq": lambda lane: 1 << lane,
        "lt": lambda lane: (1 << lane) - 1,
        "le": lambda lane: (2 << lane) - 1,
        "gt": lambda lane: -(2 << lane),
        "ge": lambda lane: -(1 << lane),
    }
    bits = [ir.Constant(I32, masks[name](lane) & 0xFFFFFFFF) for lane in range(WARP)]
    return ir.Constant(ir.VectorType(I32, WARP), bits)
