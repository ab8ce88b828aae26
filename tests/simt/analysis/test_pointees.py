"""Which array a register points into: a guess, and all that are possible."""

from ptx_kernels import kernel

from simt.analysis.pointees import find_pointees, written_ranges

RANGES = {"x": 0, "y": 1, "n": 2, "g": 3}
LOADS = "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];"


def pointees(body):
    return find_pointees(kernel(f"{body} ret;"), RANGES)


def written(body):
    return written_ranges(kernel(f"{LOADS} {body} ret;"), RANGES)


def test_pointers_come_from_parameters():
    found = pointees(
        f"""{LOADS} cvta.to.global.u64 %rd3, %rd1; mul.wide.s32 %rd4, %r1, 4; add.s64 %rd5, %rd3, %rd4;
        mad.lo.s64 %rd6, %rd4, 8, %rd2; sub.s64 %rd7, %rd5, 16; selp.b64 %rd8, %rd6, %rd6, %p1;"""
    )
    assert found == {f"%rd{n}": 0 for n in (1, 3, 5, 7)} | {f"%rd{n}": 1 for n in (2, 6, 8)}


def test_of_two_parameters_the_converted_one_is_the_pointer():
    body = "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; cvta.to.global.u64 %rd3, %rd2; add.s64 %rd4, "
    assert pointees(f"{body} %rd1, %rd3;")["%rd4"] == 1
    assert pointees(f"{body} %rd3, %rd1;")["%rd4"] == 1


def test_variables_of_the_module():
    assert pointees("mov.u64 %rd1, g; add.s64 %rd2, %rd1, 4;") == {"%rd1": 3, "%rd2": 3}


def test_what_memory_holds_is_not_followed():
    assert "%rd3" not in pointees(f"{LOADS} ld.global.u64 %rd3, [%rd1];")


def test_a_loop_is_followed_to_its_end():
    found = pointees(f"{LOADS} L: mov.u64 %rd5, %rd4; mov.u64 %rd4, %rd3; mov.u64 %rd3, %rd2; bra L;")
    assert found == {"%rd1": 0} | {f"%rd{n}": 1 for n in (2, 3, 4, 5)}


def test_a_store_writes_where_its_pointer_may_point():
    assert written("st.global.u32 [%rd1], 1;") == {0}
    assert written("add.s64 %rd3, %rd2, 8; st.u32 [%rd3], 1;") == {1}
    assert written("selp.b64 %rd3, %rd1, %rd2, %p1; st.global.u32 [%rd3], 1;") == {0, 1}
    assert written("@%p1 mov.u64 %rd2, %rd1; atom.global.add.u32 %r1, [%rd2], 1;") == {0, 1}
    assert written("red.global.add.u32 [g], 1;") == {3}


def test_what_writes_no_global_memory():
    assert written("ld.global.u32 %r2, [%rd1]; st.shared.u32 [%r2], 1; st.local.u32 [%rd2], 1;") == set()


def test_a_pointer_out_of_memory_may_point_anywhere():
    assert written("ld.global.u64 %rd3, [%rd1]; st.global.u32 [%rd3], 1;") is None
    assert written(
        "ld.global.u32 %r2, [%rd1]; cvt.u64.u32 %rd3, %r2; add.s64 %rd3, %rd3, %rd2; st.global.u32 [%rd3], 1;"
    ) == {1}  # 32 bits are no pointer


def test_each_bit_counts_wherever_it_goes():
    body = "mov.b64 {%r2, %r3}, %rd1; xor.b32 %r2, %r2, 1; mov.b64 %rd3, {%r2, %r3}; st.global.u32 [%rd3], 1;"
    assert written(body) == {0}
