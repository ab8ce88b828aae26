"""The kernels of the course in the simulator: right for every dtype and shape, and as costly as they say."""

import numpy as np
import pytest

from labkit import checks, kernels
from labkit.compile_cuda import compile_ptx
from labkit.errors import CompileError
from labkit.problems import problem

MATMUL = kernels.names("matmul")
TRANSPOSE = [name for name in kernels.names("transpose") if name != "transpose/0_copy"]
DTYPES = ["float32", "int32", "float64"]


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def run(name, case, tile, **parameters):
    "Output of one launch, and its arguments before it."
    args = case.args(np)
    rows = 8 if name.endswith("unrolled") else None
    kernel = kernels.load(name, DTYPE=case.ctype, TILE=tile, **parameters)
    kernel(*case.launch(tile, rows), args)
    return case.output(args)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MATMUL)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (17, 31, 33), (33, 16, 5), (8, 40, 1)])
def test_matmul_equals_numpy(name, dtype, m, n, k):
    case = problem("matmul", m, n, k, dtype=dtype, alpha=2, beta=-3)
    got = run(name, case, tile=8)
    case.verify(got)
    if dtype == "int32":
        a, b, c = (array.astype(np.int64) for array in case.inputs())
        np.testing.assert_array_equal(got, 2 * (a @ b) - 3 * c)


@pytest.mark.parametrize("name", MATMUL)
def test_matmul_with_beta_zero_does_not_read_c(name):
    case = problem("matmul", 9, 10, 11)
    got = run(name, case, tile=4)
    assert np.isfinite(got).all()
    case.verify(got)


@pytest.mark.parametrize("tile", [1, 2, 5, 16, 32])
@pytest.mark.parametrize("name", MATMUL)
def test_matmul_for_every_tile(name, tile):
    case = problem("matmul", 33, 34, 35)
    case.verify(run(name, case, tile))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TRANSPOSE)
@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (31, 33), (70, 3), (16, 48)])
def test_transpose_equals_numpy(name, dtype, rows, cols):
    case = problem("transpose", rows, cols, dtype=dtype)
    np.testing.assert_array_equal(run(name, case, tile=16), case.inputs()[0].T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_copy_copies(dtype):
    case = problem("transpose", 31, 50, dtype=dtype)
    got = run("transpose/0_copy", case, tile=16)
    np.testing.assert_array_equal(got.reshape(31, 50), case.inputs()[0])


@pytest.mark.parametrize(("tile", "rows"), [(32, 8), (32, 1), (8, 8), (12, 4)])
def test_unrolled_for_every_share_of_a_tile(tile, rows):
    case = problem("transpose", 45, 67)
    args = case.args(np)
    kernels.load("transpose/4_unrolled", TILE=tile, ROWS=rows)(*case.launch(tile, rows), args)
    case.verify(case.output(args))


LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STORES = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"


def metrics(name, case, tile, rows=None):
    parameters = {"TILE": tile} | ({"ROWS": rows} if rows else {})
    return checks.profile(kernels.load(name, **parameters), case, tile, rows).metrics


def test_naive_reads_what_the_address_rules_say():
    "A warp of a 32 x 32 block is a row of C. A step reads one sector of A (a broadcast), four of B."
    counted = metrics("matmul/1_naive", problem("matmul", 64, 64, 64), 32)
    warps = 64 * 64 // 32
    assert counted[LOADS] == warps * 64 * (1 + 4)
    assert counted[STORES] == warps * 4


def test_uncoalesced_twin_needs_a_sector_a_lane():
    "A warp is a column of C: 32 sectors of A, one of B each step, and 32 to write."
    counted = metrics("matmul/1_naive_uncoalesced", problem("matmul", 64, 64, 64), 32)
    warps = 64 * 64 // 32
    assert counted[LOADS] == warps * 64 * (32 + 1)
    assert counted[STORES] == warps * 32


def test_tile_divides_the_traffic():
    "Each of 64^2 / 32^2 blocks reads 64/32 pairs of tiles of 32 x 32 floats: 128 sectors a tile."
    counted = metrics("matmul/2_tiled", problem("matmul", 64, 64, 64), 32)
    assert counted[LOADS] == 4 * 2 * 2 * 128
    assert counted[CONFLICTS] == 0


def test_the_ladder_of_transposes():
    "512 sectors each way if whole; a column of writes is 32 sectors, a column of a tile 31 conflicts."
    case, whole, warps = problem("transpose", 64, 64), 64 * 64 * 4 // 32, 64 * 64 // 32
    found = {
        name: metrics(name, case, 32, 8 if name.endswith("unrolled") else None)
        for name in kernels.names("transpose")
    }
    assert all(counted[LOADS] == whole for counted in found.values())
    assert {name: counted[STORES] for name, counted in found.items() if counted[STORES] != whole} == {
        "transpose/1_naive": warps * 32
    }
    assert {name: counted[CONFLICTS] for name, counted in found.items() if counted[CONFLICTS]} == {
        "transpose/2_shared": warps * 31
    }


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("matmul/2_tiled", {"TILE": 33}, "choose TILE from 1 to 32"),
        ("transpose/3_padded", {"TILE": 0}, "choose TILE from 1 to 32"),
        ("transpose/4_unrolled", {"TILE": 64, "ROWS": 32}, "a block holds 1 to 1024 threads"),
        ("transpose/4_unrolled", {"ROWS": 5}, "choose a ROWS that divides TILE"),
    ],
)
def test_impossible_parameters_do_not_compile(name, parameters, message):
    with pytest.raises(CompileError, match=message):
        kernels.load(name, **parameters)


@pytest.mark.parametrize("name", [*MATMUL, "transpose/0_copy", *TRANSPOSE])
def test_sources_follow_the_house_style(name):
    lines = kernels.source(name).splitlines()
    assert lines[0].startswith(f"// {name.replace('/', '_')}.cu: ")
    assert lines[1].startswith("// idea: ")
    assert any(line.startswith("// launch: ") for line in lines[:5])
    assert max(map(len, lines)) <= 110
    assert compile_ptx(kernels.source(name)).log == ""  # no warnings


def test_unknown_names_and_parameters_are_named():
    with pytest.raises(ValueError, match=r"no kernel 'matmul/9'\. Choose one of matmul/1_naive, "):
        kernels.source("matmul/9")
    with pytest.raises(ValueError, match="no family of kernels 'conv'"):
        kernels.names("conv")
    with pytest.raises(ValueError, match="matmul kernels have no parameter TIEL; they have DTYPE, TILE"):
        kernels.load("matmul/2_tiled", TIEL=16)


def test_load_gives_the_same_kernel_again():
    assert kernels.load("matmul/2_tiled", TILE=8) is kernels.load("matmul/2_tiled", TILE=8)
    assert kernels.load("matmul/2_tiled", TILE=8) is not kernels.load("matmul/2_tiled", TILE=4)
