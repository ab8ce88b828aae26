"""C functions run in processes of their own: results, times, and whatever a student can do wrong."""

import importlib.util
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from labkit.c import compile
from labkit.c import function as c_function
from labkit.c import run as c_run
from labkit.c.function import CFunction
from labkit.c.source import functions
from simt.common.errors import CompileError, Crash, InvalidAccess, LaunchError, SimtError, Timeout

ADD_ONE = "void add_one(int *x, int n) { for (int i = 0; i < n; i++) x[i] += 1; }"
HEADERS = "".join(
    f"#include <{name}.h>\n" for name in ("assert", "pthread", "stdio", "stdlib", "string", "unistd")
)
MARK = "/* here */"  # in the line that an error should name

sanitized = pytest.mark.skipif(sys.platform != "linux", reason="line numbers are those of gcc on Linux")


def f(source, options=()):
    return CFunction(source, "f", options)


def raised(error, source, *args, **limits):
    """The message of the error that the call ends in; it names the line with MARK."""
    source = HEADERS + source
    with pytest.raises(error) as caught:
        f(source)(*args, **limits)
    assert type(caught.value) is error
    line = next(k for k, text in enumerate(source.splitlines(), 1) if MARK in text)
    assert str(caught.value).startswith(f"line {line}: ")
    assert str(caught.value).endswith(f"\n    {line:>4} | {source.splitlines()[line - 1].strip()}")
    return str(caught.value)


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch, tmp_path):
    """Temporary files go, with what is in them."""
    f("void f(void) { }")()  # the builds that are kept as long as the process lives
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def plain(monkeypatch):
    """A compiler that has no sanitizers."""
    monkeypatch.setattr(c_function, "WATCHES", (c_function.PLAIN,))


@pytest.fixture
def address_sanitizer():
    """What needs AddressSanitizer's library: arrays of the function's own, free() and a limit of memory."""
    if not c_function._known(c_function.ADDRESS_SANITIZER, compile.find_compiler()):
        pytest.skip("needs AddressSanitizer's library: gcc has it, the compiler from pip (ziglang) does not")


def floats(*shape):
    return np.zeros(shape, np.float32)


class TestResults:
    def test_arrays_are_changed_in_place(self):
        x = np.arange(5, dtype=np.int32)
        assert CFunction(ADD_ONE, "add_one")(x, 5) is None
        assert x.tolist() == [1, 2, 3, 4, 5]

    def test_one_program_serves_all_sizes(self, monkeypatch):
        add_one = CFunction(ADD_ONE, "add_one")
        add_one(np.zeros(5, np.int32), 5)
        monkeypatch.setenv("CC", "/bin/false")
        with pytest.raises(CompileError):
            f("void f(void) {}")
        monkeypatch.undo()
        x = np.zeros(10000, np.int32)
        add_one(x, 10000)
        assert x.sum() == 10000

    @pytest.mark.parametrize(
        "dtype, c_type",
        [
            ("bool", "_Bool"),
            ("int8", "char"),
            ("uint8", "unsigned char"),
            ("int16", "short"),
            ("uint32", "unsigned"),
            ("int64", "long long"),
            ("int64", "long"),
            ("uint64", "unsigned long"),
            ("float32", "float"),
            ("float64", "double"),
        ],
    )
    def test_types(self, dtype, c_type):
        x = np.array([1, 0], dtype)
        value = f(f"{c_type} f({c_type} *x, {c_type} value) {{ x[1] = x[0]; return value; }}")(
            x, np.ones(1, dtype)[0]
        )
        assert x.tolist() == [1, 1] and value == 1

    def test_numbers(self):
        assert f("double f(float a, double b, int c) { return a + b * c; }")(0.5, 0.1, -3) == pytest.approx(
            0.2, rel=1e-15
        )
        assert f("int f(size_t n) { return n == 7; }".replace("size_t", "unsigned long"))(7) == 1
        assert f("const char *f(void) { return 0; }")() is None

    def test_arrays_of_rows(self):
        source = (
            "void f(int M, int N, float A[M][N], float (*B)[N], int8_t c[2][3][4]) { A[1][2] = B[1][0]; }"
        )
        A, B = floats(2, 3), floats(2, 3)
        B[1, 0] = 5
        f("#include <stdint.h>\n" + source)(2, 3, A, B, np.zeros((2, 3, 4), np.int8))
        assert A[1, 2] == 5

    def test_the_same_array_twice_is_the_same_memory(self):
        x = np.zeros(1, np.int32)
        f("int f(int *a, int *b) { *a = 3; return *b; }")(x, x)
        assert x[0] == 3

    def test_empty_arrays(self):
        f("void f(float *a, float *b) { }")(floats(0), floats(0))

    def test_arrays_are_aligned_for_vector_instructions(self):
        assert (
            f("int f(float *a, char *b) { return ((long)a | (long)b) % 64; }")(floats(3), np.zeros(5, "i1"))
            == 0
        )

    def test_standard_headers_threads_and_options(self):
        source = """
        #include <math.h>
        #include <pthread.h>
        static void *work(void *x) { *(float *)x = sqrtf(VALUE); return 0; }
        void f(float *x) { pthread_t thread; pthread_create(&thread, 0, work, x); pthread_join(thread, 0); }
        """
        x = floats(1)
        f(source, ["-DVALUE=9"])(x)
        assert x[0] == 3

    def test_names_and_macros_of_the_driver_are_free(self):
        source = "#define count 3\n#define size 4\nint allocate = 1, damaged = 2;"
        assert f(f"{source}\nint f(void) {{ return allocate + count; }}", ["-DALIGNMENT=1"])() == 4

    def test_what_is_printed_is_shown(self, capsys):
        f('#include <stdio.h>\nvoid f(void) { printf("to "); fprintf(stderr, "both\\n"); }')()
        assert capsys.readouterr().out == "to both\n"

    def test_the_standard_input_is_empty(self):
        assert f("#include <stdio.h>\nint f(void) { return getchar(); }")() == -1


