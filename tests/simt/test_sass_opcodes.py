"""The table of machine code's opcodes has each of them once, and one for each rule of the lift."""

from collections import Counter

from simt.sass.lift import RULES
from simt.sass.opcodes import _ROWS, OPCODES, PIPES, accesses, known


def test_no_opcode_has_two_rows():
    assert [name for name, rows in Counter(" ".join(_ROWS).split()).items() if rows > 1] == []


def test_each_rule_is_for_a_known_opcode_that_does_something():
    assert [name for name in RULES if known(name) is known("NEW") or known(name).is_free] == []


def test_pipes_have_their_names_and_accesses_a_space():
    assert {row.pipe for row in OPCODES.values()} <= {"", *PIPES}
    assert all(bool(row.access) == bool(row.space) for row in OPCODES.values())


def test_what_is_known_does_not_depend_on_modifiers():
    assert known("LDG.E.128") is known("LDG") and known("UIADD3.X").pipe == "uniform"
    assert accesses("load", "shared") == ("LDS", "LDSM") and accesses("store", "local") == ("STL",)
