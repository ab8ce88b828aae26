"""Problems: inputs, references, error bounds and the messages of wrong results and wrong sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import _solved, problem
from labkit.kernels.transpose.family import Transpose
from simt.common import memory
from simt.common.compare import Mismatch
from simt.common.errors import LaunchError, OutOfMemory

DTYPES = ["float32", "float64", "int32"]
sizes = st.integers(1, 24)
few = settings(max_examples=40, deadline=None)


def triple_loop(p: Matmul) -> np.ndarray:
    """C by the textbook's three loops, each operation rounded to the dtype."""
    a, b, c = p.inputs()
    *_, alpha, beta = p.scalars()
    result = np.empty((p.M, p.N), p.dtype)
    for i in range(p.M):
        for j in range(p.N):
            total = np.zeros((), p.dtype)[()]
            for k in range(p.K):
                total += a[i, k] * b[k, j]
            result[i, j] = alpha * total + beta * c[i, j] if beta else alpha * total
    return result


@few
@given(sizes, sizes, st.integers(1, 60), st.sampled_from(DTYPES), st.integers(-3, 3), st.integers(-3, 3))
def test_triple_loop_is_within_tolerance(m, n, k, dtype, alpha, beta):
    p = problem("matmul", m, n, k, dtype=dtype, alpha=alpha, beta=beta, seed=m + n)
    p.verify(triple_loop(p))


@few
@given(sizes, sizes, st.sampled_from(DTYPES), st.integers(0, 9))
def test_transpose_of_numpy_is_exact(rows, cols, dtype, seed):
    p = problem("transpose", rows, cols, dtype=dtype, seed=seed)
    got = p.inputs()[0].T.copy()
    p.verify(got)
    got[-1, -1] = -got[-1, -1] + 1
    with pytest.raises(Mismatch) as raised:
        p.verify(got)
    assert raised.value.index == (cols - 1, rows - 1)
    assert (raised.value.wrong, raised.value.total) == (1, rows * cols)


@few
@given(st.integers(1, 1024), st.sampled_from(["float32", "float64"]), st.data())
def test_tolerance_catches_one_term(k, dtype, data):
    """A sum with one term left out: any term that is at least of average size (1/4) is missed."""
    p = problem("matmul", 2, 3, k, dtype=dtype, seed=k)
    a, b, _ = p.inputs()
    term = np.abs(a[1] * b[:, 2]).argmax() if k < 8 else data.draw(st.integers(0, k - 1))
    got = p.reference().astype(dtype)
    got[1, 2] -= a[1, term] * b[term, 2]
    if abs(a[1, term] * b[term, 2]) >= 0.25:
        with pytest.raises(Mismatch, match=r"C\[1, 2\] .* 1 of 6 elements is wrong"):
            p.verify(got)


def test_tolerance_is_the_bound_of_higham():
    """The formula by hand for one sum of three terms: A = all 1, B = all 1 would give |A||B| = 3."""
    p = problem("matmul", 1, 1, 3, alpha=2, beta=-1)
    a, b, c = (array.astype(np.float64) for array in p.inputs())
    magnitude = 2 * sum(abs(a[0, k]) * abs(b[k, 0]) for k in range(3)) + abs(c[0, 0])
    u, v = 2.0**-24, 2.0**-53
    expected = (5 * u / (1 - 5 * u) + 5 * v / (1 - 5 * v)) * magnitude
    np.testing.assert_allclose(p.tolerance(), [[expected]], rtol=1e-12)


def rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """Floats with `bits` significant bits, ties away from zero, as in the PTX instruction cvt.rna.tf32."""
    drop = 24 - bits
    words = values.view(np.uint32) + np.uint32(1 << drop - 1)
    return (words & np.uint32(0xFFFF_FFFF << drop & 0xFFFF_FFFF)).view(np.float32)


@few
@given(st.integers(1, 24), st.integers(1, 24), st.integers(1, 200), st.integers(0, 3), st.integers(0, 99))
def test_products_of_rounded_inputs_have_a_tolerance(m, n, k, beta, seed):
    p = problem("matmul", m, n, k, alpha=3, beta=beta, seed=seed)
    a, b, c = p.inputs()
    start = np.zeros_like(c) if beta == 0 else beta * c
    as_half = [matrix.astype(np.float16).astype(np.float32) for matrix in (a, b)]
    as_tf32 = [rounded(matrix, 11) for matrix in (a, b)]
    for left, right in (as_half, as_tf32):
        p.verify(3 * (left @ right) + start, unit_of_inputs=2**-11)


def test_half_has_fewer_digits_near_zero():
    p = problem("matmul", 300, 300, 1)
    a, b, _ = p.inputs()
    smallest = abs(a).min()
    assert smallest < 2**-14, "else the seed is one that shows nothing"
    p.verify(a.astype(np.float16).astype(np.float32) @ b, unit_of_inputs=2**-11)