class TestTime:
    def test_it_is_of_this_machine_and_changes_nothing(self):
        x = np.zeros(1000, np.int32)
        timing = CFunction(ADD_ONE, "add_one").time(x, 1000, samples=20)
        assert len(timing.samples) == 20 and 0 < timing.median < 1
        assert timing.source.startswith("measured here: ") and timing.source != "measured here: "
        assert not x.any()

    def test_every_sample_gets_the_same_arguments(self):
        source = "#include <assert.h>\nvoid f(int *x) { assert(*x == 5); *x = 0; }"
        f(source).time(np.array([5], np.int32), samples=10)

    def test_it_ends_after_a_second(self, monkeypatch):
        monkeypatch.setattr(c_run, "TIMING_SECONDS", 0.05)
        sleep = "#include <unistd.h>\nvoid f(int us) { usleep(us); }"
        assert 10 <= len(f(sleep).time(1000, samples=1000).samples) <= 60
        timing = f(sleep).time(60_000)
        assert len(timing.samples) == 3 and 60 <= timing.median < 200

    def test_a_mistake_that_shows(self):
        with pytest.raises(InvalidAccess, match=r"past the end of `a`.*Call f once without \.time"):
            f("void f(float *a, int n) { a[n] = 1; }").time(floats(4), 4)

    def test_the_time_limit_and_the_number_of_samples(self):
        with pytest.raises(Timeout, match=r"f ran for more than 0\.2 s"):
            f("void f(volatile int *x) { while (!*x) ; }").time(np.zeros(1, np.int32), timeout=0.2)
        with pytest.raises(ValueError, match=r"samples=0\. Choose at least 1"):
            f("void f(void) { }").time(samples=0)


