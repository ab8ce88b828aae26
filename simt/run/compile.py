"""Compile a kernel for blocks of one shape, with what an observer adds to its code."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from simt.analysis.indices import thread_indices
from simt.analysis.layout import Layout, Storage
from simt.analysis.shapes import ShapeRules
from simt.code.codegen import warp_function
from simt.code.compiled import Compiled
from simt.code.driver import add_driver
from simt.code.jit import machine_code
from simt.common.limits import Dim3
from simt.ptx import Kernel
from simt.run.observer import Observer


def compile_kernel(
    kernel: Kernel,
    storage: Storage,
    block: Dim3,
    observer: type[Observer[object]],
    is_huge: bool,
    is_brief: bool,
) -> Compiled:
    """Compile a kernel for blocks of one shape.

    `is_huge` is for grids in which thread indices may wrap round, `is_brief` for few threads (see jit.py).
    Raises SimtError for an instruction that the simulator does not know.
    """
    emitter = observer.emitter_for(kernel)
    indices = frozenset[str]() if is_huge else thread_indices(kernel)
    rules = ShapeRules(block, storage.local_bytes, frozenset(storage.local), indices)
    flow = emitter.flow(kernel, rules)
    layout = Layout(storage, block, flow, emitter.is_checked)
    module = ir.Module(name=kernel.name)
    warp = warp_function(module, flow, layout, emitter)
    add_driver(module, warp, layout, emitter.is_checked, emitter.is_ordered)
    site = {id(instruction): i for i, instruction in enumerate(kernel.code)}
    blocks = [[site[id(instruction)] for instruction in each.code] for each in flow.blocks]
    return Compiled(
        code=machine_code(module, is_brief),
        warps=layout.warps,
        frame_bytes=layout.frame_bytes,
        barriers=[blocks[index][-1] for index in layout.barriers],
        blocks=blocks,
        local_start=layout.local_start,
        blocks_together=kernel.blocks_together,
        turns=frozenset(layout.turn_states),
        facts=emitter.facts(),
    )


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause Python's garbage collector, which takes a fifth of the time in which LLVM code is written."""
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()