def test_coarser_inputs_are_beyond_that_tolerance():
    """bfloat16 has 8 significant bits. Its usual error at K = 16 is above the bound for 11."""
    p = problem("matmul", 64, 64, 16)
    a, b, _ = p.inputs()
    with pytest.raises(Mismatch):
        p.verify(rounded(a, 8) @ rounded(b, 8), unit_of_inputs=2**-11)
    with pytest.raises(Mismatch):
        p.verify(rounded(a, 11) @ rounded(b, 11))


def test_a_reference_is_worked_out_once():
    p, other = problem("matmul", 20, 21, 22), problem("matmul", 20, 21, 22, seed=1)
    _solved.cache_clear()
    for each in (p, p, problem("matmul", 20, 21, 22), other):
        each.verify(each.reference().astype(np.float32))
    assert (_solved.cache_info().hits, _solved.cache_info().misses) == (2, 2)
    with pytest.raises(Mismatch):
        other.verify(p.reference().astype(np.float32))


def test_arrays_beyond_memory_are_refused_with_the_sum(monkeypatch, tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       16000000 kB\nMemFree: 1000 kB\nMemAvailable:    8000000 kB\n")
    monkeypatch.setattr(memory, "PROC", tmp_path)
    monkeypatch.setattr(memory, "SYS", tmp_path / "sys")
    monkeypatch.setattr(Matmul, "inputs", lambda _: pytest.fail("arrays were made"))
    # 4 bytes x (2 x 30000 x 30000 + 30000 x 20000), and A once more as random numbers of 8 bytes
    with pytest.raises(OutOfMemory) as raised:
        problem("matmul", 30000, 20000, 30000).args(np)
    assert str(raised.value) == (
        "A (30000, 30000), B (30000, 20000) and C (30000, 20000) of float32, as they are made, take 15.6 GB "
        "together; this machine has 8.19 GB of memory free of 16.4 GB. Choose smaller sizes."
    )
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("3000000000\n")
    with pytest.raises(OutOfMemory, match="this container has 3 GB of memory free of 3 GB"):
        problem("matmul", 30000, 20000, 30000).args(np)


def test_arrays_that_fit_are_made_where_memory_is_unknown(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "PROC", tmp_path / "missing")
    assert problem("transpose", 3, 4).args(np)[0].shape == (3, 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reference_agrees_with_exact_fractions(dtype):
    from fractions import Fraction

    p = problem("matmul", 2, 2, 40, dtype=dtype, alpha=3, beta=-2, seed=5)
    a, b, c = p.inputs()
    for i, j in np.ndindex(2, 2):
        terms = [Fraction(a[i, k].item()) * Fraction(b[k, j].item()) for k in range(40)]
        exact = 3 * sum(terms) - 2 * Fraction(c[i, j].item())
        error = abs(Fraction(p.reference()[i, j].item()) - exact)
        assert error <= Fraction(p.tolerance()[i, j].item())
        if dtype != "float64":  # and float32's reference is far better than float32's tolerance
            assert error <= Fraction(p.tolerance()[i, j].item()) / 10**6


def test_inputs_come_from_the_seed():
    first, again, other = (problem("matmul", 5, 6, 7, seed=seed).inputs() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])
    assert [array.shape for array in first] == [(5, 7), (7, 6), (5, 6)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_args_have_the_kernels_types(dtype):
    p = problem("matmul", 2, 3, 4, dtype=dtype, alpha=2, beta=0)
    args = p.args(np)
    assert [argument.dtype.name for argument in args] == [dtype] * 3 + ["int32"] * 3 + [dtype] * 2
    assert [argument.item() for argument in args[3:]] == [2, 3, 4, 2, 0]
    assert p.output(args) is args[2]
    unread = p.output(args)
    assert (unread == -(2**31)).all() if dtype == "int32" else np.isnan(unread).all()


def test_int32_inputs_respect_the_stated_bound():
    a, b, c = problem("matmul", 50, 50, 50, dtype="int32", beta=1).inputs()
    assert all(abs(array).max() == 8 for array in (a, b, c))
    problem("matmul", 1, 1, (2**31 - 1) // 64, dtype="int32")
    with pytest.raises(ValueError, match="sums of up to 2147483648; int32 ends at 2147483647"):
        problem("matmul", 1, 1, 2**31 // 64, dtype="int32")


def test_flops_bytes_and_rates():
    p = problem("matmul", 100, 200, 300)
    assert p.flops == 12_000_000
    assert p.bytes == 4 * (30_000 + 60_000 + 20_000)
    assert problem("matmul", 100, 200, 300, beta=1, dtype="float64").bytes == 8 * 130_000
    assert p.gflops(1e-3) == pytest.approx(12.0)
    assert p.gbytes_per_s(1e-3) == pytest.approx(0.44)
    t = problem("transpose", 2048, 2048, dtype="int32")
    assert (t.flops, t.bytes) == (0, 2 * 2048 * 2048 * 4)


def test_launch_covers_the_output():
    assert problem("matmul", 45, 29, 67).launch(16) == ((2, 3), (16, 16))
    assert problem("transpose", 33, 100).launch(32, rows=8) == ((4, 2), (32, 8))
    assert problem("transpose", 1, 1).launch(1) == ((1, 1), (1, 1))


@pytest.mark.parametrize(
    ("tile", "rows", "message"),
    [
        (33, None, r"block \(33, 33\) has 1089 threads; a block holds at most 1024\. Choose TILE ≤ 32\."),
        (64, 32, r"block \(64, 32\) has 2048 threads; .* Choose TILE × ROWS ≤ 1024\."),
        (32, 5, r"TILE=32 is not a multiple of ROWS=5; .* Choose ROWS from 1, 2, 4, 8, 16, 32\."),
    ],
)
def test_launch_refuses_impossible_blocks(tile, rows, message):
    with pytest.raises(LaunchError, match=message):
        problem("transpose", 100, 100).launch(tile, rows)


def test_launch_refuses_too_tall_a_grid():
    with pytest.raises(
        LaunchError, match=r"65536 blocks in y; a grid holds at most 65535 there. Choose TILE ≥ 2"
    ):
        problem("transpose", 65536, 1).launch(1)
    with pytest.raises(ValueError, match="TILE=0 is not a size"):
        problem("transpose", 1, 1).launch(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: problem("conv", 1), "no problem 'conv'. Choose one of matmul, .*transpose"),
        (lambda: problem("matmul", 0, 1, 1), "M=0 is not a size. Choose a whole number of at least 1"),
        (lambda: problem("matmul", 1, 2.5, 1), "N=2.5 is not a size"),
        (lambda: problem("transpose", 1, -3), "cols=-3 is not a size"),
        (
            lambda: problem("matmul", 1, 1, 1, dtype="float16"),
            "'float16' is not supported. Choose one of float32",
        ),
        (lambda: problem("transpose", 2**16, 2**15), "2147483648 elements; .* ends at 2147483647"),
        (lambda: problem("matmul", 1, 1, 2**31 - 16), "2147483632 elements; .* up to 4096 beyond the edge"),
        (lambda: problem("matmul", 1, 1, 1, alpha=float("nan")), "alpha=nan does not fit float32"),
        (lambda: problem("matmul", 1, 1, 1, beta=1e39), "beta=1e[+]39 does not fit float32"),
        (lambda: problem("matmul", 1, 1, 1, dtype="int32", beta=0.5), "beta=0.5 is not a whole number"),
    ],
)
def test_wrong_sizes_and_types_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("dtype", DTYPES)
def test_mismatch_tells_an_untouched_output(dtype):
    p = problem("matmul", 4, 5, 6, dtype=dtype)
    got = p.output(p.args(np))
    with pytest.raises(Mismatch, match=r"20 of 20 .*Nothing has changed: is the output written"):
        p.verify(got)
    got[:3] = p.reference()[:3]
    with pytest.raises(Mismatch, match=r"C\[3, 0\] .*5 of 20 .*5 elements have not changed"):
        p.verify(got)


def test_mismatch_tells_computed_nan_from_unwritten():
    p = problem("matmul", 4, 5, 6)
    got = p.output(p.args(np))
    with np.errstate(invalid="ignore"):
        got += got  # as a kernel that reads what it must not read
    with pytest.raises(Mismatch, match="The kernel has written NaN to"):
        p.verify(got)


def test_mismatch_tells_a_transposed_result():
    p = problem("transpose", 3, 4)
    with pytest.raises(Mismatch, match="It is the transpose of the right output"):
        p.verify(p.inputs()[0].reshape(4, 3))


def test_mismatch_holds_what_the_message_says():
    p = Transpose(2, 3, dtype="int32")
    got = p.reference().copy()
    got[1, 1] += 1
    with pytest.raises(Mismatch) as raised:
        p.verify(got)
    wrong = raised.value
    assert (wrong.index, wrong.got, wrong.expected) == ((1, 1), got[1, 1], got[1, 1] - 1)
    assert str(wrong) == f"out[1, 1] is {got[1, 1]}; it should be {got[1, 1] - 1}. 1 of 6 elements is wrong."


def test_verify_refuses_another_shape_or_dtype():
    p = problem("matmul", 2, 3, 4)
    with pytest.raises(ValueError, match=r"C is float64 \(2, 3\); it should be float32 \(2, 3\)"):
        p.verify(p.reference())
    with pytest.raises(ValueError, match=r"C is float32 \(3, 2\); it should be"):
        p.verify(np.zeros((3, 2), np.float32))