@sanitized
class TestAccess:
    def test_behind_an_argument(self):
        source = "void f(const float *a, float *c, int n) {\n    c[n * n] = a[0]; /* here */\n}"
        message = raised(InvalidAccess, source, floats(33, 33), floats(33, 33), 33)
        place = "`c[1089]` (`c[33, 0]`) is past the end of `c`, which has 33 x 33 elements"
        assert f"invalid write of 4 bytes: {place}" in message

    def test_before_an_argument(self):
        message = raised(InvalidAccess, "double f(double *a) { return a[-2]; /* here */ }", np.zeros(4))
        assert "invalid read of 8 bytes: `a[-2]` is before the start of `a`, which has 4 elements" in message

    def test_an_unsigned_index_below_zero(self):
        message = raised(
            InvalidAccess, "float f(float *a, size_t i) { return a[i - 1]; /* here */ }", floats(4), 0
        )
        assert "`a[-1]` is before the start of `a`" in message

    def test_far_behind(self):
        source = "void f(int n, int *a) { a[n] = 1; /* here */ }"
        assert "past the end of `a`" in raised(InvalidAccess, source, 2**28, np.zeros(4, np.int32))

    def test_arguments_keep_what_they_were_before_a_crash(self):
        a = floats(4)
        raised(InvalidAccess, "void f(float *a) {\n a[0] = 1;\n a[4] = 1; /* here */ }", a)
        assert not a.any()

    def test_in_a_function_of_the_library(self):
        message = raised(
            InvalidAccess, "void f(float *a, int n) { memset(a, 0, n); /* here */ }", floats(4), 40
        )
        assert "invalid write of 40 bytes in memset: `a[4]` is past the end of `a`" in message

    def test_in_a_helper_and_an_intrinsic(self):
        source = """#include <immintrin.h>
        static void add(float *a) { _mm_storeu_ps(a, _mm_loadu_ps(a - 4)); /* here */ }
        void f(float *a) { add(a + 4); }"""
        assert "16 bytes" in raised(InvalidAccess, source, floats(7))

    def test_in_a_thread(self):
        source = """static void *work(void *x) { ((int *)x)[4] = 1; /* here */ return 0; }
        void f(int *x) { pthread_t thread; pthread_create(&thread, 0, work, x); pthread_join(thread, 0); }"""
        raised(InvalidAccess, source, np.zeros(4, np.int32))

    @pytest.mark.parametrize(
        "body, message",
        [
            ("int x[4]; x[n] = 1; return x[0];", "index 4 out of bounds for type 'int[4]'"),
            ("int *p = n ? 0 : &n; *p = 1; return 0;", "invalid write: the pointer is null"),
            (
                "int *p = (int *)0x1234567812345678; return *p;",
                "the pointer holds no address. Was it ever set?",
            ),
            (
                "int x[3] = {0}; char *volatile p = (char *)x + 1; return *(int *)p;",
                "its address is not a multiple of 4",
            ),
        ],
    )
    def test_elsewhere(self, body, message):
        told = raised(InvalidAccess, f"int f(int n) {{ {body} {MARK} }}", 4)
        assert message in told.replace("int [", "int[")

    @pytest.mark.usefixtures("address_sanitizer")
    @pytest.mark.parametrize(
        "body, message",
        [
            ("int x[4], *p = x; p[n] = 1; return x[0];", "outside the array x"),
            ("int x[n], *p = x; p[n] = 1; return x[0];", "outside the function's local arrays"),
            ("static int x[4]; int *p = x; return p[n];", "outside the array x"),
            (
                "int *p = malloc(4 * n); p[n] = 1; return p[0];",
                "4 bytes past the end of the 16 bytes from malloc",
            ),
            ("int *p = malloc(4 * n); free(p); return p[0];", "the memory is freed already"),
            (
                "int *volatile p = malloc(4 * n); free(p); free(p); return 0;",
                "free() of memory that is freed already",
            ),
            ("free(&n); return 0;", "free() of an address that malloc did not give"),
        ],
    )
    def test_arrays_of_the_functions_own(self, body, message):
        assert message in raised(InvalidAccess, f"int f(int n) {{ {body} {MARK} }}", 4)

    @pytest.mark.usefixtures("address_sanitizer")
    def test_an_argument_that_is_freed(self):
        message = raised(InvalidAccess, "void f(float *a) { free(a); /* here */ }", floats(4))
        assert "free() of `a`, which belongs to the notebook" in message

    def test_an_aligned_load_at_an_address_that_is_not(self):
        source = """#include <immintrin.h>
        float f(float *a) { return _mm_cvtss_f32(_mm_load_ps(a + 1)); /* here */ }"""
        assert "its address is not a multiple of 16" in raised(InvalidAccess, source, floats(8))


