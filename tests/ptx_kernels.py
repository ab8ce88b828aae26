"""Small kernels of PTX text, for tests of the parser's neighbours: analysis and lowering."""

from hypothesis import strategies as st

from simt.analysis.flow import Flow
from simt.analysis.layout import storage
from simt.analysis.shapes import ShapeRules
from simt.ptx import Immediate, Register, Symbol
from simt.ptx.parser import parse

HEAD = ".version 8.8\n.target sm_90\n.address_size 64\n"
REGISTERS = """
.reg .pred %p<20>;
.reg .b16 %rs<20>;
.reg .b32 %r<60>;
.reg .b64 %rd<40>;
.reg .f32 %f<20>;
"""
PARAMS = ".param .u64 x, .param .u64 y, .param .u32 n"


def module(text):
    """Parse a module."""
    return parse(HEAD + text)


def kernel(body, params=PARAMS, before=""):
    """Return the kernel `f` with this body, which may use %p1, %r1, %rd1, %f1 and others."""
    return module(f"{before}\n.visible .entry f({params})\n{{{REGISTERS}{body}\n}}\n").kernels["f"]


def rules(of, block=(32, 1, 1), local_bytes=None, indices=frozenset()):
    """Return the rules of shapes for a kernel."""
    places = storage(of, module(""))
    size = places.local_bytes if local_bytes is None else local_bytes
    return ShapeRules(block, size, frozenset(places.local), indices)


def flow(body, block=(32, 1, 1), **options):
    """Return the flow of a kernel with this body."""
    made = kernel(body, **options)
    return Flow(made, rules(made, block))


def opcodes(code):
    """Return the opcodes of some instructions."""
    return [instruction.opcode for instruction in code]


def shown(operand):
    """Return a register, a number or a name as PTX has it."""
    match operand:
        case Register(name) | Symbol(name):
            return name
        case Immediate(value):
            return value
    return operand


# --- random programs and their paths, straight from the text -----------------------------------------------

ENDS = ("bra {}", "@%p{p} bra {}", "@!%p{p} bra {}", "bar.sync 0", "ret", "@%p{p} ret", "")
STATEMENTS = (
    "mov.u32 %r{a}, %r{b}",
    "mov.u32 %r{a}, 1",
    "@%p{p} mov.u32 %r{a}, %r{b}",
    "st.global.u32 [x], %r{b}",
)


@st.composite
def programs(draw):
    """The text of blocks with branches to any of them."""
    count, lines = draw(st.integers(1, 7)), []
    for number in range(count):
        lines.append(f"B{number}:")
        for _ in range(draw(st.integers(1, 3))):
            numbers = {name: draw(st.integers(0, 3)) for name in "abp"}
            lines.append(draw(st.sampled_from(STATEMENTS)).format(**numbers) + ";")
        end = draw(st.sampled_from(ENDS)).format(
            f"B{draw(st.integers(0, count - 1))}", p=draw(st.integers(0, 3))
        )
        lines.append(f"{end};" if end else "")
    return "\n".join([*lines, "ret;"])


def ways(made):
    """By number of an instruction, the numbers of those that may come next: straight from the text."""
    code = made.code
    found = {}
    for number, instruction in enumerate(code):
        following = {number + 1} if number + 1 < len(code) else set()
        if instruction.parts[0] == "bra":
            target = {made.labels[instruction.operands[0].name]}
            following = target | (following if instruction.guard else set())
        elif instruction.parts[0] == "ret" and not instruction.guard:
            following = set()
        found[number] = following
    return found


def reached(start, following):
    found, work = {start}, [start]
    while work:
        new = following[work.pop()] - found
        found |= new
        work += new
    return found
