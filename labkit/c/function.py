"""A C function in a process of its own: whatever it does, the notebook goes on.

Its source is compiled together with driver.c into a program. The program reads the arguments from a
file, calls the function and writes the arrays back. It depends on the types of the arguments alone, so one
program serves all sizes.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.c.arguments import Arguments, bind, misfit
from labkit.c.compile import FILE_NAME, FLAGS, build, compile_log
from labkit.c.process import MAX_PRINTED_BYTES
from labkit.c.report import without_assert
from labkit.c.run import NO_MEMORY, Run, result, run_program, times
from labkit.c.source import find_function, with_call
from labkit.core.errors import CompileError, Crash, InvalidAccess

if TYPE_CHECKING:
    from labkit.device.timing import Timing

# Three checks of UBSan are off: AddressSanitizer finds the same accesses and says how far outside they are.
CHECKED = (
    *(*FLAGS, "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"),
    *("-fno-sanitize=null,object-size,pointer-overflow", "-fno-sanitize-recover=undefined"),
)
PLAIN = (*FLAGS, "-O1", "-g")
# Some compilers accept -fsanitize=address and leave it out: then this does not link.
NEEDS_SANITIZER = (
    "int __asan_address_is_poisoned(const volatile void *);\n"
    "int (*labkit_sanitizer)(const volatile void *) = __asan_address_is_poisoned;\n"
)
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
        compile_log(source, options)  # alone first: what labkit puts behind it would confuse the messages
        self.source, self.name, self.options = source, name, tuple(options)
        self.function = find_function(source, name)

    def __repr__(self) -> str:
        return f"<C function {self.function}>"

    def variant(
        self, source: str | None = None, name: str | None = None, options: Sequence[str] | None = None
    ) -> "CFunction":
        """The same function but for what is given here. Raises CompileError as the constructor does."""
        return CFunction(
            self.source if source is None else source,
            self.name if name is None else name,
            self.options if options is None else options,
        )

    def __call__(self, *args: Any, timeout: float = 10) -> Any:
        """Call the function once, watched by sanitizers where there are any; return its number or None.

        NumPy arrays become pointers and are changed in place, unless the call ends in an error. NumPy scalars
        go by their type; a Python int is an `int`; C converts a Python float to what the parameter is.
        What the function prints is printed. `timeout` is in seconds.
        Raises InvalidAccess, Crash or Timeout; LaunchError for arguments that do not fit.
        """
        arguments = bind(args, self.function)
        run = self._run_watched(arguments, timeout)
        _show(run.printed)
        value, data = result(run, arguments, self.name, self.source, timeout)
        arguments.update(data)
        return value

    def time(self, *args: Any, samples: int = 50, timeout: float = 60) -> "Timing":
        """Time up to `samples` calls of the optimised build (-O3): at least 3, then until a second is over.

        Each sample is one call on `args`, which stay as they are; a warm-up comes first. Not measured:
        compilation, the start of the process, copies. What the function prints is not shown.
        Raises as a call does, but without the line: call the function once to see it.
        """
        from labkit.cpu.machine import cpu_name  # here: pandas takes half a second to start
        from labkit.device.timing import Timing

        if samples < 1:
            raise ValueError(f"samples={samples}. Choose at least 1.")
        arguments = bind(args, self.function)
        program = self._program(FLAGS, arguments)
        run = run_program(program, arguments, timeout, sanitized=False, samples=samples)
        try:
            samples_ms = times(run, arguments, self.name, self.source, timeout)
        except (Crash, InvalidAccess) as error:
            if "\n" in str(error):  # it has its line
                raise
            raise type(error)(f"{error}. Call {self.name} once without .time to see where") from None
        return Timing(samples_ms, f"measured here: {cpu_name()}")

    def program(self, *args: Any) -> bytes:
        """The program of the optimised build, which driver.c tells how to run, for arguments of such
        types.
        """
        return self._program(FLAGS, bind(args, self.function)).read_bytes()

    def _run_watched(self, arguments: Arguments, timeout: float) -> Run:
        """Run the build with sanitizers, or the plain one where they do not compile or do not start."""
        try:
            program = self._program(CHECKED, arguments, NEEDS_SANITIZER)
            run = run_program(program, arguments, timeout, sanitized=True)
            if run.started or run.ended.code == NO_MEMORY:
                return run
        except CompileError:
            pass
        return run_program(self._program(PLAIN, arguments), arguments, timeout, sanitized=False)

    def _program(self, flags: Sequence[str], arguments: Arguments, behind: str = "") -> Path:
        source = with_call(self.source, self.function, arguments.values) + behind
        files: dict[str, str | bytes] = {FILE_NAME: source, "driver.o": _driver()}
        try:
            link = (FILE_NAME, "driver.o", "-pthread", *self.options, "-lm")
            return build(files, [*flags, *link], ".exe")
        except CompileError as error:
            raise misfit(error, self.function, arguments.values) or error from None


def _show(printed: str) -> None:
    """Print what the function printed, but for a failed assert's message: the error says it."""
    text = without_assert(printed)
    print(text if len(text) < MAX_PRINTED_BYTES else f"{text[:SHOWN_OF_TOO_MUCH]}\n…\n", end="")


@functools.cache
def _driver() -> bytes:
    """Object code of driver.c. It is compiled without the student's options, which may define its names."""
    source = Path(__file__).with_name("driver.c").read_text(encoding="utf-8")
    return build({"driver.c": source}, ("-O1", "-c", "driver.c"), ".o").read_bytes()