@sanitized
class TestCrash:
    @pytest.mark.parametrize(
        "body, message",
        [
            ("return n / (n - 4);", "division by zero"),
            (
                "return n + 2147483647;",
                "signed integer overflow: 4 + 2147483647 cannot be represented in type 'int'",
            ),
            ("return 1 << (n + 40);", "shift exponent 44 is too large for 32-bit type 'int'"),
            ("assert(n == 3 && 1); return 0;", "assertion failed: n == 3 && 1"),
            ("abort();", "it called abort()"),
            ("exit(n - 1);", "it called exit(3), which would end the notebook"),
            ("exit(0);", "it called exit(0)"),
            ("volatile int x[100]; x[n % 9] = n; return f(n ^ 1) + x[n % 9];", "the stack is full"),
            ("volatile char x[64 << 20]; x[n] = 1; return x[n];", "the stack is full"),
            (
                "__builtin_trap();",
                "code that this CPU does not have, or that is marked as never to be reached",
            ),
        ],
    )
    def test_crash(self, body, message):
        assert message in raised(Crash, f"int f(int n) {{ {body} {MARK} }}", 4)

    @pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
    def test_a_process_without_a_limit_of_the_stack(self):
        """Such as this one, when NVRTC has met code that does not compile."""
        import resource

        before = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (before[1], before[1]))
        try:
            for body in ("volatile char x[64 << 20]; x[n] = 1; return x[n];", "return n ? f(n) + 1 : 0;"):
                assert "the stack is full" in raised(Crash, f"int f(int n) {{ {body} {MARK} }}", 4)
        finally:
            resource.setrlimit(resource.RLIMIT_STACK, before)

    def test_what_was_printed_before_is_shown(self, capsys):
        raised(Crash, 'void f(void) { printf("n is 4"); assert(0); /* here */ }')
        assert capsys.readouterr().out == "n is 4"
        raised(Crash, 'int f(int n) { printf("n is 4"); return 1 / n; /* here */ }', 0)
        assert capsys.readouterr().out == "n is 4"

    @pytest.mark.usefixtures("address_sanitizer")
    def test_memory_without_end(self, monkeypatch):
        monkeypatch.setattr(c_run, "MEMORY_BYTES", 2**28)
        source = (
            HEADERS + "void f(void) { for (;;) { char *p = malloc(1 << 20); if (p) memset(p, 1, 1 << 20); } }"
        )
        with pytest.raises(Crash, match="f used more than 268,435,456 bytes of memory and was stopped"):
            f(source)()

    def test_malloc_may_give_null(self):
        assert (
            f("#include <stdlib.h>\nint f(void) { void *volatile p = malloc(1L << 45); return p == 0; }")()
            == 1
        )

    def test_arguments_larger_than_the_limit(self, monkeypatch, plain):
        monkeypatch.setattr(c_run, "memory_limit", lambda arguments: 2**24)
        with pytest.raises(
            LaunchError, match=r"the arguments have 67,108,864 bytes, and on this machine f gets 16,777,216"
        ):
            f("void f(float *a) { }")(floats(2**24))

    def test_printing_without_end(self, capsys):
        with pytest.raises(Crash, match="f printed more than 1,048,576 bytes and was stopped"):
            f('#include <stdio.h>\nvoid f(void) { for (;;) printf("and so on\\n"); }')()
        shown = capsys.readouterr().out
        assert shown.startswith("and so on\nand") and len(shown) < 2100

    def test_the_notebooks_process_and_the_next_call_are_well(self):
        source = HEADERS + "#include <signal.h>\nint f(int n) { return n ? kill(getpid(), SIGKILL) : 7; }"
        with pytest.raises(Crash, match="SIGKILL"):
            f(source)(1)
        assert f(source)(0) == 7


class TestTimeLimit:
    @sanitized
    def test_an_endless_loop_names_its_line(self):
        start = time.perf_counter()
        source = "void f(volatile int *x) {\n    x[1] = 1;\n    while (!x[0]) ; /* here */\n}"
        message = raised(Timeout, source, np.zeros(2, np.int32), timeout=1.5)
        assert "f ran for more than 1.5 s and was stopped" in message
        assert time.perf_counter() - start < 30  # on a busy machine, too

    @sanitized
    def test_a_thread_that_loops(self):
        source = """static void *work(void *x) { while (!*(volatile int *)x) ; return 0; }
        void f(int *x) { pthread_t t; pthread_create(&t, 0, work, x);
            pthread_join(t, 0); /* here */ }"""
        raised(Timeout, source, np.zeros(1, np.int32), timeout=1.5)

    @pytest.mark.skipif(os.name != "posix", reason="no fork")
    def test_a_process_that_it_started_is_killed(self, tmp_path_factory):
        sign = tmp_path_factory.mktemp("sign") / "alive"
        source = f"""#include <stdio.h>
        #include <unistd.h>
        void f(void) {{ if (!fork()) {{ usleep(2500000); fclose(fopen("{sign}", "w")); }} pause(); }}"""
        with pytest.raises(Timeout):
            f(source)(timeout=0.2)
        time.sleep(2.6)  # longer than a report may take, and the process it is about
        assert not sign.exists()

    @pytest.mark.skipif(os.name != "posix", reason="no signals")
    def test_ctrl_c_kills_the_process(self, tmp_path_factory):
        sign = tmp_path_factory.mktemp("sign") / "pid"
        note = f'FILE *file = fopen("{sign}", "w"); fprintf(file, "%d", getpid()); fclose(file);'
        waiting = f(f"{HEADERS}void f(void) {{ {note} pause(); }}")
        threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            waiting()
        with pytest.raises(ProcessLookupError):
            os.kill(int(sign.read_text()), 0)


