"""Every opcode of the table is emitted in one place, and what is in no table is an error that names it."""

import numpy as np
import pytest

import simt
from simt.code.crosslane import EMITTERS
from simt.code.instructions.table import OPERATIONS
from simt.lowering.lower import RULES
from simt.opcodes import OPCODES

COMPUTED = {name.partition(".")[0] for name in OPERATIONS}


@pytest.mark.parametrize("name", OPCODES)
def test_each_opcode_is_emitted_in_one_place(name):
    opcode = OPCODES[name]
    is_access, is_lowered = opcode.reads or opcode.writes, name in ("brx", "cp", "mbarrier")
    places = [is_access, bool(opcode.end) and not is_lowered, opcode.is_free, is_lowered]
    assert sum([*places, opcode.is_region, name in EMITTERS, name in COMPUTED]) == 1


def test_no_opcode_is_emitted_twice():
    assert not EMITTERS.keys() & COMPUTED
    assert not RULES.keys() & COMPUTED


def test_an_unknown_opcode_is_named(monkeypatch):
    monkeypatch.delitem(OPERATIONS, "szext")
    code = """extern "C" __global__ void k(int* out) {
        int x;


        asm("szext.wrap.s32 %0, %1, %2;" : "=r"(x) : "r"(out[0]), "r"(out[1]));
        out[2] = x;
    }"""
    kernel = simt.RawModule(code=code).get_function("k")
    with pytest.raises(simt.SimtError, match=r"line 5: the simulator does not know .* `szext\.wrap\.s32`"):
        kernel(1, 1, (np.zeros(3, np.int32),))
