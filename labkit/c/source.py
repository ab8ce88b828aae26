"""C source: the functions it defines, and the code that calls one of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simt.common.errors import CompileError, LaunchError

CALL_FILE = "call.c"  # the file name that the compiler reports for the lines `with_call` appends

# NumPy's kind and size -> C. int64_t is `long` on Linux: `_c_type` handles `long long`.
C_TYPES = {
    "b1": "_Bool",
    "i1": "signed char",
    "u1": "unsigned char",
    "i2": "short",
    "u2": "unsigned short",
    "i4": "int",
    "u4": "unsigned int",
    "i8": "__INT64_TYPE__",
    "u8": "__UINT64_TYPE__",
    "f4": "float",
    "f8": "double",
}

# Comments, directives, strings and characters contain no definitions.
_NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S | re.M
)
_BODY = "\0"
_DEFINITION = re.compile(
    r"(?P<before>[^;\0]*?)\b(?P<name>\w+)\s*\((?P<parameters>(?:[^();\0]|\([^()]*\))*)\)\s*\0"
)


@dataclass(frozen=True)
class Function:
    """A function that C source defines; each of `parameters` as it is declared, such as `const float *A`."""

    name: str
    parameters: tuple[str, ...]
    static: bool

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters) or 'void'})"

    def parameter(self, position: int) -> str:
        """Return the parameter's declaration; empty where there is none."""
        return self.parameters[position] if position < len(self.parameters) else ""


def functions(source: str) -> list[Function]:
    """Return the functions that the source defines, in order. It is read as text; macros stay as they are."""
    text, bodies = _NOISE.sub(" ", source), 1
    while bodies:
        text, bodies = re.subn(r"\{[^{}]*\}", _BODY, text)
    return [
        Function(match["name"], _split(match["parameters"]), bool(re.search(r"\bstatic\b", match["before"])))
        for match in _DEFINITION.finditer(text)
    ]


def find_function(source: str, name: str) -> Function:
    """Return the source's function `name`. Raises CompileError if there is none, or for a whole program."""
    defined = {function.name: function for function in functions(source)}
    if "main" in defined:
        raise CompileError(
            "The source holds a program, with a function main. Write only the function that computes: "
            "labkit calls it with NumPy arrays, as often as needed. Take main out."
        )
    if name not in defined:
        has = f"It has: {', '.join(defined)}." if defined else "It has none."
        raise CompileError(f"The source has no function {name!r}. {has}")
    return defined[name]


def with_call(source: str, function: Function, args: Sequence[np.ndarray]) -> str:
    """Append `labkit_call` to the source: it calls `function`, and driver.c calls it.

    Only the types of `args` matter, not their sizes or values; an array without axes stands for a number. The
    compiler reports what is wrong with argument k in line k + 2 of CALL_FILE, and with the number of
    arguments in its first line.
    """
    spread = "\n".join(
        f"{_expression(arg, function.parameter(k), k)}{',' if k < len(args) - 1 else ''}"
        for k, arg in enumerate(args)
    )
    call = f"{function.name}({spread.replace(chr(10), ' ')})"
    # A void call has no value to keep, so __builtin_choose_expr replaces it by an empty structure.
    return f"""{source}
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wint-conversion"
typedef struct {{ char nothing; }} labkit_nothing;
const char *labkit_call(void **labkit_argument, void *labkit_value)
{{
    int labkit_columns = 1; /* of an array with two subscripts: any number fits a variable one */
    (void)labkit_columns;
#line 1 "{CALL_FILE}"
    typedef __typeof__({function.name}(
{spread}
    )) labkit_returned;
#define LABKIT_VOID __builtin_types_compatible_p(labkit_returned, void)
    __typeof__(__builtin_choose_expr(LABKIT_VOID, (labkit_nothing){{0}}, {call})) labkit_result =
        __builtin_choose_expr(LABKIT_VOID, ({call}, (labkit_nothing){{0}}), {call});
    __builtin_memcpy(labkit_value, &labkit_result, sizeof labkit_result <= 16 ? sizeof labkit_result : 0);
    return _Generic(labkit_result, _Bool: "?", char: "b", signed char: "b", unsigned char: "B", short: "h",
        unsigned short: "H", int: "i", unsigned int: "I", long: "l", unsigned long: "L", long long: "q",
        unsigned long long: "Q", float: "f", double: "d", default: "");
}}
"""


def _split(parameters: str) -> tuple[str, ...]:
    """Split at the commas that are not inside parentheses."""
    words = [" ".join(word.split()) for word in re.split(r",(?![^(]*\))", parameters)]
    return () if words in ([""], ["void"]) else tuple(words)


def _expression(arg: np.ndarray, parameter: str, position: int) -> str:
    """Return C for one argument: a pointer to its memory with the elements' type, or its value."""
    c_type = _c_type(arg.dtype, parameter, position)
    if not arg.ndim:
        return f"*({c_type} *)labkit_argument[{position}]"
    # float A[M][N] and float (*A)[N] are pointers to rows
    subscripts = parameter.count("[") - (not re.search(r"\(\s*\*", parameter))
    rows = f"(*){'[labkit_columns]' * subscripts}" if subscripts > 0 else "*"
    return f"({c_type} {rows})labkit_argument[{position}]"


def _c_type(dtype: np.dtype, parameter: str, position: int) -> str:
    kind = f"{dtype.kind}{dtype.itemsize}"
    if kind not in C_TYPES or not dtype.isnative:
        raise LaunchError(
            f"argument {position} is {dtype}; a C function takes float32, float64, bool and integers of 8 to "
            "64 bits, in this machine's byte order"
        )
    if kind in ("i8", "u8") and re.search(r"\blong\s+long\b", parameter):
        return f"{'unsigned ' * (kind == 'u8')}long long"
    return C_TYPES[kind]
