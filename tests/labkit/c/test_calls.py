"""Calls of the optimised build, filled, read and timed from outside."""

import os
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from labkit.c.function import CFunction
from simt.common.errors import Crash, InvalidAccess, LaunchError, Timeout

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems tell no other process's time")

HEADERS = "".join(f"#include <{name}.h>\n" for name in ("pthread", "stdio", "stdlib", "unistd", "fcntl"))
BUSY = "for (volatile int i = 0; i < 20000000; ++i) ;"  # some 20 ms or more


def f(body, parameters="float *x, int n", more=""):
    return CFunction(f"{HEADERS}{more}\nvoid f({parameters}) {{ {body} }}", "f")


def of(*sizes):
    return [(np.zeros(size, np.float32), size) for size in sizes]


class TestResults:
    def test_each_call_has_arrays_and_numbers_of_its_own(self):
        calls = of(1, 5, 0, 16, 5000)
        assert f("for (int i = 0; i < n; ++i) x[i] += i + n;").make(calls) >= 0
        for x, n in calls:
            assert (x == np.arange(n) + n).all()

    def test_the_same_array_twice_is_the_same_memory(self):
        x, y, z = np.zeros((3, 3), np.float32)
        f("a[1] = 5; b[2] = a[1] + a[0];", "float *a, float *b").make([(x, x), (y, z)])
        assert x.tolist() == [0, 5, 5] and y.tolist() == [0, 5, 0] and z.tolist() == [0, 0, 5]

    def test_arrays_begin_at_a_cache_line(self):
        calls = of(1, 1, 33, 33)
        f("x[0] = (long)x % 64;").make(calls)
        assert [x[0] for x, _ in calls] == [0, 0, 0, 0]

    def test_what_does_not_fit(self):
        with pytest.raises(LaunchError, match="does not fit"):
            f("").make([(np.zeros(3), 3)])


class TestOutside:
    """What nothing instruments: whatever a macro tells, memory ends where an array does."""

    @pytest.mark.parametrize("size", [16, 1024, 5000])
    @pytest.mark.parametrize(
        ("body", "where"),
        [
            ("volatile float y = x[n + 15]; (void)y;", "past the end of `x`"),
            ("x[n + 15] = 1;", "past the end of `x`"),
            ("volatile float y = x[-1]; (void)y;", r"`x\[-1\]` is before the start of `x`"),
            ("x[-1] = 1;", r"`x\[-1\]` is before the start of `x`"),
        ],
    )
    def test_one_of_two_calls_ends(self, body, where, size):
        unseen = "#ifndef __SANITIZE_ADDRESS__\n#define HIDDEN 1\n#endif\n"
        function = f(f"if (HIDDEN) {{ {body} }}", more=unseen)
        with pytest.raises(InvalidAccess, match=rf"(access in the optimised build|write).* {where}"):
            function.make(of(size, size))

    def test_what_is_written_into_the_rest_of_a_cache_line(self):
        with pytest.raises(InvalidAccess, match="invalid write: `x\\[3\\]` is past the end of `x`"):
            f("x[n] = 1;").make(of(3))

    @pytest.mark.parametrize(
        ("body", "error", "words"),
        [
            ("exit(0);", Crash, r"exit\(0\)"),
            ("abort();", Crash, r"abort\(\)"),
            ("*(volatile int *)(long)(n - 3) = 1;", InvalidAccess, "before the start of `x`|SIGSEGV"),
            ("for (volatile int i = 0;; i = n) ;", Timeout, "0.5 s in the optimised build"),
            ("kill(getpid(), 9);", Crash, "SIGKILL"),
        ],
    )
    def test_what_else_ends_it(self, body, error, words):
        with pytest.raises(error, match=words):
            f(body, more="#include <signal.h>").make(of(3), timeout=0.5)


@linux
class TestTime:
    """It is the processor's, and no part of it is in the function's hands."""

    @pytest.fixture
    def honest(self):
        return f(BUSY).make(of(1))

    def test_waiting_takes_none_and_working_does(self, honest):
        assert f("usleep(50000);").make(of(1)) < 0.02 < 5 * honest

    @pytest.mark.parametrize(
        ("what", "more", "body"),
        [
            (
                "a clock that stands still",
                "#include <time.h>\nint clock_gettime(clockid_t id, struct timespec *t) "
                "{ t->tv_sec = t->tv_nsec = 0; return 0; }",
                BUSY,
            ),
            (
                "a thread beside",
                f"static void *work(void *x) {{ {BUSY} return x; }}",
                "pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0);",
            ),
            ("an end that was announced before", "", f'if (!access("done", F_OK)) {{ {BUSY} }} x[0] = 1;'),
        ],
    )
    def test_work_is_counted_with(self, what, more, body, honest):
        assert f(body, more=more).make(of(1)) > honest / 3, what

    def test_what_is_written_after_the_end_was_announced_is_not_read(self):
        calls = of(1)
        announce = 'int d = open("done", O_WRONLY); if (write(d, "", 1) < 0) return;'
        f(f"{announce} usleep(300000); x[0] = 1;").make(calls)
        assert calls[0][0][0] == 0

    def test_one_that_announces_the_end_and_is_gone_takes_its_time_with_it_or_is_refused(self, honest):
        announce = 'int d = open("done", O_WRONLY); if (write(d, "", 1) < 0) return;'
        with suppress(Crash):  # it has called exit
            assert f(f"{BUSY} x[0] = 1; {announce} _exit(0);").make(of(1)) > honest / 3

    def test_work_before_the_arrays_are_there_finds_nothing_in_them(self):
        early = f"__attribute__((constructor)) static void early(void) {{ {BUSY} }}"
        assert f("x[0] = 1;", more=early).make(of(1)) < 0.01

    def test_a_busy_machine_makes_hardly_a_difference(self, honest):
        ends = threading.Event()

        def burn():
            until = time.monotonic() + 10
            while not ends.is_set() and time.monotonic() < until:
                sum(range(1000))

        others = [threading.Thread(target=burn) for _ in range(3)]
        for each in others:
            each.start()
        try:
            assert f(BUSY).make(of(1)) < 3 * honest
        finally:
            ends.set()
            for each in others:
                each.join()
