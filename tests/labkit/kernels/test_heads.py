"""What the heads of kernels say beside their launch: types, the least GPU, shared memory, tensor maps."""

import re

import numpy as np
import pytest

from labkit import kernels
from labkit.kernels import heads
from labkit.kernels.heads import BoxOf
from labkit.kernels.launch_line import LaunchLineError
from labkit.kernels.problem import families, problem, problem_class
from simt.common.errors import LaunchError

SOURCE = """// types: half, __nv_bfloat16
// needs: sm_90a
// shared: STAGES * (TILE_M + TILE_N) * TILE_K * sizeof(T) + 1024
// tensor maps: A (TILE_M, TILE_K) swizzle 128, B (TILE_N/2, 128/sizeof(T)), C_map (min(9,8), COLS) swizzle 64
#ifndef DTYPE
#define DTYPE half
#endif
#ifndef STAGES
#define STAGES 3
#endif
constexpr int TILE_M = 128, TILE_N = 256;
constexpr int T_BYTES = sizeof(T), TILE_K = 128 / T_BYTES, COLS = 128 / sizeof(Out);
"""


def test_the_lines_of_a_head():
    assert heads.types(SOURCE) == ("half", "__nv_bfloat16")
    assert heads.said(SOURCE, "needs") == "sm_90a"
    assert heads.shared_bytes(SOURCE, {}) == 3 * (128 + 256) * 64 * 2 + 1024
    assert heads.tensor_maps(SOURCE, {"Out": "half"}) == (
        BoxOf("A", (128, 64), 128),
        BoxOf("B", (128, 64)),
        BoxOf("C_map", (8, 64), 64),
    )


def test_they_follow_the_macros_that_the_kernel_is_compiled_with():
    macros = {"STAGES": 2, "DTYPE": "__nv_fp8_e4m3", "Out": "half"}
    assert heads.shared_bytes(SOURCE, macros) == 2 * (128 + 256) * 128 + 1024
    assert [each.box for each in heads.tensor_maps(SOURCE, macros)] == [(128, 128), (128, 128), (8, 64)]


def test_a_map_stands_for_an_array_or_is_one_more():
    a, _, c = heads.tensor_maps(SOURCE, {"Out": "half"})
    assert (a.array, a.replaces, c.array, c.replaces) == ("A", True, "C", False)


def test_without_lines_there_is_nothing():
    assert heads.types("") == heads.tensor_maps("", {}) == ()
    assert heads.shared_bytes("", {}) == 0 and heads.said("", "needs") == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tensor maps: A", "does not say how maps are made. It should have this form"),
        ("tensor maps: A (8, 8) swizzled", "does not say how maps are made"),
        ("tensor maps: A (8, 8) B (8, 8)", "does not say how maps are made"),
        ("tensor maps: A (TILE, 8)", "nothing says what TILE is"),
        ("tensor maps: A (16, 128 / sizeof(long))", "nothing says how large long is. Known are T and double"),
        ("shared: 2 * M", "nothing says what M is"),
        ("shared: 1024\n// shared: 2048", "2 lines begin with `// shared:`. Keep one"),
    ],
)
def test_a_line_that_says_nothing_is_an_error(line, message):
    with pytest.raises(LaunchLineError, match=re.escape(message)):
        heads.tensor_maps(f"// {line}\n", {})
        heads.shared_bytes(f"// {line}\n", {})


@pytest.mark.parametrize(
    ("needed", "capability", "lacks"),
    [
        ("", "7.5", False),
        ("sm_75", "7.5", False),
        ("sm_80", "7.5", True),
        ("sm_80", "12.0", False),
        ("sm_89", "8.6", True),
        ("sm_90a", "9.0", False),
        ("sm_90a", "8.9", True),
        ("sm_90a", "10.0", True),  # an architecture with an `a` is the only one
        ("sm_120", "10.3", True),
    ],
)
def test_what_a_gpu_lacks(needed, capability, lacks):
    assert heads.lacks(needed, capability) is lacks


def test_what_is_no_architecture_is_an_error():
    with pytest.raises(LaunchLineError, match="`// needs: Hopper` is no architecture"):
        heads.lacks("Hopper", "9.0")


@pytest.fixture
def tensor_folder(monkeypatch, tmp_path):
    """A folder with a kernel that takes tensor maps, and one that includes a header, in place of ours."""
    folder = tmp_path / "tensor_matmul"
    folder.mkdir()
    (folder / "1_mapped.cu").write_text(SOURCE + "// launch: block (128), grid (ceil(N/TILE_N));\n")
    (folder / "2_included.cu").write_text('// launch: block (1), grid (SIDE);\n#include "own.h"\n')
    (folder / "own.h").write_text("constexpr int SIDE = 7;\n#ifndef MORE\n#define MORE 5\n#endif\n")
    monkeypatch.setattr(kernels, "_FOLDER", tmp_path)
    kernels._found.cache_clear()
    yield
    kernels._found.cache_clear()


def test_a_problem_that_no_tensor_map_takes_is_refused(tensor_folder):
    name, fitting = "tensor_matmul/1_mapped", problem("tensor_matmul", 8, 8, 8)
    assert kernels.unfit(name, fitting) == ""
    small = problem("tensor_matmul", 8, 8, 12)
    reason = (
        "K=12 makes rows of A 24 bytes long in float16; a tensor map takes multiples of 16 bytes. "
        "Choose a multiple of 8 for K."
    )
    assert kernels.unfit(name, small) == reason
    with pytest.raises(LaunchError, match=f"{name}: {reason}"):
        kernels.whole_launch(name, small, small.args(np))
    assert kernels.unfit(name, problem("tensor_matmul", 8, 12, 8)).startswith("N=12 makes rows of C 24 bytes")


def test_headers_of_the_folder_are_compiled_and_read_with_the_kernel(tensor_folder):
    name = "tensor_matmul/2_included"
    assert kernels.defaults(name) == {"MORE": 5}
    assert kernels.launch(name, problem("tensor_matmul", 8, 8, 8)) == ((7, 1, 1), (1, 1, 1))
    assert '"own.h"' in kernels.source(name) and "SIDE = 7" in kernels.source_with_includes(name)


def test_a_type_and_a_gpu_that_a_kernel_does_not_have(tensor_folder):
    name = "tensor_matmul/1_mapped"
    assert kernels.types(name) == ("half", "__nv_bfloat16")
    with pytest.raises(ValueError, match="1_mapped takes half, __nv_bfloat16 alone, and DTYPE is float"):
        kernels.load(name, DTYPE="float")
    assert kernels.lacking(name, "half", "9.0") == ""
    assert kernels.lacking(name, "half", "8.0") == f"{name} needs sm_90a"
    assert kernels.lacking("tensor_matmul/2_included", "__nv_fp8_e4m3", "8.0").endswith("e4m3 needs sm_89")


@pytest.mark.parametrize("name", [each for family in families() for each in kernels.names(family)])
def test_every_head_can_be_read(name):
    kind = problem_class(name.partition("/")[0])
    for ctype in kernels.types(name):
        assert ctype in kind.dtypes.values()
        case = kind.trials(next(dtype for dtype, known in kind.dtypes.items() if known == ctype))[-1]
        macros = kernels._macros(name, case, {})
        assert heads.shared_bytes(kernels.source_with_includes(name), macros) <= 227 * 1024
        assert all(
            max(each.box) <= 256 for each in heads.tensor_maps(kernels.source_with_includes(name), macros)
        )
        assert kernels.lacking(name, ctype, "9.0") == ""