class TestArguments:
    @pytest.mark.parametrize(
        "wrong, message",
        [
            (
                lambda a: (a.astype("f8"), 4, 1.0),
                r"argument 0 \(float64, shape \(2, 2\)\) does not fit: f takes const float \*a",
            ),
            (lambda a: (4, 4, 1.0), r"argument 0 \(int32\) does not fit: f takes const float \*a"),
            (lambda a: (1.5, 4, 1.0), r"argument 0 \(float64\) does not fit"),
            (lambda a: (a, a, 1.0), r"argument 1 \(float32, shape \(2, 2\)\) does not fit: f takes int n"),
            (lambda a: (a, 4.0, 1.0), "argument 1 is the float 4.0; f takes int n, an integer"),
            (lambda a: (a, 2**31, 1.0), "argument 1 is 2147483648, which does not fit C's int"),
            (
                lambda a: (a, 4),
                r"f takes 3 arguments, 2 were given. It is declared as f\(const float \*a, int n, float s\)",
            ),
            (lambda a: (a, 4, 1.0, 1), "f takes 3 arguments, 4 were given"),
            (
                lambda a: (a.tolist(), 4, 1.0),
                "argument 0 is a list; a C function takes NumPy arrays and numbers",
            ),
            (
                lambda a: (a.T, 4, 1.0),
                "argument 0 .* is not contiguous, row after row. Pass np.ascontiguousarray",
            ),
            (lambda a: (np.broadcast_to(a[0], (1, 2)), 4, 1.0), "argument 0 .* is read-only.* Pass a copy"),
            (lambda a: (a.astype("f2"), 4, 1.0), "argument 0 is float16; a C function takes float32"),
            (lambda a: (a.astype(">f4"), 4, 1.0), "argument 0 is >f4; .* in this machine's byte order"),
        ],
    )
    def test_what_does_not_fit(self, wrong, message):
        function = f("float f(const float *a, int n, float s) { return a[n - 1] + s; }")
        with pytest.raises(LaunchError, match=message):
            function(*wrong(floats(2, 2)))

    def test_arrays_that_overlap(self):
        x = floats(8)
        with pytest.raises(LaunchError, match=r"argument 1 .*\(6,\)\) overlaps argument 0 .*\(8,\)"):
            f("void f(float *a, float *b) { }")(x, x[2:])


class TestSource:
    def test_definitions(self):
        source = """#include <math.h>
        // int no(void) { return 0; }
        struct point { int x; };
        static const float t[] = {1, 2};
        int declared(int);
        static inline float dot(const float *a, float (*B)[3], int (*less)(int, float), size_t n)
        { char *s = "}"; if (n) { return '{'; } return 0; }
        __attribute__((noinline)) float *last(void) { return 0; }"""
        dot, last = functions(source)
        assert (
            str(dot) == "dot(const float *a, float (*B)[3], int (*less)(int, float), size_t n)" and dot.static
        )
        assert str(last) == "last(void)" and not last.static

    def test_a_syntax_error(self):
        with pytest.raises(CompileError) as caught:
            f("void f(void) {\n    int x = y;\n}")
        assert caught.value.lines[0][:2] == (2, "error")

    def test_an_open_comment(self):
        with pytest.raises(CompileError) as caught:
            f("void f(void) { }\n/* and")
        assert caught.value.lines[0][:2] == (2, "error")

    def test_no_such_function(self):
        with pytest.raises(CompileError, match=r"The source has no function 'f'\. It has: g, h\."):
            f("void g(void) { }\nvoid h(void) { }")

    def test_a_whole_program(self):
        with pytest.raises(CompileError, match=r"a function main\. Write only the function that computes"):
            f("void f(void) { }\nint main(void) { f(); }")

    def test_a_helper_that_is_only_declared(self):
        with pytest.raises(SimtError, match="helper is declared and called, but not defined"):
            f("int helper(int);\nint f(void) { return helper(1); }")()


