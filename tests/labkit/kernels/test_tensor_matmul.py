"""Products for tensor cores: types, right results, and a bound that right sums keep and wrong ones break."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt
from labkit import kernels, ladder, records
from labkit.kernels.tensor_matmul.family import TensorMatmul
from labkit.kernels.verify import check
from labkit.model.roofline import count_sectors
from simt.common.bits import as_cupy_bits, from_bits
from simt.common.compare import Mismatch, unwritten

DTYPES = {
    "float16": (np.dtype(np.float16), np.dtype(np.float16)),
    "bfloat16": (np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.bfloat16)),
    "tf32": (np.dtype(np.float32), np.dtype(np.float32)),
    "fp8": (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(np.float16)),
}
KEPT_BITS = {"float16": 23, "bfloat16": 23, "tf32": 23, "fp8": 13}  # of a sum, below its largest addend


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_have_the_types_of_the_kernel(dtype):
    case = TensorMatmul(3, 5, 7, dtype, alpha=2, beta=-1)
    operand, result = DTYPES[dtype]
    *arrays, m, n, k, alpha, beta = case.args(np)
    assert [array.dtype for array in arrays] == [operand, operand, result]
    assert [array.shape for array in arrays] == [(3, 7), (5, 7), (3, 5)]
    assert (m, n, k, alpha, beta) == (3, 5, 7, 2, -1) and alpha.dtype == beta.dtype == np.float32
    assert all((abs(array.astype(float)) <= 1).all() for array in arrays)
    sizes = [21 * operand.itemsize, 35 * operand.itemsize, 15 * result.itemsize]
    assert list(case.array_bytes().values()) == sizes
    assert case.bytes == sum(sizes) + sizes[-1]  # beta is not 0: C is read, too
    assert case.flops == 2 * 3 * 5 * 7


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_output_that_nobody_reads_is_full_of_signalling_nan(dtype):
    case = TensorMatmul(4, 4, 4, dtype)
    old = case.output(case.inputs())
    with np.errstate(invalid="ignore"):
        assert np.isnan(old).all()
    with pytest.raises(Mismatch, match=r"16 of 16 .*Nothing has changed: is the output written"):
        case.verify(old)
    bits = as_cupy_bits(unwritten((1,), old.dtype.name)).view(f"u{old.itemsize}")
    fraction = ml_dtypes.finfo(old.dtype).nmant
    assert not bits[0] >> (fraction - 1) & 1  # quiet NaN have this bit set (IEEE 754-2019, 6.2.1)


def test_tf32_elements_have_no_more_bits():
    a, b, _ = TensorMatmul(9, 9, 9, "tf32").inputs()
    assert not (np.concatenate([a, b]).view(np.uint32) & 0x1FFF).any()
    assert len(np.unique(a)) == a.size


def test_numbers_and_their_bits():
    """CuPy gets bits, and whoever compares gets numbers."""
    values = np.array([0.5, -3, 240], ml_dtypes.float8_e4m3fn)
    bits = as_cupy_bits(values)
    assert bits.dtype == np.uint8 and bits.tolist() == [0x30, 0xC4, 0x77]
    np.testing.assert_array_equal(from_bits(bits, values.dtype).astype(float), [0.5, -3, 240])
    halves = np.ones(3, np.float16)
    assert as_cupy_bits(halves) is halves and from_bits(halves, halves.dtype) is halves


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_output_may_come_as_bits(dtype):
    case = TensorMatmul(6, 5, 4, dtype, alpha=3, beta=-2)
    case.verify(as_cupy_bits(case.reference().astype(DTYPES[dtype][1])))
    with pytest.raises(ValueError, match=rf"C is float64 \(6, 5\); it should be {DTYPES[dtype][1]} \(6, 5\)"):
        case.verify(case.reference())


def summed(a, b, at_once, kept_bits):
    """Sums of products as tensor cores make them: some at a time, cut off below the largest addend.

    Fasi et al., Numerical behavior of NVIDIA tensor cores, 2021: no addend is rounded, and neither is a sum.
    """
    sums = np.zeros((len(a), len(b)))
    for k in range(0, a.shape[1], at_once):
        products = a[:, None, k : k + at_once] * b[None, :, k : k + at_once]
        addends = np.concatenate([sums[..., None], products], -1)
        largest = np.frexp(abs(addends).max(-1, keepdims=True))[1] - 1
        place = 2.0 ** (largest - kept_bits)
        sums = cut(np.trunc(addends / place).sum(-1) * place[..., 0], 24)
    return sums


def cut(numbers, bits):
    """Numbers without what is below their first bits."""
    place = 2.0 ** (np.frexp(numbers)[1] - bits)
    return np.trunc(numbers / place) * place


@settings(max_examples=80, deadline=None)
@given(
    dtype=st.sampled_from(sorted(DTYPES)),
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 400)),
    at_once=st.sampled_from([4, 8, 16, 32]),
    beta=st.sampled_from([0, -2]),
    seed=st.integers(0, 99),
)
def test_sums_of_tensor_cores_are_within_the_bound(dtype, shape, at_once, beta, seed):
    case = TensorMatmul(*shape, dtype, alpha=3, beta=beta, seed=seed)
    a, b, c = case.inputs()
    operands = a.astype(np.float64), b.astype(np.float64)
    sums = summed(*operands, at_once, KEPT_BITS[dtype]).astype(np.float32)
    scaled = np.float32(3) * sums + (np.float32(beta) * c.astype(np.float32) if beta else np.float32(0))
    case.verify(scaled.astype(DTYPES[dtype][1]))


@settings(max_examples=40, deadline=None)
@given(
    dtype=st.sampled_from(sorted(DTYPES)),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 300)),
    seed=st.integers(0, 99),
)
def test_sums_in_another_order_are_within_the_bound(dtype, shape, seed):
    """One by one from the end, and in two halves, as where blocks share K."""
    case = TensorMatmul(*shape, dtype, seed=seed)
    a, b, _ = (array.astype(np.float32) for array in case.inputs())
    one_by_one = np.zeros(case.shapes()["C"], np.float32)
    for k in reversed(range(case.K)):
        one_by_one += a[:, k, None] * b[None, :, k]
    half = case.K // 2
    for found in (one_by_one, a[:, :half] @ b[:, :half].T + a[:, half:] @ b[:, half:].T):
        case.verify(found.astype(DTYPES[dtype][1]))


@pytest.mark.parametrize("k", [67, 512])
@pytest.mark.parametrize("dtype", DTYPES)
def test_mistakes_are_beyond_the_bound(dtype, k):
    case = TensorMatmul(45, 29, k, dtype, alpha=3, beta=-2)
    a, b, c = (array.astype(np.float64) for array in case.inputs())
    wrong = {
        "one term short": 3 * (a[:, :-1] @ b[:, :-1].T) - 2 * c,
        "without C": 3 * (a @ b.T),
        "without alpha": a @ b.T - 2 * c,
        "beta as alpha": 3 * (a @ b.T) + 3 * c,
        "a row too far": 3 * (np.roll(a, 1, 0) @ b.T) - 2 * c,
        "one element wrong": case.reference() + 0.2 * (np.indices(c.shape).sum(0) == 50),
    }
    for mistake, result in wrong.items():
        with pytest.raises(Mismatch):
            case.verify(result.astype(DTYPES[dtype][1]))
            pytest.fail(mistake)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_in_the_type_of_the_elements_are_beyond_the_bound(dtype):
    case = TensorMatmul(32, 32, 256, dtype)
    a, b, _ = case.inputs()
    sums = np.zeros((32, 32), a.dtype)
    for k in range(case.K):
        sums += a[:, k, None] * b[None, :, k]
    with pytest.raises(Mismatch):
        case.verify(sums)


def test_sums_of_fp8_are_exact_in_14_bits_at_the_sizes_that_are_timed():
    """Sums of 2^13 products, multiples of 1/16, stay below 2^9: then 1/32 is the least of 14 bits."""
    case = TensorMatmul(256, 256, 8192, "fp8")
    a, b, _ = (array.astype(np.float64) for array in case.inputs())
    partial = np.zeros((256, 256))
    for k in range(0, case.K, 32):
        partial += a[:, k : k + 32] @ b[:, k : k + 32].T
        assert abs(partial).max() < 2**9
    np.testing.assert_array_equal(summed(a[:8], b[:8], 32, 13), a[:8] @ b[:8].T)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "float32"}, "'float32' is not supported. Choose one of float16, bfloat16, tf32, fp8"),
        ({"alpha": float("inf")}, "alpha=inf does not fit float32"),
        ({"beta": 1e39}, r"beta=1e\+39 does not fit float32"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(ValueError, match=message):
        TensorMatmul(4, 4, 4, **settings)


def test_a_row_of_a_table_and_its_problem():
    case = ladder.case("wmma", TensorMatmul(33, 20, 17, "bfloat16"))
    rows = ladder.time_rung("wmma", case.problem)
    assert set(rows.dtype) == {"bfloat16"} and set(rows.problem) == {"tensor_matmul"}
    assert rows[rows.quantity == "time"].value.gt(0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_ladder_has_the_rungs_that_take_the_type(dtype):
    rungs = [each.rung for each in ladder.cases(TensorMatmul(64, 64, 64, dtype))]
    assert rungs[0] == "cublas"
    assert ("wmma" in rungs) == (dtype != "fp8")  # nvcuda::wmma has no fp8


def test_the_ladder_leaves_out_what_a_gpu_lacks(monkeypatch):
    from labkit.devices.select import Device

    turing = Device("gpu", "Tesla T4", compute_capability="7.5")
    monkeypatch.setattr("labkit.ladder.running.device", lambda: turing)
    assert [each.rung for each in ladder.cases(TensorMatmul(64, 64, 64, "bfloat16"))] == ["cublas"]


def test_nothing_is_recorded_yet_or_every_time_is_of_a_rung():
    known = {"cublas", *ladder.rungs("tensor_matmul")}
    found = ladder.recorded(TensorMatmul(4096, 4096, 4096))
    assert set(found.kernel) <= known and set(found.columns) == set(records.recorded("h200").columns)


def test_sectors_are_counted():
    counts = count_sectors(["wmma"], TensorMatmul(128, 128, 64))
    assert set(counts.problem) == {"tensor_matmul"} and (counts.value > 0).all()


NAIVE = """#include <cuda_bf16.h>
extern "C" __global__ void tensor_matmul(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C,
                                         int M, int N, int K, float alpha, float beta)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N)
        return;
    float sum = 0;
    for (int k = 0; k < K; ++k)
        sum += float(A[row * K + k]) * float(B[col * K + k]);
    float old = beta != 0 ? beta * float(C[row * N + col]) : 0;
    C[row * N + col] = __nv_bfloat16(alpha * sum + old);
}"""


def test_a_students_kernel_is_checked():
    kernel = simt.RawModule(code=NAIVE).get_function("tensor_matmul")
    assert check(kernel, "tensor_matmul", dtype="bfloat16").ok
    case = TensorMatmul(33, 20, 17, "bfloat16")
    assert kernel.check(*case.launch(16), case.args(np)) == []
    (found,) = kernel.check(*case.launch(16), TensorMatmul(33, 20, 17, "float16").args(np))[:1]
    assert "the bits of float16 are nonsense as bfloat16. Pass an array of ml_dtypes.bfloat16" in str(found)


def test_a_students_mistake_is_told():
    unscaled = simt.RawModule(code=NAIVE.replace("alpha * sum + old", "sum")).get_function("tensor_matmul")
    verdict = check(unscaled, "tensor_matmul", dtype="bfloat16")
    assert "It is right only where alpha is 1 and beta is 0" in str(verdict)


SPLIT = {"TILE_M": 64, "TILE_N": 64, "STAGES": 2, "SMS": 8}  # four clusters, which share the last tiles


@pytest.mark.parametrize(
    ("sizes", "dtype"), [*(((64, 64, 4096), each) for each in DTYPES), ((260, 136, 1680), "float16")]
)
def test_clusters_that_share_a_tile(sizes, dtype):
    """One tile of which each cluster multiplies a part; and tiles of which some are split."""
    case, name = TensorMatmul(*sizes, dtype, alpha=3, beta=-2), "tensor_matmul/9_stream_k"
    kernel = kernels.load(name, DTYPE=case.ctype, **SPLIT)
    for _ in range(2):  # the first launch leaves the signs between clusters as it found them
        arguments = case.args(np)
        grid, block, args, shared_bytes = kernels.whole_launch(name, case, arguments, **SPLIT)
        kernel(grid, block, args, shared_mem=shared_bytes, timeout=60)
        case.verify(case.output(arguments))
    assert kernel.check(grid, block, args, shared_mem=shared_bytes, timeout=60) == []


@pytest.mark.parametrize("tile_n", [64, 128, 192, 256])
def test_each_width_of_a_tile(tile_n):
    case, name = TensorMatmul(136, 400, 208, alpha=3, beta=-2), "tensor_matmul/8_tma_store"
    macros = {"TILE_M": 64, "TILE_N": tile_n, "STAGES": 2, "SMS": 4}
    arguments = case.args(np)
    grid, block, args, shared_bytes = kernels.whole_launch(name, case, arguments, **macros)
    kernel = kernels.load(name, DTYPE=case.ctype, **macros)
    assert kernel.check(grid, block, args, shared_mem=shared_bytes, timeout=60) == []
    case.verify(case.output(arguments))


DEAL = """
extern "C" __global__ void deal(int* out, int clusters, int tiles, int steps, int most)
{
    for (int turn = 0; turn < most; ++turn) {
        Work work = work_of(turn, blockIdx.x, clusters, tiles, steps);
        int* to = &out[(blockIdx.x * most + turn) * 3];
        to[0] = work.tile, to[1] = work.begin, to[2] = work.end;
    }
}"""


@settings(max_examples=12, deadline=None)
@given(
    clusters=st.integers(1, 140),
    tiles=st.integers(1, 600),
    steps=st.sampled_from([1, 3, 15, 16, 33, 64, 257]),
)
def test_the_deal_of_steps(clusters, tiles, steps):
    """Each step is dealt once; sums go to the next cluster, once per cluster; shares are even."""
    module = simt.RawModule(code=kernels.source_with_includes("tensor_matmul/9_stream_k") + DEAL)
    most = tiles // clusters + 3
    out = np.full((clusters, most, 3), -1, np.int32)
    scalars = map(np.int32, (clusters, tiles, steps, most))
    module.get_function("deal")((clusters,), (1,), (out, *scalars))
    work = [(c, *out[c, turn]) for c in range(clusters) for turn in range(most)]
    pieces = [(tile, begin, end, c) for c, tile, begin, end in work if begin < end]
    pieces.sort()
    at, previous = (0, 0), -1
    for tile, begin, end, cluster in pieces:
        assert (tile, begin) == at and end <= steps
        assert begin == 0 or cluster == previous + 1
        at, previous = ((tile + 1, 0) if end == steps else (tile, end)), cluster
    assert at == (tiles, 0)
    handing = [cluster for _, _, end, cluster in pieces if end < steps]
    assert len(handing) == len(set(handing))
    shares = [sum(end - begin for *_, begin, end, c in pieces if c == each) for each in range(clusters)]
    evenly = -(-tiles * steps // clusters)
    assert max(shares) < max(evenly + 16 + 1, 32)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(128, 128, 128), (1000, 1008, 528)])
def test_every_rung_and_cublas_on_a_gpu(gpu, sizes, dtype):
    found = dict(ladder.measure(ladder.cases(TensorMatmul(*sizes, dtype))))
    assert not [wrong for wrong in found.values() if isinstance(wrong, Exception)]
