"""A kernel whose tensor cores multiply twice as much: shows whether what they work out reaches the output.

A count of their instructions does not: a kernel may overwrite the results. Here each `mma` adds its product
to the accumulator twice, and each `wgmma` runs a second time, which adds to what the first has left. So the
output of a kernel whose multiply-adds are all theirs is twice the right one, and any part of it that comes
from elsewhere is not.
"""

import re
from functools import singledispatch

from simt import AnyKernel, Kernel, RawModule
from simt.common.errors import SimtError
from simt.compiler.origin import PtxText

_GROUP = r"\{([^}]*)\}"
_MMA = re.compile(
    rf"^\s*(?P<guard>@!?\S+\s+)?(?P<name>(?:wmma\.)?mma\.sync\.\S+)\s+"
    rf"{_GROUP}\s*,\s*{_GROUP}\s*,\s*{_GROUP}\s*,\s*{_GROUP}\s*;",
    re.MULTILINE,
)
_WGMMA = re.compile(
    rf"(?P<guard>@!?\S+\s+)?(?P<product>\bwgmma\.mma_async\.sync\.\S+\s+{_GROUP}\s*,\s*(?:{_GROUP}|[^,;{{]+),[^,;]+),"
    r"[^,;]+(?P<how>,[^;]*)?;"
)
_ANY = re.compile(r"\bmma(?:\.sp\S*)?\.sync\.|\bmma_async\.")
# What adds accumulators of a type, and the type of the registers that hold them.
_TYPES = {"f32": ("f32", "f32"), "f16": ("f16x2", "b32")}


@singledispatch
def doubled(kernel: AnyKernel) -> AnyKernel:
    """Return the kernel with each product of the tensor cores added twice.

    Raises SimtError for a product that is no mma of whole matrices with accumulators of one type.
    """
    here = kernel.simulated
    assert isinstance(here, Kernel)
    origin, text = here.module.origin, here.module.ptx
    if len(_ANY.findall(text)) != len(_MMA.findall(text)) + len(_WGMMA.findall(text)):
        raise SimtError("its products are not made by mma_sync or wgmma, or not of whole matrices")
    text = _WGMMA.sub(_run_twice, _MMA.sub(_added_twice, text))
    return RawModule.from_ptx(PtxText(text, origin.code, origin.first_lines)).get_function(here.parsed.name)


def _added_twice(found: re.Match[str]) -> str:
    """Write a product d = a b + c, and then d + d - c."""
    guard, name, into, _, _, added = found.groups("")
    add, holds = _TYPES[_accumulators(name)]
    results, before = ([each.strip() for each in group.split(",")] for group in (into, added))
    lines = [f".reg .{holds} %was<{len(before)}>;"]
    lines += [f"mov.{holds} %was{at}, {each};" for at, each in enumerate(before)]
    lines.append(found[0].strip())
    for at, result in enumerate(results):
        lines += [
            f"{guard}{step}.{add} {result}, {result}, {by};"
            for step, by in (("add", result), ("sub", f"%was{at}"))
        ]
    return "\n".join(["{", *lines, "}"])


def _run_twice(found: re.Match[str]) -> str:
    """Write a wgmma, and then the same with 1 for scale-d: it adds to what is there."""
    guard, how = found["guard"] or "", found["how"] or ""
    return f"{found[0]} {guard}{found['product']}, 1{how};"


def _accumulators(name: str) -> str:
    """Return the type of c and d. A wmma ends with those of d and c, an mma with those of d, a, b and c."""
    parts = name.split(".")
    types = {parts[-1], parts[-2 if parts[0] == "wmma" else -4]}
    if len(types) > 1 or not types <= _TYPES.keys():
        raise SimtError(f"{name}: accumulators of one type can be followed, float or half")
    return types.pop()