@pytest.mark.parametrize(
    "instead", ['mkfifo("output", 0700)', 'mkdir("output", 0700)', 'symlink("/dev/zero", "output")', "0"]
)
def test_something_else_in_the_place_of_the_output(instead):
    with pytest.raises(SimtError, match="its output is gone"):
        f(f'{HEADERS}#include <sys/stat.h>\nvoid f(void) {{ unlink("output"); (void)!{instead}; }}')()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_a_process_left_behind_is_ended():
    pid = f(f"{HEADERS}int f(void) {{ int pid = fork(); while (pid == 0) pause(); return pid; }}")()
    stat, until = Path(f"/proc/{pid}/stat"), time.monotonic() + 10
    while stat.exists() and ") Z " not in stat.read_text():
        assert time.monotonic() < until, "it goes on"  # a busy machine takes a moment to end what is killed
        time.sleep(0.01)


def test_a_function_that_stops_itself_is_ended():
    with pytest.raises(Timeout, match=r"more than 0\.5 s"):
        f(f"{HEADERS}#include <signal.h>\nvoid f(void) {{ raise(SIGSTOP); }}")(timeout=0.5)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limits on the compiler here")
@pytest.mark.parametrize(
    "source", ['#include "/dev/zero"\nvoid f(void) {}', "char big[1L << 29] = {1};\nvoid f(void) {}"]
)
def test_a_source_without_end_is_refused(source, monkeypatch):
    monkeypatch.setattr(compile, "COMPILE_SECONDS", 10)
    with pytest.raises(CompileError):
        f(source)()


@pytest.mark.usefixtures("plain")
class TestWithoutSanitizers:
    def test_it_computes(self):
        assert f("float f(float *a) { return a[0] = 3; }")(floats(1)) == 3

    @pytest.mark.parametrize(
        "index, where",
        [(4, "past the end"), (6, "past the end"), (-1, "before the start")],
    )
    def test_a_write_next_to_an_argument(self, index, where):
        with pytest.raises(InvalidAccess, match=rf"`a\[{index}\]` is {where} of `a`"):
            f("void f(float *a, int i) { a[i] = 1; }")(floats(4), index)

    @pytest.mark.parametrize(
        "error, body, message",
        [
            (InvalidAccess, "*(volatile int *)(long)(n - n) = 1; return 0;", "SIGSEGV"),
            (InvalidAccess, "volatile int x[100]; x[0] = n; return f(n) + x[0];", "its recursion has no end"),
            (Crash, "abort();", "abort"),
            (Crash, "exit(3);", r"exit\(3\)"),
            (Crash, "assert(n == 1); return 0;", r"line 7: assertion failed: n == 1"),
            (
                InvalidAccess,
                "for (;;) { char *volatile p = malloc(1 << 24); memset(p, 1, 1 << 24); }",
                "SIGSEGV",
            ),
        ],
    )
    def test_what_goes_wrong(self, monkeypatch, error, body, message):
        monkeypatch.setattr(c_run, "MEMORY_BYTES", 2**28)
        with pytest.raises(error, match=message):
            f(f"{HEADERS}int f(int n) {{ {body} }}")(4)

    def test_an_endless_loop(self):
        with pytest.raises(Timeout, match=r"0\.5 s"):
            f("int f(int n) { for (volatile int i = 0;; i = n) ; }")(4, timeout=0.5)


@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="needs pip install labkit[cc]")
def test_the_compiler_from_pip(monkeypatch):
    """It has no AddressSanitizer; bounds.c looks."""
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc")
    with pytest.raises(InvalidAccess, match=r"line 1: .*`a\[4\]` is past the end of `a`"):
        f("void f(float *a) { a[4] = 1; }")(floats(4))
    with pytest.raises(InvalidAccess, match=r"line 1: .*`a\[-1\]` is before the start of `a`"):
        f("float f(float *a) { return a[-1]; }")(floats(4))
    with pytest.raises(LaunchError, match=r"argument 0 .*f takes float \*a"):
        f("void f(float *a) { a[4] = 1; }")(np.zeros(4))
    with pytest.raises(LaunchError, match="takes 1 argument, 0 were given"):
        f("void f(float *a) { a[4] = 1; }")()


def test_ld_preload_does_not_keep_the_sanitizer_from_starting(monkeypatch):
    """On Colab it names an allocator."""
    library = next(Path("/").glob("usr/lib/*/libm.so.6"), None)
    if library is None:
        pytest.skip("no library to load")
    monkeypatch.setenv("LD_PRELOAD", str(library))
    with pytest.raises(InvalidAccess, match="line 1"):
        f("void f(float *a) { a[4] = 1; }")(floats(4))
