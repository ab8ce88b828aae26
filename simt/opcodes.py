"""The one table of PTX opcodes: what is known of each family, by the first part of its name.

An opcode that is not in the table computes each lane's result from that lane's operands, as its entry in
`code/instructions` says. An opcode that has no entry there either is an error that names it.
Reference: NVIDIA, Parallel Thread Execution ISA, chapter 9.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SPACES = ("global", "shared", "local", "const")


@dataclass(frozen=True)
class Opcode:
    """What is known of a family of instructions.

    has_result:  its first operand is a register that it writes.
    reads, writes, is_atomic:  what it does to the memory at the address among its operands.
    end:  how it ends a basic block; "" if it does not.
    waits:  it waits for the threads of the block (its `.warp` forms wait for those of the warp).
    decides:  its operands choose which code runs next, or which threads wait.
    names_lanes:  the last operand of its `.sync` forms is the mask of the lanes that take part.
    lanes:  how its result differs between lanes. "each": as its operands do; "uniform": not at all;
        "varying": in any way; "members": not at all among lanes that have the same mask; "together": not at
        all where its operands are the same in all lanes.
    joins_lanes:  its result joins what all lanes give, so that it is set only where their operands all are.
    is_fence:  it orders the accesses before it and those after it.
    is_copy:  its result is its operand, perhaps as an address in another space.
    keeps_array:  its result points into the array that its operand points into.
    is_region:  it says which lanes will meet where (machine code alone).
    is_free:  it does nothing here, because a warp runs in step and memory is always up to date.
    is_asynchronous:  it belongs to copies, barriers or clusters whose work the host does (simt/asynchronous).
    """

    has_result: bool = True
    reads: bool = False
    writes: bool = False
    is_atomic: bool = False
    end: Literal["", "branch", "leave", "trap"] = ""
    waits: bool = False
    decides: bool = False
    names_lanes: bool = False
    lanes: Literal["each", "uniform", "varying", "members", "together"] = "each"
    joins_lanes: bool = False
    is_fence: bool = False
    is_copy: bool = False
    keeps_array: bool = False
    is_region: bool = False
    is_free: bool = False
    is_asynchronous: bool = False


COMPUTES = Opcode()
_FREE = Opcode(has_result=False, is_free=True)
_FENCE = Opcode(has_result=False, is_free=True, is_fence=True)
_BARRIER = Opcode(has_result=False, waits=True, decides=True, names_lanes=True, lanes="uniform", is_free=True)
_POINTER = Opcode(keeps_array=True)

OPCODES = {
    # memory
    "ld": Opcode(reads=True),
    "ldu": Opcode(reads=True),
    "st": Opcode(has_result=False, writes=True),
    "atom": Opcode(reads=True, writes=True, is_atomic=True, lanes="varying"),
    "red": Opcode(has_result=False, reads=True, writes=True, is_atomic=True),
    "membar": _FENCE,
    "fence": _FENCE,
    # control flow
    "bra": Opcode(has_result=False, end="branch", decides=True),
    "brx": Opcode(has_result=False, end="branch", decides=True),
    "ret": Opcode(has_result=False, end="leave"),
    "exit": Opcode(has_result=False, end="leave"),
    "trap": Opcode(has_result=False, end="trap", decides=True),
    "bar": _BARRIER,
    "barrier": _BARRIER,
    "yield": Opcode(has_result=False, is_free=True),  # our own, see lowering/lower.py and spinning.py
    # what the host does for a warp, see lowering/services.py: our own, made of the instructions below
    "serve": Opcode(lanes="varying"),
    "poll": Opcode(lanes="together", decides=True),  # may a thread go on that waits at an mbarrier?
    "await": Opcode(lanes="uniform", decides=True),  # or at a barrier of the block or of the cluster?
    "mbarrier": Opcode(lanes="varying", is_asynchronous=True),
    "cp": Opcode(has_result=False, is_asynchronous=True),  # what lowering/lower.py leaves: bulk copies
    "mapa": Opcode(is_asynchronous=True),
    "getctarank": Opcode(is_asynchronous=True),
    # regions of machine code in which lanes may part, see analysis/convergence.py
    "bssy": Opcode(has_result=False, is_region=True),
    "bsync": Opcode(has_result=False, end="branch"),
    "break": Opcode(has_result=False, is_region=True),
    # warp-wide operations
    "shfl": Opcode(names_lanes=True, lanes="varying"),
    "vote": Opcode(names_lanes=True, lanes="members"),
    "match": Opcode(names_lanes=True, lanes="varying"),
    "redux": Opcode(names_lanes=True, lanes="members"),
    "elect": Opcode(lanes="varying"),
    "activemask": Opcode(lanes="uniform"),
    "mma": Opcode(lanes="varying", joins_lanes=True),
    "wgmma": Opcode(lanes="varying", joins_lanes=True),
    "printf": Opcode(has_result=False),  # calls vprintf, see lowering/inline.py
    # textures and surfaces
    "tex": Opcode(lanes="varying"),
    "tld4": Opcode(lanes="varying"),
    "suaddr": Opcode(lanes="varying"),  # where a surface access goes, see lowering/surfaces.py
    # pointers
    "mov": Opcode(is_copy=True, keeps_array=True),
    "cvta": Opcode(is_copy=True, keeps_array=True),
    "add": _POINTER,
    "sub": _POINTER,
    "mad": _POINTER,
    "selp": _POINTER,
    # hints
    "applypriority": _FREE,
    "brkpt": _FREE,
    "createpolicy": _FREE,
    "discard": _FREE,
    "griddepcontrol": _FREE,
    "nanosleep": _FREE,
    "pmevent": _FREE,
    "prefetch": _FREE,
    "prefetchu": _FREE,
    "setmaxnreg": _FREE,
}
