"""Emit the bases of special registers (`%tid.x`, `%laneid`, ...) and of variables' addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from labkit.errors import SimtError
from labkit.simt.abi import I32, I64, RANGE_WORDS, ZERO, Frame, Launch, load_field
from labkit.simt.lanes import WARP, thread_index
from labkit.simt.vectors import vector_type

if TYPE_CHECKING:
    from labkit.simt.warp import Warp

Value = Any


def special(warp: Warp, name: str) -> Value:
    """Bases of `name`, in the shape that ShapeRules gives it."""
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
    if base.startswith("lanemask_"):
        return _lane_masks(base.removeprefix("lanemask_"))
    if name in layout.shared:
        return ir.Constant(I64, layout.shared[name])
    if name in layout.local:
        return b.add(local_start(warp), ir.Constant(I64, layout.local[name]))
    if name in layout.variables:
        return range_bound(warp, layout.variables[name], 0)
    raise SimtError(f"the simulator does not know the special register or variable `{name}`")


def local_start(warp: Warp) -> Value:
    """Address of the warp's local memory, lane 0 first."""
    return warp.b.add(warp.b.ptrtoint(warp.frame, I64), ir.Constant(I64, warp.layout.local_start))


def range_bound(warp: Warp, index: int, side: int) -> Value:
    """First address (side 0) or end (side 1) of a valid range."""
    place = ir.Constant(I64, RANGE_WORDS * index + side)
    return warp.b.load(warp.b.gep(warp.ranges, [place], source_etype=I64), typ=I64)


def _thread_index(warp: Warp, axis: str) -> Value:
    """From a table: a base a warp, or an index a lane for blocks whose rows do not line up with warps."""
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
    """`%lanemask_lt` and its kin, a bit mask a lane."""
    masks = {
        "eq": lambda lane: 1 << lane,
        "lt": lambda lane: (1 << lane) - 1,
        "le": lambda lane: (2 << lane) - 1,
        "gt": lambda lane: -(2 << lane),
        "ge": lambda lane: -(1 << lane),
    }
    bits = [ir.Constant(I32, masks[name](lane) & 0xFFFFFFFF) for lane in range(WARP)]
    return ir.Constant(ir.VectorType(I32, WARP), bits)
