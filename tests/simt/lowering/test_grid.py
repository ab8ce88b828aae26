"""The barrier of a whole grid, as CUDA's header writes it, becomes one instruction."""

from ptx_kernels import kernel, opcodes

from simt.lowering.grid import make_grid_barriers
from simt.ptx import GRID, Immediate

HEADER = """
mov.u32 %r1, %envreg2; mov.u32 %r2, %envreg1; cvt.u64.u32 %rd3, %r2;
shl.b64 %rd3, %rd3, 32; cvt.u64.u32 %rd4, %r1; or.b64 %rd1, %rd3, %rd4;
setp.ne.s64 %p1, %rd1, 0; @!%p1 trap;
barrier.sync 0;
mov.u32 %r3, %tid.x; setp.ne.u32 %p2, %r3, 0; @%p2 bra DONE;
add.s64 %rd2, %rd1, 4; {keep}
atom.add.release.gpu.u32 %r4, [%rd2], %r5;
LOOP: ld.acquire.gpu.u32 %r6, [%rd2]; xor.b32 %r7, %r6, %r4; setp.gt.s32 %p3, %r7, -1; @%p3 bra LOOP;
bra DONE;
DONE: barrier.sync 0;
ret;
"""


def test_the_second_barrier_is_the_grids():
    made = kernel(HEADER.format(keep=""))
    before = [i.opcode for i in made.code]
    make_grid_barriers(made)
    barriers = [i for i in made.code if i.is_barrier]
    assert [i.meets_grid for i in barriers] == [False, True] and made.waits_for_grid
    assert len(made.code) == len(before)
    assert not {"atom", "ld"} & {i.parts[0] for i in made.code}


def test_nobody_waits_in_the_loop():
    """The number that is read differs in its top bit from the one that the thread added to."""
    made = kernel(HEADER.format(keep=""))
    make_grid_barriers(made)
    values = {i.operands[0].name: i.operands[1] for i in made.code if i.parts[0] == "mov"}
    assert values["%r4"] == Immediate(0) and values["%r6"] == Immediate(0x80000000)
    assert values["%r1"] == values["%r2"] == Immediate(1)  # the driver has given a counter


def test_a_counter_that_memory_keeps_is_left_alone():
    made = kernel(HEADER.format(keep="st.local.u64 [%rd9], %rd2;"))
    before = list(made.code)
    make_grid_barriers(made)
    assert made.code == before and not made.waits_for_grid


def test_other_barriers_stay():
    made = kernel("ld.acquire.gpu.u32 %r6, [%rd2]; bar.sync 0; ret;")
    make_grid_barriers(made)
    assert opcodes(made.code) == ["ld.acquire.gpu.u32", "bar.sync", "ret"]
    assert all(GRID not in i.parts for i in made.code)
