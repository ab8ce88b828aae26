"""Count the lanes of a request that name the same address: atomic operations on it take turns."""

from llvmlite import ir

from simt.code.abi import I32, I64, Value
from simt.code.checked_access import LANES_64, defined_once, each_distinct
from simt.code.instructions import intrinsic
from simt.code.vectors import broadcast
from simt.common.limits import WARP


def meeting(b: ir.IRBuilder, addresses: Value, mask: Value) -> Value:
    """Emit a call that counts how many lanes meet at the address that most of them have."""

    def emit(function: ir.Function) -> None:
        addresses, mask = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        most = b.alloca(I64)
        b.store(ir.Constant(I64, 0), most)
        with each_distinct(b, addresses, mask) as address:
            same = b.bitcast(b.icmp_unsigned("==", addresses, broadcast(b, address, WARP)), I32)
            lanes = b.zext(intrinsic(b, "ctpop", I32, b.and_(same, mask)), I64)
            b.store(intrinsic(b, "umax", I64, b.load(most, typ=I64), lanes), most)
        b.ret(b.load(most, typ=I64))

    return b.call(
        defined_once(b.module, "meeting", ir.FunctionType(I64, [LANES_64, I32]), emit), [addresses, mask]
    )
