"""`printf` and `assert` in a kernel."""

import numpy as np
import pytest

import simt


def run(source, grid, block, *args):
    simt.RawModule(code=source).get_function("f")(grid, block, args)


def test_printf_from_the_lanes_that_reach_it(capsys):
    source = r"""#include <cstdio>
    extern "C" __global__ void f(const float* x) {
        int t = threadIdx.x;
        if (t % 20 == 3)
            printf("thread %d of %s: %5.2f|%-4u|%lld|%c%%\n", t, "block", x[t], 7u, 1ll << 40, 'a' + t % 7);
    }"""
    run(source, 1, 40, np.arange(40, dtype=np.float32) / 4)
    assert capsys.readouterr().out.splitlines() == [
        "thread 3 of block:  0.75|7   |1099511627776|d%",
        "thread 23 of block:  5.75|7   |1099511627776|c%",
    ]


def test_printf_before_a_mistake_is_shown(capsys):
    source = r"""extern "C" __global__ void f(float* x) { printf("here\n"); x[100] = 1; }"""
    with pytest.raises(simt.InvalidAccess):
        run(source, 1, 1, np.zeros(4, np.float32))
    assert capsys.readouterr().out == "here\n"


def test_assert_names_its_line_and_thread():
    source = """#include <cassert>
    extern "C" __global__ void f(const int* x) {
        int t = threadIdx.x;
        assert(x[t] < 30);
    }"""
    run(source, 1, 30, np.arange(30, dtype=np.int32))
    with pytest.raises(simt.SimtError, match=r"line 4: assertion failed\n.*thread \(30, 0, 0\)") as error:
        run(source, 1, 32, np.arange(32, dtype=np.int32))
    assert error.value.finding.kind == "assert"
    assert "assert(x[t] < 30);" in str(error.value)


def test_printf_of_a_bad_pointer_does_not_end_the_process(capsys):
    source = r"""extern "C" __global__ void f(const char* s) { printf("%s %s\n", s, (const char*)1234); }"""
    run(source, 1, 1, np.frombuffer(b"text\0", np.uint8).copy())
    assert capsys.readouterr().out == "text (bad pointer 0x4d2)\n"
