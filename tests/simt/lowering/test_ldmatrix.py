"""ldmatrix, stmatrix and movmatrix, run by a plain interpreter, against the layout in the PTX ISA.

Of an 8 x 8 matrix of 16-bit numbers, lane n holds two: row n / 4, columns 2 (n % 4) and one more.
"""

import numpy as np
import pytest
from ptx_kernels import kernel
from ptx_machine import LANES, Machine

from simt.lowering.lower import lower

MATRICES = np.random.default_rng(2).integers(0, 1 << 16, (4, 8, 8)).astype(np.uint16)
# Rows of 16 bytes lie in any order, wherever lane 8 j + i says that row i of matrix j begins.
PLACES = 16 * np.random.default_rng(3).permutation(64)[:LANES]


def machine(line, **registers):
    made = kernel(f"{line} ret;")
    lower(made)

    def of_lane(lane):
        return {
            "%r9": int(PLACES[lane]),
            "%rd9": int(PLACES[lane]),
            **{n: v[lane] for n, v in registers.items()},
        }

    return Machine(made, registers=of_lane)


def words(matrix):
    """What each lane holds of a matrix."""
    return np.ascontiguousarray(matrix).view(np.uint32).reshape(LANES).tolist()


def operands(count):
    return "{" + ", ".join(f"%r{i + 1}" for i in range(count)) + "}"


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_ldmatrix(count, trans):
    line = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * trans}.shared.b16 {operands(count)}, [%r9+32];"
    running = machine(line)
    for j in range(count):
        for i in range(8):
            at = PLACES[8 * j + i] + 32
            running.memory["shared"][at : at + 16] = MATRICES[j, i].tobytes()
    running.run()
    for j in range(count):
        expected = MATRICES[j].T if trans else MATRICES[j]
        assert running.column(f"%r{j + 1}") == words(expected)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_stmatrix(count, trans):
    line = f"stmatrix.sync.aligned.m8n8.x{count}{'.trans' * trans}.shared.b16 [%r9], {operands(count)};"
    given = {f"%r{j + 1}": words(MATRICES[j].T if trans else MATRICES[j]) for j in range(count)}
    running = machine(line, **given).run()
    for j in range(count):
        for i in range(8):
            at = PLACES[8 * j + i]
            assert running.memory["shared"][at : at + 16] == MATRICES[j, i].tobytes()


def test_a_wide_and_a_generic_address():
    for line in (
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%rd9];",
        "ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%rd9];",
    ):
        running = machine(line)
        for i in range(8):
            running.memory["shared"][PLACES[i] : PLACES[i] + 16] = MATRICES[0, i].tobytes()
        assert running.run().column("%r1") == words(MATRICES[0])


def test_movmatrix():
    running = machine("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;", **{"%r2": words(MATRICES[1])}).run()
    assert running.column("%r1") == words(MATRICES[1].T)


def test_what_depends_on_the_lane_alone_is_computed_once():
    once, twice = (
        kernel("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;" * count + "ret;") for count in (1, 2)
    )
    lower(once)
    lower(twice)
    assert len(twice.code) - len(once.code) == 4  # two shuffles, a permutation and a move
