"""LLVM constants, types and intrinsics that work for scalars and vectors."""

from llvmlite import ir

from simt.code.abi import Value


def constant(like: Value, value: float) -> Value:
    """Return `value` in the type of `like`; in every element, if that is a vector."""
    if isinstance(like.type, ir.VectorType):
        return ir.Constant(like.type, [ir.Constant(like.type.element, value)] * like.type.count)
    return ir.Constant(like.type, value)


def same_shape(like: Value, element: ir.Type) -> ir.Type:
    """Return `element`, or a vector of it as long as `like`."""
    return ir.VectorType(element, like.type.count) if isinstance(like.type, ir.VectorType) else element


def type_width(x: Value) -> int:
    """Return the bits of a value, or of one element of a vector."""
    element = x.type.element if isinstance(x.type, ir.VectorType) else x.type
    return {ir.HalfType: 16, ir.FloatType: 32, ir.DoubleType: 64}.get(type(element)) or element.width


def intrinsic(
    b: ir.IRBuilder, name: str, result: ir.Type, *arguments: Value, overloads: tuple[ir.Type, ...] = ()
) -> Value:
    """Call an LLVM intrinsic; its name gets the overloaded types (by default the result's)."""
    full = ".".join([f"llvm.{name}", *(type_suffix(type_) for type_ in overloads or (result,))])
    if full not in b.module.globals:
        ir.Function(b.module, ir.FunctionType(result, [argument.type for argument in arguments]), full)
    return b.call(b.module.globals[full], arguments)


def type_suffix(type_: ir.Type) -> str:
    """Return `v32f32` for a vector of 32 floats, as in the names of LLVM's intrinsics."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{type_suffix(type_.element)}"
    if isinstance(type_, ir.PointerType):
        return "p0"
    names = {ir.HalfType: "f16", ir.FloatType: "f32", ir.DoubleType: "f64"}
    return names.get(type(type_)) or f"i{type_.width}"
