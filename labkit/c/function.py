"""A C function in a process of its own: whatever it does, the notebook goes on.

Its source is compiled with driver.c into a program. The program reads the arguments from a file, calls the
function and writes the arrays back. It depends only on the types of the arguments, so one program serves all
sizes.
"""

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.c.arguments import Arguments, bind, misfit
from labkit.c.calls import Calls, Left
from labkit.c.compile import FILE_NAME, FLAGS, build, compile_log, find_compiler, makes_vectors, way
from labkit.c.process import MAX_PRINTED_BYTES
from labkit.c.report import without_assert
from labkit.c.run import GUARD_BYTES, NO_MEMORY, CRun, result, run_calls, run_program, times
from labkit.c.source import find_function, with_call
from simt.common.errors import CompileError, Crash, InvalidAccess
from simt.common.processor import cpu_name

if TYPE_CHECKING:
    from labkit.devices.timing import Timing

WATCHED = ("-O1", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=undefined")


@dataclass(frozen=True)
class Watch:
    """A way to find mistakes: the compiler's flags, and the bytes of guard around each argument.

    `behind` is C code appended to the student's; `beside` is a C file of this folder that is linked with it.
    """

    flags: tuple[str, ...]
    guard: int
    behind: str = ""
    beside: str = ""


# Three checks of UBSan are off: AddressSanitizer finds the same accesses and reports how far outside they
# are.
ADDRESS_SANITIZER = Watch(
    (
        *(*FLAGS, *WATCHED, "-fsanitize=address,undefined"),
        "-fno-sanitize=null,object-size,pointer-overflow",
    ),
    guard=0,
    # Some compilers accept -fsanitize=address but have no library for it: then this does not link.
    behind="int __asan_address_is_poisoned(const volatile void *);\n"
    "__attribute__((constructor)) static void labkit_sanitizer(void) { __asan_address_is_poisoned(0); }\n",
)
# clang calls a function for each access, and bounds.c has these functions.
_CALLS = ("instrumentation-with-call-threshold=0", "stack=0", "globals=0", "kernel-mem-intrinsic-prefix=1")
BOUNDS = Watch(
    (
        *(*FLAGS, *WATCHED, "-fsanitize=undefined", "-fsanitize=kernel-address"),
        *("-fno-sanitize=object-size,pointer-overflow", "-fno-sanitize-trap=all"),
        # Each function needs its own frame to be on the stack, and memset() must not be glibc's.
        *("-fno-optimize-sibling-calls", "-fno-inline", "-U_FORTIFY_SOURCE"),
        *(word for option in _CALLS for word in ("-mllvm", f"-asan-{option}")),
    ),
    guard=2**16,  # an access further away most likely hits no memory at all
    beside="bounds.c",
)
PLAIN = Watch((*FLAGS, "-O1", "-g"), guard=GUARD_BYTES)
WATCHES = (ADDRESS_SANITIZER, BOUNDS, PLAIN)
OBJECT = {
    "driver.c": ("-O1",),
    "calls.c": ("-O1",),
    "bounds.c": (*WATCHED[:-1], "-fsanitize=unreachable", "-fno-sanitize-trap=all"),
}
SHOWN_OF_TOO_MUCH = 2000  # characters


class CFunction:
    """The function `name` of C `source`, to be called from Python.

        matmul = CFunction(source, "matmul", ["-DTILE=16"])
        matmul(A, B, C, 64)                      # changes C; a mistake is an error that names its line
        matmul.time(A, B, C, 64)                 # milliseconds of the optimised build; changes nothing

    `options` go to the compiler. Raises CompileError where the source does not compile, has no such function,
    or is a whole program with a main.
    """

    def __init__(self, source: str, name: str, options: Sequence[str] = ()) -> None:
        compile_log(source, options)  # first alone: labkit's appended code would confuse the messages
        self.source, self.name, self.options = source, name, tuple(options)
        self.function = find_function(source, name)

    def __repr__(self) -> str:
        return f"<C function {self.function}>"

    def variant(
        self, source: str | None = None, name: str | None = None, options: Sequence[str] | None = None
    ) -> "CFunction":
        """Return the same function with these changes. Raises CompileError as the constructor does."""
        return CFunction(
            self.source if source is None else source,
            self.name if name is None else name,
            self.options if options is None else options,
        )

    def compiled(self, how: str) -> "CFunction":
        """Return the same function, compiled in one of `compile.WAYS`, if the compiler has it."""
        return self.variant(options=[*self.options, *way(how)])

    def makes_vectors(self) -> bool:
        """Return whether instructions of the optimised build multiply several numbers at a time."""
        return makes_vectors(self.source, self.options)

    def __call__(self, *args: Any, timeout: float = 10) -> Any:
        """Call the function once, with sanitizers where available; return its number or None.

        NumPy arrays become pointers and are changed in place, unless the call ends in an error. NumPy scalars
        keep their type; a Python int is an `int`; C converts a Python float to the parameter's type. What the
        function prints is printed. `timeout` is in seconds. Raises InvalidAccess, Crash or Timeout;
        LaunchError for arguments that do not fit.
        """
        arguments = bind(args, self.function)
        run = self._run_watched(arguments, timeout)
        _show(run.printed)
        value, data = result(run, arguments, self.name, self.source, timeout)
        arguments.update(data)
        return value

    def time(self, *args: Any, samples: int = 50, timeout: float = 60) -> "Timing":
        """Time up to `samples` calls of the optimised build (-O3): at least 3, then until a second is over.

        Each sample is one call on `args`, which stay unchanged; a warm-up comes first. Compilation, the start
        of the process and copies are not measured. What the function prints is not shown. Raises as a call
        does, but without the line: call the function once to see it.
        """
        from labkit.devices.timing import Timing  # imported here: it takes time to import

        if samples < 1:
            raise ValueError(f"samples={samples}. Choose at least 1.")
        arguments = bind(args, self.function)
        program = self._program(FLAGS, arguments)
        run = run_program(program, arguments, timeout, samples=samples)
        try:
            samples_ms = times(run, arguments, self.name, self.source, timeout)
        except (Crash, InvalidAccess) as error:
            if "\n" in str(error):  # the message already has its line
                raise
            raise type(error)(f"{error}. Call {self.name} once without .time to see where") from None
        return Timing(samples_ms, f"measured here: {cpu_name()}")

    def make(self, calls: Sequence[Sequence[Any]], timeout: float = 60) -> float:
        """Make these calls in the optimised build, one after the other; return their processor's seconds.

        Each call gets its own arrays, between pages that nobody can read or write, and changes them in place.
        The time is taken from outside the function's process, without the start of that process. Raises as a
        call does.
        """
        if sys.platform == "win32":  # the function's own process takes the time
            return sum(self._timed(args, timeout) for args in calls)
        arguments = Calls([bind(args, self.function) for args in calls])
        left = self._make(arguments, timeout)
        return arguments.update(left, self.name, self.source, timeout)

    def _timed(self, args: Sequence[Any], timeout: float) -> float:
        """Make a call in the optimised build, and return its seconds."""
        best = min(self.time(*args, samples=3, timeout=timeout).samples)
        arguments = bind(args, self.function)
        run = run_program(self._program(FLAGS, arguments), arguments, timeout)
        arguments.update(result(run, arguments, self.name, self.source, timeout)[1])
        return best / 1e3

    def _make(self, calls: Calls, timeout: float) -> Left:
        return run_calls(self._program(FLAGS, calls.arguments[0]), calls, timeout)

    def program(self, *args: Any) -> bytes:
        """Return the optimised program for arguments of these types; driver.c takes how to run it."""
        return self._program(FLAGS, bind(args, self.function)).read_bytes()

    def _run_watched(self, arguments: Arguments, timeout: float) -> CRun:
        """Run the function with the first way to find mistakes that this compiler supports and starts."""
        for watch in WATCHES:
            if not _known(watch, find_compiler()):
                continue
            program = self._program(watch.flags, arguments, watch)
            run = run_program(program, arguments, timeout, guard=watch.guard)
            if run.started or run.ended.code == NO_MEMORY:
                break
        return run

    def _program(self, flags: Sequence[str], arguments: Arguments, watch: Watch | None = None) -> Path:
        source = with_call(self.source, self.function, arguments.values)
        try:
            return _linked(source, flags, ("-pthread", *self.options, "-lm"), watch or PLAIN)
        except CompileError as error:
            raise misfit(error, self.function, arguments.values) or error from None


def accesses_source() -> str:
    """Return C that, behind a matmul, writes down the cache lines which it uses."""
    return Path(__file__).with_name("accesses.c").read_text(encoding="utf-8")


def _show(printed: str) -> None:
    """Print what the function printed, except a failed assert's message, which the error shows."""
    text = without_assert(printed)
    print(text if len(text) < MAX_PRINTED_BYTES else f"{text[:SHOWN_OF_TOO_MUCH]}\n…\n", end="")


def _linked(
    source: str, flags: Sequence[str], options: Sequence[str], watch: Watch, *, first: bool = False
) -> Path:
    """Build a program from the source, driver.c and what watches it; `first` as for `build`."""
    files: dict[str, str | bytes] = {FILE_NAME: source + watch.behind}
    files |= {"driver.o": _object("driver.c"), "calls.o": _object("calls.c")}
    if watch.beside:
        files["beside.o"] = _object(watch.beside)
    return build(files, [*flags, *files, *options], ".exe", first=first)


@functools.cache
def _known(watch: Watch, compiler: tuple[str, ...] | None) -> bool:
    """Return whether the compiler can build a program that is watched in this way."""
    if watch == PLAIN:
        return True
    call = "const char *labkit_call(void **a, void *b) { return a ? b : 0; }\n"
    try:
        _linked(call, watch.flags, (), watch, first=True)
    except CompileError:
        return False
    return True


@functools.cache
def _object(name: str) -> bytes:
    """Compile a C file of this folder, without the student's options: they may define its names."""
    source = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return build({name: source}, (*OBJECT[name], "-c", name), ".o").read_bytes()
