"""The kernels of the course in the simulator: right for every dtype and shape, and as costly as they say."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_kernels import PARAMETERS, small

from labkit import kernels
from labkit.kernels.problem import problem
from simt.common.errors import CompileError, LaunchError
from simt.compiler.nvrtc import compile_ptx

MATMUL = [name for name in kernels.names("matmul") if name not in ("matmul/0_peak", "matmul/tensor_cores")]
TRANSPOSE = [name for name in kernels.names("transpose") if name != "transpose/0_copy"]
EVERY = [name for family in ("matmul", "tensor_matmul", "transpose") for name in kernels.names(family)]
DTYPES = ["float32", "int32", "float64"]
MOVED = [*DTYPES, "float16"]  # by transposes, which compute nothing


def with_dtypes(names, dtypes=DTYPES):
    """Each name with each dtype that its source can have."""
    return [
        (name, dtype)
        for name in names
        for dtype in dtypes
        if dtype == "float32" or "DTYPE" in kernels.parameters(name)
    ]


def with_parameters(names):
    """Each name with each of its PARAMETERS."""
    return [(name, parameters) for name in names for parameters in PARAMETERS.get(name, [{}])]


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def run(name, case, **parameters):
    """Output of one launch."""
    args = case.args(np)
    kernel = kernels.load(name, DTYPE=case.ctype, **parameters)
    kernel(*kernels.launch(name, case, **parameters), args)
    return case.output(args)


@pytest.mark.parametrize(("name", "dtype"), with_dtypes(MATMUL))
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (17, 31, 33), (33, 16, 5), (8, 40, 1), (32, 32, 32)])
def test_matmul_equals_numpy(name, dtype, m, n, k):
    case = problem("matmul", m, n, k, dtype=dtype, alpha=2, beta=-3)
    got = run(name, case, **small(name))
    case.verify(got)
    if dtype == "int32":
        a, b, c = (array.astype(np.int64) for array in case.inputs())
        np.testing.assert_array_equal(got, 2 * (a @ b) - 3 * c)


@pytest.mark.parametrize("name", MATMUL)
def test_matmul_with_beta_zero_does_not_read_c(name):
    case = problem("matmul", 9, 10, 11)
    got = run(name, case, **small(name))
    assert np.isfinite(got).all()
    case.verify(got)


@pytest.mark.parametrize(("name", "parameters"), with_parameters(MATMUL))
def test_matmul_for_every_choice_of_parameters(name, parameters):
    case = problem("matmul", 33, 34, 35)
    case.verify(run(name, case, **parameters))


@pytest.mark.parametrize(("name", "dtype"), with_dtypes(TRANSPOSE, MOVED))
@pytest.mark.parametrize(
    ("rows", "cols"), [(1, 1), (1, 33), (33, 1), (31, 33), (70, 3), (16, 48), (36, 100), (34, 66)]
)
def test_transpose_equals_numpy(name, dtype, rows, cols):
    case = problem("transpose", rows, cols, dtype=dtype)
    np.testing.assert_array_equal(run(name, case, **small(name)), case.inputs()[0].T)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rung=st.sampled_from(with_dtypes(TRANSPOSE, MOVED)),
    shape=st.tuples(*[st.integers(1, 80)] * 2),
    seed=st.integers(0, 9),
)
def test_transpose_of_any_shape(rung, shape, seed):
    name, dtype = rung
    case = problem("transpose", *shape, dtype=dtype, seed=seed)
    np.testing.assert_array_equal(run(name, case, **small(name)), case.inputs()[0].T)


@pytest.mark.parametrize(("name", "parameters"), with_parameters(TRANSPOSE))
def test_transpose_for_every_choice_of_parameters(name, parameters):
    for shape in [(45, 67), (44, 68)]:
        case = problem("transpose", *shape)
        case.verify(run(name, case, **parameters))


@pytest.mark.parametrize("dtype", MOVED)
def test_copy_copies(dtype):
    case = problem("transpose", 31, 50, dtype=dtype)
    got = run("transpose/0_copy", case, TILE=16)
    np.testing.assert_array_equal(got.reshape(31, 50), case.inputs()[0])


@pytest.mark.parametrize("name", [*MATMUL, *TRANSPOSE])
def test_the_sanitizer_finds_nothing(name):
    kernel = kernels.load(name, **small(name))
    for sizes in [(33, 31, 17), (36, 20, 24)]:
        case = problem("matmul", *sizes) if name in MATMUL else problem("transpose", *sizes[:2])
        assert kernel.check(*kernels.launch(name, case, **small(name)), case.args(np)) == []


LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STORES = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
LOAD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
STORE_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORE_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"


def metrics(name, case, **parameters):
    kernel = kernels.load(name, DTYPE=case.ctype, **parameters)
    return kernel.profile(*kernels.launch(name, case, **parameters), case.args(np)).metrics


def test_naive_reads_what_the_address_rules_say():
    """A warp of a 32 x 32 block is a row of C. A step reads one sector of A (a broadcast), four of B."""
    counted = metrics("matmul/1_naive", problem("matmul", 64, 64, 64), TILE=32)
    warps = 64 * 64 // 32
    assert counted[LOADS] == warps * 64 * (1 + 4)
    assert counted[STORES] == warps * 4


def test_uncoalesced_twin_needs_a_sector_a_lane():
    """A warp is a column of C: 32 sectors of A, one of B each step, and 32 to write."""
    counted = metrics("matmul/1_naive_uncoalesced", problem("matmul", 64, 64, 64), TILE=32)
    warps = 64 * 64 // 32
    assert counted[LOADS] == warps * 64 * (32 + 1)
    assert counted[STORES] == warps * 32


def test_tile_divides_the_traffic():
    """Each of 64^2 / 32^2 blocks reads 64/32 pairs of tiles of 32 x 32 floats: 128 sectors a tile."""
    counted = metrics("matmul/2_tiled", problem("matmul", 64, 64, 64), TILE=32)
    assert counted[LOADS] == 4 * 2 * 2 * 128
    assert counted[CONFLICTS] == 0


@pytest.mark.parametrize(("dtype", "column_conflicts"), [("float32", 31), ("int32", 31), ("float64", 2 * 15)])
def test_the_ladder_of_transposes(dtype, column_conflicts):
    """What each rung costs beyond whole sectors of 32 bytes and shared memory without conflicts.

    A column of a matrix is 1 sector per lane: 32 per warp. A column of an unpadded tile, rows of 32 elements
    is in one bank: 31 conflicts; with elements of 8 bytes in two banks, and each half-warp has 15. 6_any_size
    has a test of its own.
    """
    case, warps = problem("transpose", 64, 64, dtype=dtype), 64 * 64 // 32
    whole = case.bytes // 2 // 32
    rungs = [name for name in kernels.names("transpose") if name != "transpose/6_any_size"]
    found = {name: metrics(name, case, TILE=32) for name in rungs}

    def other_than(expected, quantity):
        return {name: counted[quantity] for name, counted in found.items() if counted[quantity] != expected}

    assert other_than(whole, LOADS) == {"transpose/1_naive_write_coalesced": warps * 32}
    assert other_than(whole, STORES) == {"transpose/1_naive": warps * 32}
    assert other_than(0, CONFLICTS) == {"transpose/2_shared": warps * column_conflicts}
    assert other_than(0, STORE_CONFLICTS) == {}


def test_swizzled_needs_less_shared_memory_than_padded():
    padded, swizzled = (kernels.load(f"transpose/{name}", TILE=32) for name in ("3_padded", "3_swizzled"))
    assert padded.shared_size_bytes - swizzled.shared_size_bytes == 32 * 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tile", [32, 64])
def test_a_request_of_the_vectorised_rung_is_16_bytes_a_lane(dtype, tile):
    """A warp's request is 32 x 16 bytes, 16 sectors; vectors stored and read in shared memory do not
    conflict.
    """
    case = problem("transpose", 128, 64, dtype=dtype)
    counted = metrics("transpose/5_vectorised", case, TILE=tile)
    assert counted[LOAD_REQUESTS] == counted[STORE_REQUESTS] == case.bytes // 2 // 512
    assert counted[LOADS] == counted[STORES] == 16 * counted[LOAD_REQUESTS]
    assert counted[CONFLICTS] == counted[STORE_CONFLICTS] == 0


@pytest.mark.parametrize(
    ("dtype", "cols", "requests"),
    [
        ("float32", 64, 32),
        ("float32", 66, 192),
        ("int32", 66, 192),
        ("float64", 66, 128),
        ("float64", 65, 192),
    ],
)
def test_rows_that_are_no_whole_vectors_go_by_element(dtype, cols, requests):
    """Load requests of 64 rows with TILE 64: rows of whole vectors by 16 bytes a lane, others by element.

    64 columns of floats are 16 vectors: two rows per request. 66 columns are not whole vectors of 4: two
    requests per row, and one for the 2 columns in the next tile: 64 x 3. They are whole vectors of 2 doubles:
    one request per row, and one in the next tile: 64 x 2. 65 columns are not: 64 x 3 again.
    """
    counted = metrics("transpose/5_vectorised", problem("transpose", 64, cols, dtype=dtype))
    assert counted[LOAD_REQUESTS] == requests
    assert counted[CONFLICTS] == counted[STORE_CONFLICTS] == 0


@pytest.mark.parametrize("dtype", MOVED)
def test_rows_of_any_size_go_by_vectors(dtype):
    """6_any_size writes whole sectors, and needs few requests even where 5_vectorised goes by element.

    A row of its tile is 16 vectors of 16 bytes, and takes 17 places in the order of threads. So a warp's 32
    places begin and end within a sector, of which another warp loads the other half.
    """
    case = problem("transpose", 128, 256, dtype=dtype)
    whole, counted = case.bytes // 2 // 32, metrics("transpose/6_any_size", case)
    assert counted[STORES] == whole
    assert whole < counted[LOADS] <= whole + counted[LOAD_REQUESTS]
    assert counted[STORE_REQUESTS] == whole // 16

    odd = problem("transpose", 257, 259, dtype=dtype)
    by_vectors, by_element = (metrics(f"transpose/{name}", odd) for name in ("6_any_size", "5_vectorised"))
    assert 3 * by_vectors[LOAD_REQUESTS] < 2 * by_element[LOAD_REQUESTS]
    assert 3 * by_vectors[STORE_REQUESTS] < 2 * by_element[STORE_REQUESTS]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("matmul/2_tiled", {"TILE": 33}, "choose TILE from 1 to 32"),
        ("transpose/3_padded", {"TILE": 0}, "choose TILE from 1 to 32"),
        ("transpose/3_swizzled", {"TILE": 64}, "choose TILE from 1 to 32"),
        ("transpose/3_swizzled", {"TILE": 24}, "choose a power of 2"),
        ("transpose/4_unrolled", {"TILE": 64, "ROWS": 32}, "a block holds 1 to 1024 threads"),
        ("transpose/4_unrolled", {"ROWS": 5}, "choose a ROWS that divides TILE"),
        ("matmul/9_tuned", {"TILE_M": 144, "TILE_N": 128, "TILE_K": 16, "WARP_M": 36}, "a 32nd of WARP_"),
        ("transpose/5_vectorised", {"TILE": 2}, "choose a TILE of 4, 8, 16, 32 or 64"),
        ("transpose/5_vectorised", {"TILE": 48}, "choose a TILE of 4, 8, 16, 32 or 64"),
        ("transpose/5_vectorised", {"TILE": 128}, "choose a TILE of 4, 8, 16, 32 or 64"),
        ("transpose/6_any_size", {"TILE": 8}, "choose a TILE of 16, 32, 64 or 128"),
        ("transpose/6_any_size", {"TILE": 48}, "choose a TILE of 16, 32, 64 or 128"),
    ],
)
def test_impossible_parameters_do_not_compile(name, parameters, message):
    with pytest.raises(CompileError, match=message):
        kernels.load(name, **parameters)


@pytest.mark.parametrize(
    ("name", "parameters", "grid", "block"),
    [
        ("matmul/1_naive", {}, (2, 2, 1), (32, 32, 1)),
        ("matmul/2_tiled", {}, (3, 4, 1), (16, 16, 1)),
        ("transpose/1_naive_write_coalesced", {"TILE": 20}, (2, 3, 1), (20, 20, 1)),
        ("transpose/4_unrolled", {"ROWS": 4}, (2, 2, 1), (32, 4, 1)),
        ("transpose/5_vectorised", {"TILE": 16}, (4, 3, 1), (16, 1, 1)),
        ("transpose/6_any_size", {"TILE": 16}, (4, 1, 1), (256, 1, 1)),
    ],
)
def test_the_launch_is_the_one_of_the_source(name, parameters, grid, block):
    case = problem("matmul", 50, 40, 7) if name in MATMUL else problem("transpose", 50, 40)
    assert kernels.launch(name, case, **parameters) == (grid, block)


@pytest.mark.parametrize("tile", [0, "sixteen"])
def test_a_launch_without_whole_numbers_is_refused(tile):
    with pytest.raises(LaunchError, match=f"2_tiled has no launch with TILE={tile!r}. Choose whole numbers"):
        kernels.launch("matmul/2_tiled", problem("matmul", 9, 9, 9), TILE=tile)


def test_a_launch_that_no_gpu_takes_is_refused():
    with pytest.raises(LaunchError, match=r"block \(33, 33\) has 1089 threads; a block holds at most 1024"):
        kernels.launch("transpose/2_shared", problem("transpose", 9, 9), TILE=33)
    with pytest.raises(LaunchError, match=r"grid \(1, 65536\) is too large"):
        kernels.launch("transpose/5_vectorised", problem("transpose", 1, 64 * 65535 + 1))


@pytest.mark.parametrize("name", EVERY)
def test_sources_follow_the_house_style(name):
    lines = kernels.source(name).splitlines()
    head = [line for line in lines if line.startswith("//")]
    assert lines[0].startswith(f"// {name.replace('/', '_')}.cu: ")
    assert lines[1].startswith("// idea: ")
    assert sum(line.startswith("// launch: block (") for line in head) == 1
    assert max(map(len, lines)) <= 110
    assert len(lines) <= 120
    assert compile_ptx(kernels.source_with_includes(name)).log == ""  # no warnings


def test_unknown_names_and_parameters_are_named():
    with pytest.raises(ValueError, match=r"no kernel 'matmul/9'\. Choose one of matmul/.*matmul/1_naive, "):
        kernels.source("matmul/9")
    with pytest.raises(ValueError, match="no family of kernels 'conv'"):
        kernels.names("conv")
    with pytest.raises(ValueError, match=r"matmul kernels have no parameter TIEL; they have .*DTYPE, .*TILE"):
        kernels.load("matmul/2_tiled", TIEL=16)


def test_load_gives_the_same_kernel_again():
    assert kernels.load("matmul/2_tiled", TILE=8) is kernels.load("matmul/2_tiled", TILE=8)
    assert kernels.load("matmul/2_tiled", TILE=8) is not kernels.load("matmul/2_tiled", TILE=4)


@pytest.mark.parametrize("precision", ["tf32", "half"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (33, 45, 29), (64, 32, 48)])
def test_tensor_cores_are_right_within_their_precision(precision, m, n, k):
    case, name = problem("matmul", m, n, k, alpha=2, beta=-3), "matmul/tensor_cores"
    chosen, args = small(name) | {"PRECISION": precision}, case.args(np)
    kernels.load(name, **chosen)(*kernels.launch(name, case, **chosen), args)
    case.verify(case.output(args), unit_of_inputs=2**-11)


def test_tensor_cores_have_two_precisions():
    with pytest.raises(CompileError, match="choose tf32 or half for PRECISION"):
        kernels.load("matmul/tensor_cores", PRECISION="float")
