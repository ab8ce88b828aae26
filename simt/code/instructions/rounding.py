"""Arithmetic and conversions rounded down, up or towards zero (`.rm`, `.rp`, `.rz`), float32 and float64.

A separate function sets the host's own rounding mode for one operation, so the result is exact in every case:
subnormals, overflow, the sign of zero. Reference: PTX ISA, 9.7.3 and 6.4.1.
"""

from llvmlite import ir

from simt.code.instructions.table import Emit, operation
from simt.code.instructions.values import Value, constant, same_shape, type_suffix
from simt.ptx import Instruction

DIRECTED = {"rz": 0, "rp": 2, "rm": 3}  # the numbers that LLVM's set.rounding takes
_NEAREST = 1


def rounded(b: ir.IRBuilder, mode: str, name: str, result: ir.Type, *operands: Value) -> Value:
    """Emit LLVM's operation `name` (fadd, fma, fptrunc, ...), rounded in direction `mode`."""
    suffixes = [type_suffix(type_) for type_ in (result, operands[0].type)][: 1 + (name == "fptrunc")]
    full = ".".join([name, mode, *suffixes])
    if full not in b.module.globals:
        _define(b.module, full, DIRECTED[mode], f"{name}.{'.'.join(suffixes)}", result, operands)
    return b.call(b.module.globals[full], operands)


def _define(
    module: ir.Module, full: str, mode: int, name: str, result: ir.Type, operands: tuple[Value, ...]
) -> None:
    types = [operand.type for operand in operands]
    function = ir.Function(module, ir.FunctionType(result, types), full)
    function.linkage = "internal"
    function.attributes.add("noinline")
    number, text = ir.IntType(32), ir.MetaDataType()
    set_mode = _declared(module, "llvm.set.rounding", ir.FunctionType(ir.VoidType(), [number]))
    how = [ir.MetaDataString(module, "round.dynamic")] * (name[:2] != "fp" or name.startswith("fptrunc"))
    how.append(ir.MetaDataString(module, "fpexcept.strict"))
    operation = _declared(
        module,
        f"llvm.experimental.constrained.{name}",
        ir.FunctionType(result, [*types, *(text for _ in how)]),
    )
    b = ir.IRBuilder(function.append_basic_block("entry"))
    b.call(set_mode, [ir.Constant(number, mode)])
    value = b.call(operation, [*function.args, *how])
    b.call(set_mode, [ir.Constant(number, _NEAREST)])
    b.ret(value)


def _declared(module: ir.Module, name: str, type_: ir.FunctionType) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, type_, name)


def _directed(name: str) -> Emit:
    def emit(b: ir.IRBuilder, i: Instruction, *operands: Value) -> Value:
        mode = next(part for part in i.parts if part in DIRECTED)
        if i.parts[0] == "rcp":
            operands = (constant(operands[0], 1.0), *operands)
        return rounded(b, mode, name, operands[0].type, *operands)

    return emit


for _mode in DIRECTED:
    for _ptx, _llvm, _signature in (
        ("add", "fadd", "tt:t"),
        ("sub", "fsub", "tt:t"),
        ("mul", "fmul", "tt:t"),
        ("div", "fdiv", "tt:t"),
        ("fma", "fma", "ttt:t"),
        ("mad", "fma", "ttt:t"),
        ("rcp", "fdiv", "t:t"),
        ("sqrt", "sqrt", "t:t"),
    ):
        operation(f"{_ptx}.{_mode}", _signature)(_directed(_llvm))


def integer_to_float(b: ir.IRBuilder, x: Value, signed: bool, to: ir.Type, mode: str | None) -> Value:
    """Convert an integer of at most 64 bits to a float, rounded once; `mode` None is to nearest."""
    target = same_shape(x, to)
    if mode is None:
        return b.sitofp(x, target) if signed else b.uitofp(x, target)
    double = same_shape(x, ir.DoubleType())
    width = x.type.element.width if isinstance(x.type, ir.VectorType) else x.type.width
    if width < 64:
        exact = b.sitofp(x, double) if signed else b.uitofp(x, double)
        return exact if isinstance(to, ir.DoubleType) else rounded(b, mode, "fptrunc", target, exact)
    if isinstance(to, ir.DoubleType):
        high = b.ashr(x, constant(x, 32)) if signed else b.lshr(x, constant(x, 32))
        high = b.sitofp(high, double) if signed else b.uitofp(high, double)
        low = b.uitofp(b.and_(x, constant(x, 0xFFFFFFFF)), double)
        high = b.fmul(high, constant(high, 2.0**32))
        total = rounded(b, mode, "fadd", double, high, low)
        return b.select(b.icmp_unsigned("==", x, constant(x, 0)), constant(total, 0.0), total)
    return rounded(b, mode, "fptrunc", target, integer_to_odd(b, x, signed))


def integer_to_odd(b: ir.IRBuilder, x: Value, signed: bool) -> Value:
    """Convert a 64-bit integer to a float64 that rounds to any narrower type as the integer itself would.

    Bits that do not fit are combined into the last one that does ("round to odd").
    """
    double = same_shape(x, ir.DoubleType())
    lost = b.and_(x, constant(x, 0x7FF))
    some = b.zext(b.icmp_unsigned("!=", lost, constant(x, 0)), x.type)
    gathered = b.or_(b.sub(x, lost), b.shl(some, constant(x, 11)))
    small = b.ashr(x, constant(x, 52)) if signed else b.lshr(x, constant(x, 53))
    fits = b.icmp_unsigned("<=", b.add(small, constant(x, 1)), constant(x, 1))
    kept = b.select(fits, x, gathered)
    return b.sitofp(kept, double) if signed else b.uitofp(kept, double)
