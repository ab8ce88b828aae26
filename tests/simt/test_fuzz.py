"""Random programs with nested branches and loops give the results of a C compiler for the host."""

import ctypes
import random

import numpy as np
import pytest

import simt
from labkit.c.compile import compile_c

THREADS = 80
VARIABLES = ("a", "b", "c", "d")


class Program:
    """The body of a function of the thread number `t`, over unsigned variables; every loop ends."""

    def __init__(self, seed: int) -> None:
        self.random, self.loops = random.Random(seed), 0
        self.text = self.block(depth=0)

    def expression(self, depth: int = 0) -> str:
        choose = self.random.random()
        if depth > 2 or choose < 0.3:
            return self.random.choice([*VARIABLES, "t", str(self.random.randint(0, 99))])
        if choose < 0.4:
            return f"m[({self.expression(depth + 1)}) & 7u]"
        operator = self.random.choice(["+", "-", "*", "^", "&", "|", ">> 3 ^", "/ 7u +", "% 13u -"])
        return f"({self.expression(depth + 1)} {operator} {self.expression(depth + 1)})"

    def condition(self) -> str:
        compare = self.random.choice(["<", ">", "==", "!=", "<="])
        left = f"({self.expression()}) % {self.random.randint(2, 9)}u"
        return f"{left} {compare} {self.random.randint(0, 4)}u"

    def statement(self, depth: int) -> str:
        kind = self.random.random()
        if depth > 3 or kind < 0.4:
            return f"{self.random.choice(VARIABLES)} = {self.expression()};"
        if kind < 0.5:
            return f"m[({self.expression()}) & 7u] = {self.expression()};"
        if kind < 0.75:
            other = f" else {{ {self.block(depth + 1)} }}" if self.random.random() < 0.6 else ""
            return f"if ({self.condition()}) {{ {self.block(depth + 1)} }}{other}"
        if kind < 0.92:
            self.loops += 1
            i, n = f"i{self.loops}", self.expression(2)
            leave = self.random.choice(
                ["", f"if ({self.condition()}) break;", f"if ({self.condition()}) continue;"]
            )
            body = f"{self.block(depth + 1)} {leave} {self.statement(depth + 1)}"
            return f"for (unsigned {i} = 0; {i} < ({n}) % 6u; {i}++) {{ {body} }}"
        return f"if ({self.condition()}) return a + b;"

    def block(self, depth: int) -> str:
        return "\n".join(self.statement(depth) for _ in range(self.random.randint(1, 4)))

    def function(self, qualifiers: str) -> str:
        return f"""{qualifiers} unsigned body(unsigned t) {{
            unsigned a = t, b = t * 2654435761u, c = 7, d = ~t, m[8];
            for (int k = 0; k < 8; k++) m[k] = t + k;
            {self.text}
            return a ^ b * 3u ^ c * 5u ^ d * 7u ^ m[3];
        }}"""


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("seed", range(10))
def test_random_program(seed):
    program = Program(seed)
    library = ctypes.CDLL(str(compile_c(program.function(""), ["-O1"])))
    library.body.restype = ctypes.c_uint32
    expected = [library.body(ctypes.c_uint32(t)) for t in range(THREADS)]
    source = (
        program.function("__device__")
        + """
    extern "C" __global__ void f(unsigned* out) { out[threadIdx.x] = body(threadIdx.x); }"""
    )
    out = np.zeros(THREADS, np.uint32)
    simt.RawModule(code=source).get_function("f")(1, THREADS, (out,), timeout=20)
    np.testing.assert_array_equal(out, np.array(expected, np.uint32))
