"""Sectors of loads at any distances, wherever the host has the array, against sets of sectors."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import simt
from simt.counters.banks import bank_conflicts

SOURCE = """extern "C" __global__ void f(const TYPE* x, TYPE* out, int xs, int ys, int zs, int lowest) {
    int at = X * threadIdx.x + Y * threadIdx.y + zs * blockIdx.x + lowest;
    TYPE each = x[at + SHIFT];
    if (each == (TYPE)77) *out = each;
}"""
TYPES = {"char": "i1", "short": "i2", "float": "f4", "double": "f8"}
steps = st.sampled_from([0, 1, 2, 3, 5, 8, 17, 32, 33, 64, -1, -4, -33])


def loaded(x_step, y_step, z_step, block, blocks):
    """The index of each thread, one row per warp."""
    z, y, x = np.meshgrid(*map(np.arange, (blocks, block[1], block[0])), indexing="ij")
    return (x_step * x + y_step * y + z_step * z).reshape(-1, 32)


@settings(max_examples=100, deadline=None)
@given(
    ctype=st.sampled_from(sorted(TYPES)),
    x_step=steps,
    y_step=steps,
    z_step=steps,
    block=st.sampled_from([(32, 1), (16, 2), (8, 4), (4, 8), (16, 4)]),
    host_offset=st.integers(0, 31),
    view=st.integers(0, 40),
    known=st.sampled_from(["XY", "X", ""]),
    shift=st.sampled_from([0, 1, 5]),
)
@example(
    ctype="float", x_step=0, y_step=5, z_step=1, block=(16, 2), host_offset=3, view=2, known="X", shift=0
)  # each half-warp reads one element
@example(
    ctype="float", x_step=0, y_step=1, z_step=3, block=(16, 2), host_offset=5, view=1, known="X", shift=0
)
@example(
    ctype="float", x_step=0, y_step=7, z_step=2, block=(16, 2), host_offset=1, view=3, known="X", shift=0
)
@example(
    ctype="float", x_step=1, y_step=-17, z_step=3, block=(16, 2), host_offset=3, view=1, known="X", shift=0
)  # the second row of a warp lies below the first
@example(
    ctype="float", x_step=1, y_step=3, z_step=3, block=(16, 2), host_offset=5, view=2, known="X", shift=0
)  # its rows overlap
@example(
    ctype="short", x_step=-1, y_step=33, z_step=8, block=(8, 4), host_offset=3, view=5, known="", shift=0
)
@example(
    ctype="float", x_step=0, y_step=3, z_step=0, block=(16, 2), host_offset=3, view=0, known="X", shift=5
)  # two elements, of which the constant in the address puts one into the next sector
@example(
    ctype="float", x_step=2, y_step=7, z_step=1, block=(16, 2), host_offset=1, view=1, known="X", shift=1
)  # rows with gaps
def test_sectors_are_those_of_the_addresses_on_a_gpu(
    ctype, x_step, y_step, z_step, block, host_offset, view, known, shift
):
    """An array's first element lies at a multiple of 256 bytes on a GPU, and a view goes on from there.

    Distances are `known` when code is made, or only when it runs: of rows, or of all lanes.
    """
    dtype, blocks = np.dtype(TYPES[ctype]), 3
    index = loaded(x_step, y_step, z_step, block, blocks)
    lowest = -int(index.min())
    index += lowest
    length = view + int(index.max()) + shift + 1
    memory = bytearray(length * dtype.itemsize + 64)
    start = -np.frombuffer(memory, np.uint8).ctypes.data % 32
    whole = np.ndarray(
        (length,), dtype, memory, offset=(start + host_offset * dtype.itemsize) % (32 + dtype.itemsize)
    )
    steps_of = {"X": x_step, "Y": y_step}
    options = [f"-D{name}={steps_of[name] if name in known else name.lower() + 's'}" for name in "XY"]
    kernel = simt.RawModule(
        code=SOURCE, options=[*options, f"-DTYPE={ctype}", f"-DSHIFT={shift}"]
    ).get_function("f")
    lines = kernel.profile(
        blocks, block, (whole[view:], np.zeros(1, dtype), *map(np.int32, (x_step, y_step, z_step, lowest)))
    ).lines
    first = (view + index + shift) * dtype.itemsize
    expected = sum(len(set(row // 32)) for row in first)
    load = lines[(lines.line == 3) & (lines.op == "ld")].iloc[0]
    assert int(load.sectors) == expected
    assert int(load.requests) == len(index)


@pytest.mark.parametrize(
    ("size", "stride", "conflicts"),
    [
        (4, 4, 0),
        (4, 8, 1),
        (4, 128, 31),
        (4, 0, 0),
        (8, 8, 0),  # half a warp reads 16 * 2 words of 32 banks
        (8, 16, 2),  # 16 lanes at words 0, 4, 8, ... use each of 16 banks twice, in both halves
        (8, 128, 30),
        (16, 16, 0),  # a quarter of a warp reads 8 * 4 words
        (16, 32, 4),
        (16, 128, 28),
        (2, 2, 0),  # two lanes read each word
    ],
)
def test_bank_conflicts_of_wide_accesses(size, stride, conflicts):
    assert bank_conflicts([stride * lane for lane in range(32)], size) == conflicts
