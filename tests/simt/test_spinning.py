"""Kernels whose threads wait for each other in loops: what they give, and what `kernel.check` finds there."""

import numpy as np
import pytest

import simt
from simt.common.errors import BarrierError, Timeout

RUNS = "plain", "check", "profile"


def run(body, grid, block, arrays, how="plain", head="", **options):
    """Run a kernel with arrays `a`, `b`, `c` of ints, and return what a check finds."""
    source = f"""{head}
    extern "C" __global__ void f(int* a, int* b, int* c) {{
        int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, N = gridDim.x * blockDim.x;
        {body}
    }}"""
    f = simt.RawModule(code=source).get_function("f")
    launch = f if how == "plain" else getattr(f, how)
    return launch((grid,), (block,), arrays, **options) or []


def ints(*sizes):
    return [np.zeros(size, np.int32) for size in sizes]


def clean(body, grid, block, arrays, how, head=""):
    found = run(body, grid, block, arrays, how, head)
    assert how != "check" or found == []


LOCKS = {
    "exchange": "while (atomicExch({0}, 1) != 0);",
    "compare and swap": "while (atomicCAS({0}, 0, 1) != 0);",
    "test before": "while (true) {{ if (*(volatile int*){0} == 0 && atomicCAS({0}, 0, 1) == 0) break; }}",
    "with a pause": "while (atomicCAS({0}, 0, 1) != 0) __nanosleep(20);",
}


@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("lock", LOCKS)
def test_each_thread_takes_a_lock_in_global_memory(lock, how):
    count, flag, order = ints(1, 1, 3 * 96)
    body = f"""{LOCKS[lock].format("b")}
        __threadfence();
        c[*a] = i;
        *a = *a + 1;
        __threadfence();
        atomicExch(b, 0);"""
    clean(body, 3, 96, [count, flag, order], how)
    assert count[0] == 3 * 96
    assert flag[0] == 0
    assert np.array_equal(np.sort(order), np.arange(3 * 96))


