"""`malloc` and `free` in kernels, which `new` and `delete` call: functions in PTX, linked to the module.

The heap is a variable of the module, so what one kernel allocates another may use. A block has a head of 16
bytes: its class of sizes, and the next free block of that class. New blocks come from the heap's end while it
has room; only then are freed ones used again, of the same class. So two threads seldom get the same memory in
one launch, where nothing would order what they do with it. All is done with atomic operations, and no thread
waits for another.
"""

from __future__ import annotations

import re

HEAP_BYTES = 8 << 20  # unless cudaDeviceSetLimit(cudaLimitMallocHeapSize) says another number
_USED = re.compile(r"\.extern\s+\.func\b[^;]*?\b(?:malloc|free)\b[^;]*;")
# $heap_state: where the heap's unused end begins, then the first free block of each class. The upper 24 bits
# are a number that changes with each use, so that a block which came back meanwhile is told from one that
# never left. There are four classes from each power of two to the next.
_FUNCTIONS = """
.global .align 8 .b8 $heap_state[2560] = {16};
.global .align 16 .b8 $heap[HEAP_BYTES];
.func  (.param .b64 func_retval0) malloc(
    .param .b64 malloc_param_0
)
{
    .reg .pred     %p<8>;
    .reg .b32     %r<9>;
    .reg .b64     %rd<52>;
    ld.param.u64     %rd17, [malloc_param_0];
    add.s64     %rd18, %rd17, 16;
    setp.gt.u64     %p1, %rd17, -17;
    selp.b64     %rd1, BEYOND, %rd18, %p1;
    setp.gt.u64     %p2, %rd1, HEAP_BYTES;
    mov.u64     %rd51, 0;
    @%p2 bra     $heap_malloc_9;
    add.s64     %rd19, %rd1, -1;
    mov.u64     %rd20, -1;
    clz.b64     %r1, %rd19;
    mov.u32     %r2, 63;
    sub.s32     %r3, %r2, %r1;
    setp.gt.s32     %p3, %r3, 6;
    mov.u32     %r4, 61;
    sub.s32     %r5, %r4, %r1;
    selp.b32     %r6, %r5, 4, %p3;
    mov.u64     %rd21, 1;
    shl.b64     %rd22, %rd21, %r6;
    add.s64     %rd23, %rd19, %rd22;
    shl.b64     %rd24, %rd20, %r6;
    and.b64      %rd2, %rd23, %rd24;
    shl.b32     %r7, %r6, 3;
    add.s32     %r8, %r7, -32;
    cvt.s64.s32     %rd25, %r8;
    shr.u64     %rd26, %rd2, %r6;
    add.s64     %rd3, %rd26, %rd25;
    mov.u64     %rd27, $heap_state;
    atom.global.add.u64     %rd49, [%rd27], 0;
$heap_malloc_2:
    mov.u64     %rd5, %rd49;
    add.s64     %rd6, %rd5, %rd2;
    setp.lt.u64     %p4, %rd6, BEYOND;
    @%p4 bra     $heap_malloc_7;
    bra.uni     $heap_malloc_3;
$heap_malloc_7:
    atom.global.cas.b64     %rd49, [%rd27], %rd5, %rd6;
    setp.ne.s64     %p7, %rd49, %rd5;
    @%p7 bra     $heap_malloc_2;
    mov.u64     %rd44, $heap;
    add.s64     %rd45, %rd44, %rd5;
    atom.global.exch.b64     %rd46, [%rd45], %rd3;
    cvta.global.u64     %rd47, %rd44;
    add.s64     %rd48, %rd47, %rd5;
    add.s64     %rd51, %rd48, 16;
    bra.uni     $heap_malloc_9;
$heap_malloc_3:
    shl.b64     %rd28, %rd3, 3;
    add.s64     %rd30, %rd27, %rd28;
    add.s64     %rd7, %rd30, 8;
    atom.global.add.u64     %rd50, [%rd7], 0;
$heap_malloc_4:
    and.b64      %rd10, %rd50, 1099511627775;
    setp.eq.s64     %p5, %rd10, 0;
    @%p5 bra     $heap_malloc_9;
    mov.u64     %rd32, $heap;
    add.s64     %rd33, %rd32, %rd10;
    add.s64     %rd34, %rd33, 8;
    atom.global.add.u64     %rd35, [%rd34], 0;
    add.s64     %rd36, %rd50, 1099511627776;
    and.b64      %rd37, %rd36, -1099511627776;
    and.b64      %rd38, %rd35, 1099511627775;
    or.b64      %rd39, %rd38, %rd37;
    atom.global.cas.b64     %rd11, [%rd7], %rd50, %rd39;
    setp.ne.s64     %p6, %rd11, %rd50;
    mov.u64     %rd50, %rd11;
    @%p6 bra     $heap_malloc_4;
    cvta.global.u64     %rd41, %rd32;
    add.s64     %rd42, %rd41, %rd10;
    add.s64     %rd51, %rd42, 16;
$heap_malloc_9:
    st.param.b64     [func_retval0+0], %rd51;
    ret;
}
.func free(
    .param .b64 free_param_0
)
{
    .reg .pred     %p<6>;
    .reg .b64     %rd<25>;
    ld.param.u64     %rd8, [free_param_0];
    setp.eq.s64     %p1, %rd8, 0;
    @%p1 bra     $heap_free_5;
    mov.u64     %rd9, $heap;
    cvta.global.u64     %rd10, %rd9;
    sub.s64     %rd1, %rd8, %rd10;
    add.s64     %rd2, %rd1, -16;
    setp.lt.u64     %p2, %rd2, HEAP_BYTES;
    and.b64      %rd11, %rd2, 15;
    setp.eq.s64     %p3, %rd11, 0;
    and.pred      %p4, %p2, %p3;
    @%p4 bra     $heap_free_3;
    trap;
$heap_free_3:
    add.s64     %rd13, %rd9, %rd2;
    atom.global.add.u64     %rd14, [%rd13], 0;
    shl.b64     %rd15, %rd14, 3;
    mov.u64     %rd16, $heap_state;
    add.s64     %rd17, %rd16, %rd15;
    add.s64     %rd3, %rd17, 8;
    atom.global.add.u64     %rd24, [%rd3], 0;
    add.s64     %rd18, %rd9, %rd1;
    add.s64     %rd5, %rd18, -8;
$heap_free_4:
    and.b64      %rd19, %rd24, 1099511627775;
    atom.global.exch.b64     %rd20, [%rd5], %rd19;
    add.s64     %rd21, %rd24, 1099511627776;
    and.b64      %rd22, %rd21, -1099511627776;
    or.b64      %rd23, %rd22, %rd2;
    atom.global.cas.b64     %rd7, [%rd3], %rd24, %rd23;
    setp.ne.s64     %p5, %rd7, %rd24;
    mov.u64     %rd24, %rd7;
    @%p5 bra     $heap_free_4;
$heap_free_5:
    ret;
}
"""


def uses_heap(text: str) -> bool:
    """Say whether the kernels of a module in PTX allocate memory."""
    return bool(_USED.search(text))


def with_heap(text: str, heap_bytes: int) -> str:
    """Return a module in PTX with a heap of its own, if its kernels need one."""
    if not uses_heap(text):
        return text
    functions = _FUNCTIONS.replace("HEAP_BYTES", str(heap_bytes)).replace("BEYOND", str(heap_bytes + 1))
    return f"{text}\n{functions}"
