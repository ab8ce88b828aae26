"""Checks of kernels: right ones pass, and each usual mistake is named."""

import numpy as np
import pytest

import simt
from labkit import kernels
from labkit.figures.source_costs import profile
from labkit.kernels import verify
from labkit.kernels.problem import problem
from labkit.kernels.verify import check

TILED = kernels.source("matmul/2_tiled")


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def changed(old, new, name="matmul/2_tiled"):
    """The kernel of the course with a mistake in it."""
    source = kernels.source(name)
    assert source.count(old) == 1
    return simt.RawModule(code=source.replace(old, new)).get_function(name.partition("/")[0])


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_the_courses_kernels_are_right(dtype):
    """Return those with one thread per element, or with ROWS: a student launches them by `Problem.launch`."""
    ctype = problem("transpose", 1, 1, dtype=dtype).ctype
    for name in ("1_naive", "1_naive_uncoalesced", "2_tiled", "3_tiled_unrolled"):
        kernel = kernels.load(f"matmul/{name}", DTYPE=ctype, TILE=16)
        assert check(kernel, tile=16, dtype=dtype).ok, name
    for name in ("1_naive", "2_shared", "3_padded", "3_swizzled", "4_unrolled"):
        rows = 8 if name == "4_unrolled" else None
        kernel = kernels.load(f"transpose/{name}", DTYPE=ctype, TILE=32)
        assert check(kernel, "transpose", 32, dtype, rows=rows).ok, name


def test_a_right_verdict_lists_its_cases():
    verdict = check(kernels.load("transpose/1_naive"), "transpose", sizes=[(2, 3), (4, 5)])
    assert repr(verdict).splitlines() == [
        "Right: all 2 cases.",
        "  right    transpose rows=2 cols=3 float32",
        "  right    transpose rows=4 cols=5 float32",
    ]


def test_default_sizes_are_those_that_trip():
    cases = check(kernels.load("matmul/1_naive")).cases
    sizes = [(case.problem.M, case.problem.N, case.problem.K) for case in cases]
    assert sizes[:3] == [(1,) * 3, (31,) * 3, (33,) * 3]
    assert any(len(set(size)) == 3 for size in sizes)
    assert any(case.problem.beta for case in cases)
    assert not all(case.problem.beta for case in cases)


def test_a_kernel_for_whole_tiles_only():
    kernel = changed("row >= M || col >= N", "(row | 15) >= M || (col | 15) >= N")
    text = repr(check(kernel))
    assert text.startswith("WRONG: 4 of 5 cases.")
    assert "It is right only where 16 divides all sizes: look at the guards at the edges." in text


def test_a_forgotten_beta():
    verdict = check(changed("beta != 0", "false"))
    assert [case.state for case in verdict.cases] == ["right", "WRONG", "right", "WRONG", "right"]
    assert "right only where alpha is 1 and beta is 0" in repr(verdict)


def test_reading_c_though_beta_is_zero():
    text = repr(check(changed("beta != 0", "true")))
    assert "C[0, 0] is nan" in text
    assert "wrong only where beta is 0" in text


def test_a_kernel_that_writes_nothing():
    text = repr(check(changed("C[row * N + col] = result;", "")))
    assert "1 of 1 elements is wrong. Nothing has changed: is the output written?" in text


def test_a_missing_barrier_is_wrong():
    old = "__syncthreads();  // the tiles are complete before anyone reads them"
    verdict = check(changed(old, ""))
    assert not verdict.ok


def test_exchanged_rows_and_columns():
    text = repr(check(kernels.load("transpose/0_copy"), "transpose", sizes=[(33, 33)]))
    assert "It is the transpose of the right output" in text


def test_an_access_out_of_bounds_ends_the_check():
    verdict = check(changed("row < M && k0 + x < K ? A", "true ? A"))
    assert [case.state for case in verdict.cases] == ["WRONG"] + ["not run"] * 4
    assert not verdict.ok
    line = 1 + TILED[: TILED.index("A_tile[y][x] =")].count("\n")
    assert f"line {line}" in verdict.cases[0].message
    assert verdict.cases[0].message in repr(verdict)


def test_an_impossible_block_is_a_failure_with_its_sentence():
    verdict = check(kernels.load("matmul/1_naive"), tile=33)
    assert "block (33, 33) has 1089 threads; a block holds at most 1024. Choose TILE ≤ 32." in repr(verdict)


def test_an_endless_loop_ends(monkeypatch):
    monkeypatch.setattr(verify, "TIMEOUT", 0.3)
    verdict = check(changed("++k", "k += 0", "matmul/1_naive"))
    assert [case.state for case in verdict.cases] == ["WRONG"] + ["not run"] * 4


def test_an_unknown_problem_is_named():
    with pytest.raises(ValueError, match=r"no problem 'conv'\. Choose one of matmul, .*transpose"):
        check(kernels.load("matmul/1_naive"), "conv")


def test_profile_counts_one_launch():
    counted = profile(kernels.load("transpose/0_copy"), problem("transpose", 64, 64), 32)
    assert counted.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 64 * 64 * 4 / 32
    sample = profile(kernels.load("transpose/0_copy"), problem("transpose", 64, 64), 32, blocks=1)
    assert sample.metrics == counted.metrics
    assert "1 of 4 blocks" in sample.label
    assert np.isfinite(list(counted.metrics.values())).all()