@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("lock", ["exchange", "compare and swap"])
def test_each_thread_takes_a_lock_in_shared_memory_and_meets_the_block(lock, how):
    out, unused, none = ints(2, 1, 1)
    body = f"""__shared__ int lock, n;
        if (t == 0) lock = n = 0;
        __syncthreads();
        {LOCKS[lock].format("&lock")}
        __threadfence_block();
        n += t;
        __threadfence_block();
        atomicExch(&lock, 0);
        __syncthreads();
        if (t == 0) a[blockIdx.x] = n;"""
    clean(body, 2, 96, [out, unused, none], how)
    assert out.tolist() == [96 * 95 // 2] * 2


@pytest.mark.parametrize("how", RUNS)
def test_a_ticket_lock_serves_each_thread_in_its_turn(how):
    order, lock, served = ints(3 * 128, 2, 2 * 64)
    body = """volatile int* serving = b + 1;
        for (int r = 0; r < 3; r++) {
            int mine = atomicAdd(b, 1);
            while (*serving != mine);
            __threadfence();
            a[mine] = 3 * i + r;
            __threadfence();
            *serving = mine + 1;
        }"""
    clean(body, 2, 64, [order, lock, served], how)
    assert np.array_equal(np.sort(order), np.arange(3 * 128))
    assert lock.tolist() == [384, 384]
    for thread in range(128):  # in each thread the rounds keep their order
        assert np.all(np.diff([np.flatnonzero(order == 3 * thread + r)[0] for r in range(3)]) > 0)


@pytest.mark.parametrize("how", RUNS)
def test_a_shuffle_after_a_spin_waits_for_the_lane_that_spins(how):
    out, _, __ = ints(384, 1, 1)
    body = """__shared__ volatile int ready[12];
        int w = t / 32, x = 0;
        if (t < 12) ready[t] = 0;
        __syncthreads();
        if (t % 32 == 5) {  // each warp waits for the next: the first one long
            if (w < 11) while (ready[w + 1] == 0);
            x = w < 11 ? ready[w + 1] + w : 1000;
            __threadfence_block();
            ready[w] = x;
        }
        MEET
        a[t] = __shfl_sync(~0u, x, 5);"""
    for meet in ("", "__syncwarp();", "__any_sync(~0u, x);"):
        clean(body.replace("MEET", meet), 1, 384, [out, _, __], how)
        assert out[::32].tolist() == [1000 + sum(range(w, 11)) for w in range(12)]
        assert np.array_equal(out, np.repeat(out[::32], 32))


@pytest.mark.parametrize("how", RUNS)
def test_warps_hand_data_on_by_flags(how):
    out, _, __ = ints(4 * 32, 1, 1)
    body = """__shared__ int data[32];
        __shared__ volatile int turn;
        if (t == 0) turn = 0;
        if (t < 32) data[t] = t;
        __syncthreads();
        int w = t / 32, l = t % 32;
        for (int r = 0; r < 4; r++) {
            if (l == 0) while (turn != 4 * r + 3 - w);
            __syncwarp();
            __threadfence_block();
            data[l] = 2 * data[l] + w;
            __threadfence_block();
            __syncwarp();
            if (l == 0) turn = turn + 1;
        }
        __syncthreads();
        a[t] = data[l];"""
    clean(body, 1, 128, [out, _, __], how)
    expected = np.arange(32)
    for _round in range(4):
        for warp in (3, 2, 1, 0):
            expected = 2 * expected + warp
    assert np.array_equal(out, np.tile(expected, 4))


BARRIER = """
__device__ void meet(int* count, int goal) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) { atomicAdd(count, 1); while (LOOK < goal); __threadfence(); }
    __syncthreads();
}"""


@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("look", ["atomicAdd(count, 0)", "*(volatile int*)count"])
def test_blocks_meet_at_a_barrier_made_by_hand(look, how):
    blocks, rounds = 150, 3  # more than an H200 has multiprocessors
    n = blocks * 64
    a, out, count = ints(n, rounds * n, 1)
    body = f"""for (int r = 0; r < {rounds}; r++) {{
        a[i] = 1000 * r + i;
        meet(c, (2 * r + 1) * gridDim.x);
        b[r * N + i] = a[N - 1 - i];
        meet(c, (2 * r + 2) * gridDim.x);
    }}"""
    clean(body, blocks, 64, [a, out, count], how, BARRIER.replace("LOOK", look))
    expected = 1000 * np.arange(rounds)[:, None] + np.arange(n)[::-1]
    assert np.array_equal(out.reshape(rounds, n), expected)


def test_more_blocks_than_the_gpu_holds_cannot_meet():
    blocks = 132 * 2 + 1  # of 1024 threads: two on each multiprocessor of an H200
    a, out, count = ints(1, 1, 1)
    with pytest.raises(
        BarrierError, match=r"line 5: .*265 blocks, the GPU holds 264 .*Launch at most 264"
    ) as told:
        run(
            "meet(c, gridDim.x);",
            blocks,
            1024,
            [a, out, count],
            head=BARRIER.replace("LOOK", "atomicAdd(count, 0)"),
        )
    assert told.value.finding.kind == "blocks that wait"
    assert count[0] == 264
    a, out, count = ints(1, 1, 1)
    run(
        "meet(c, gridDim.x);",
        blocks - 1,
        1024,
        [a, out, count],
        head=BARRIER.replace("LOOK", "atomicAdd(count, 0)"),
    )
    assert count[0] == 264


HANDOFF = """if (blockIdx.x == 0) {
        if (t == 0) { while (*(volatile int*)c == 0); FENCE }
        __syncthreads();
        b[t] = a[t] + 1;
    } else if (blockIdx.x == 3) {
        a[t] = t * t;
        FENCE
        __syncthreads();
        if (t == 0) *(volatile int*)c = 1;
    }"""


@pytest.mark.parametrize("how", RUNS)
def test_a_block_waits_for_a_later_one(how):
    data, out, flag = ints(64, 64, 1)
    clean(HANDOFF.replace("FENCE", "__threadfence();"), 4, 64, [data, out, flag], how)
    assert np.array_equal(out, np.arange(64) ** 2 + 1)


@pytest.mark.parametrize("how", RUNS)
def test_rounds_over_several_places_wait_for_other_blocks(how):
    out, _, __ = ints(256, 1, 1)
    body = """volatile int* left = a;
        int missing;
        do {  // each thread has two places, and each place waits for the next one
            missing = 0;
            for (int k = i; k < 256; k += N)
                if (left[k] == 0) {
                    if (k < 255 && left[k + 1] == 0)
                        missing = 1;
                    else
                        left[k] = 256 - k;
                }
        } while (missing != 0);"""
    clean(body, 2, 64, [out, _, __], how)
    assert out.tolist() == list(range(256, 0, -1))


def test_a_check_finds_the_missing_fence_of_a_handoff_between_blocks():
    found = run(HANDOFF.replace("FENCE", ""), 4, 64, ints(64, 64, 1), "check")
    assert [(each.kind, each.line, each.other_line) for each in found] == [("read after write", 7, 9)]


def test_a_check_finds_what_a_lock_does_not_guard():
    body = """while (atomicExch(b, 1) != 0);
        *a = *a + 1;
        atomicExch(b, 0);"""
    found = run(body, 1, 64, ints(1, 1, 1), "check")
    assert {each.line for each in found} == {5}
    assert {each.tool for each in found} == {"racecheck"}


@pytest.mark.parametrize("how", RUNS)
def test_blocks_scan_by_looking_back(how):
    blocks = 100
    values = np.random.default_rng(5).integers(0, 100, blocks * 32).astype(np.int32)
    out, state = ints(values.size, blocks)
    body = """volatile int* state = c;
        int block = gridDim.x - 1 - blockIdx.x, x = a[block * 32 + t];
        for (int d = 1; d < 32; d *= 2) { int y = __shfl_up_sync(~0u, x, d); if (t >= d) x += y; }
        int total = __shfl_sync(~0u, x, 31), sum = 0;
        if (t == 0) state[block] = (block == 0 ? 2 : 1) << 28 | total;
        for (int first = block - 1; block > 0; first -= 32) {
            int y;
            do { y = first - t >= 0 ? state[first - t] : 2 << 28; } while (__any_sync(~0u, y == 0));
            unsigned whole = __ballot_sync(~0u, y >> 28 == 2);
            int last = whole ? __ffs(whole) - 1 : 31, part = t <= last ? y & 0xfffffff : 0;
            for (int d = 16; d; d /= 2) part += __shfl_xor_sync(~0u, part, d);
            sum += part;
            if (whole) break;
        }
        if (t == 0) state[block] = 2 << 28 | (sum + total);
        b[block * 32 + t] = x + sum;"""
    clean(body, blocks, 32, [values, out, state], how)
    assert np.array_equal(out, np.cumsum(values))
    assert np.array_equal(state, 2 << 28 | np.cumsum(values)[31::32])


@pytest.mark.parametrize("grid", [1, 40])
def test_a_wait_for_nobody_ends_with_the_time_limit(grid):
    with pytest.raises(Timeout, match=r"line 4: .*more than 1 s .*Does its condition ever become false"):
        run("while (atomicCAS(b, 1, 1) == 0); a[0] = 1;", grid, 64, ints(1, 1, 1), timeout=1)


PROGRESS = {
    "compare and swap of what was read": """int old = *b, seen;
        do { seen = old; old = atomicCAS(b, seen, seen + t); } while (old != seen);""",
    "a queue of work": "int k; while ((k = atomicAdd(b, 1)) < 100) a[k] = k;",
    "a search for a free place": """int s = t * 7 % 128;
        while (true) {
            int old = atomicCAS(&c[s], 0, t + 1);
            if (old == 0 || old == t + 1) break;
            s = (s + 1) % 128;
        }""",
    "a counted loop": "int n = 0; for (int k = 0; k < 9; k++) n += *(volatile int*)b; a[t] = n;",
    "a loop with a barrier": """__shared__ volatile int go;
        do { __syncthreads(); if (t == 0) go = b[0]; __syncthreads(); } while (go);""",
}


@pytest.mark.parametrize("loop", PROGRESS)
def test_a_loop_that_gets_on_by_itself_is_left_alone(loop):
    source = (
        f'extern "C" __global__ void f(int* a, int* b, int* c) {{ int t = threadIdx.x; {PROGRESS[loop]} }}'
    )
    kernel = simt.RawModule(code=source).get_function("f")
    assert not [each for each in kernel.parsed.code if each.spins or each.gathers]
