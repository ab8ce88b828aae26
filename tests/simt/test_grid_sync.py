"""Barriers of a whole grid, `cg::this_grid().sync()`: what they give, and what `kernel.check` finds there."""

import numpy as np
import pytest

import simt

HEAD = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
BLOCKS, THREADS, ROUNDS = 5, 64, 3
N = BLOCKS * THREADS


def kernel(body, **options):
    """Return a kernel in which `i` is the number of the thread in the grid, and `N` that of all threads."""
    source = f"""{HEAD}
    __device__ __noinline__ void meet() {{ cg::this_grid().sync(); }}
    extern "C" __global__ void f(int* a, int* out) {{
        __shared__ int s[{THREADS}];
        cg::grid_group grid = cg::this_grid();
        int i = blockIdx.x * blockDim.x + threadIdx.x, N = gridDim.x * blockDim.x, t = threadIdx.x;
        s[t] = i;
        __syncthreads();
        {body}
        if (s[t] < 0) out[i] = 0;
    }}"""
    return simt.RawModule(code=source, **options).get_function("f")


def arrays():
    return np.zeros(N, np.int32), np.zeros((ROUNDS, N), np.int32)


def check(body):
    return kernel(body).check((BLOCKS,), (THREADS,), arrays())


FORMS = {
    "method": "grid.sync();",
    "free function": "cg::sync(grid);",
    "halves": "auto token = grid.barrier_arrive(); __syncthreads(); grid.barrier_wait(std::move(token));",
    "in a function": "meet();",
    "in branches": "if (grid.block_rank() & 1) grid.sync(); else if (grid.is_valid()) meet();",
}


@pytest.mark.parametrize("form", FORMS)
def test_each_block_sees_what_all_blocks_wrote_before_the_barrier(form):
    source = f"""for (int r = 0; r < {ROUNDS}; r++) {{
        a[i] = 1000 * r + i;
        {FORMS[form]}
        out[r * N + i] = a[N - 1 - i];
        grid.sync();
    }}"""
    if form == "halves":
        source = source.replace("std::move(token)", "static_cast<decltype(token)&&>(token)")
    f = kernel(source, enable_cooperative_groups=form == "method")
    expected = 1000 * np.arange(ROUNDS)[:, None] + np.arange(N)[::-1]
    for run in (f, f.profile, f.check):
        a, out = arrays()
        told = run((BLOCKS,), (THREADS,), (a, out))
        np.testing.assert_array_equal(out, expected)
        assert run != f.check or told == []


def test_counts_are_those_of_all_blocks():
    f = kernel("a[i] = s[t]; grid.sync(); out[i] = a[N - 1 - i];")
    profile = f.profile((BLOCKS,), (THREADS,), arrays(), blocks=2)
    assert profile.metrics["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"] == 2 * N // 32
    assert profile.metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == N // 32


def test_shared_memory_and_local_arrays_outlive_the_barrier():
    fill = "int l[8]; for (int k = 0; k < 8; k++) l[k * a[i] + k & 7] = k * i;"
    body = f"{fill} grid.sync(); out[i] = l[i & 7] + s[63 - t];"
    for run in ("__call__", "check"):
        a, out = arrays()
        assert not getattr(kernel(body), run)((BLOCKS,), (THREADS,), (a, out))
        i = np.arange(N)
        np.testing.assert_array_equal(out[0], (i & 7) * i + (i // THREADS * THREADS + 63 - i % THREADS))


@pytest.mark.parametrize(
    ("body", "ended"),
    [
        ("if (blockIdx.x == 2) return; grid.sync();", "a block of the grid has"),
        ("if (blockIdx.x > 0) grid.sync();", "a block of the grid has"),
        ("grid.sync(); if (blockIdx.x) return; a[i] = 1; grid.sync();", "4 blocks of the grid have"),
    ],
)
def test_blocks_that_wait_for_others_that_have_ended_are_a_mistake(body, ended):
    f = kernel(body)
    for run in (f, f.profile):
        with pytest.raises(simt.BarrierError, match=f"{ended} ended, and others wait here for ever"):
            run((BLOCKS,), (THREADS,), arrays())
    (finding,) = f.check((BLOCKS,), (THREADS,), arrays())
    assert (finding.tool, finding.kind) == ("synccheck", "divergent barrier")
    assert "every block of a grid must reach grid.sync()" in finding.message


def test_threads_missing_at_the_barrier_are_found():
    assert {f.kind for f in check("if (t < 32) grid.sync();")} == {"divergent barrier"}


def test_races_across_blocks_end_at_the_barrier_and_nowhere_else():
    assert check("a[i] = i; grid.sync(); out[i] = a[N - 1 - i]; grid.sync(); a[i] = 1;") == []
    between_blocks = check("grid.sync(); a[i] = i; __syncthreads(); out[i] = a[(i + blockDim.x) % N];")
    assert {finding.tool for finding in between_blocks} == {"racecheck"}
    assert all("no grid.sync() lies between them" in finding.message for finding in between_blocks)
    within = check("a[i] = i; grid.sync(); out[i] = a[N - 1 - i]; a[i] = 2;")
    assert {finding.kind for finding in within} == {"read after write", "write after read"}
    shared = check("grid.sync(); s[t] = i; out[i] = s[63 - t];")
    assert {finding.tool for finding in shared} == {"racecheck"}


def test_what_nobody_wrote_before_the_barrier_is_unwritten_after_it():
    f = kernel("out[N - 1 - i] = i; grid.sync(); a[i] = out[i];")
    a, _ = arrays()
    assert f.check((BLOCKS,), (THREADS,), (a, simt.empty(N, np.int32))) == []
    f = kernel("grid.sync(); a[i] = out[i];")
    (finding,) = f.check((BLOCKS,), (THREADS,), (a, simt.empty(N, np.int32)))
    assert finding.tool == "initcheck"


def test_a_grid_that_a_gpu_does_not_hold_at_once_is_refused():
    f = kernel("grid.sync();")
    most = 132 * 32  # multiprocessors of an H200, and blocks on each
    a = out = np.zeros((most + 1) * THREADS, np.int32)
    with pytest.raises(
        simt.LaunchError, match=rf"launch has {most + 1}, and an H200 holds {most}: 132 mult.*"
    ):
        f((most + 1,), (THREADS,), (a, out))
    plain = kernel("a[i] = i;", enable_cooperative_groups=True)
    with pytest.raises(simt.LaunchError, match="must be on the GPU at once"):
        plain((most + 1,), (THREADS,), (a, out))
