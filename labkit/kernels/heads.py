"""What the head of a kernel's source says beside its launch line, see `labkit.kernels.launch_line`.

    // types: half, __nv_bfloat16, tf32
    // needs: sm_90a
    // shared: STAGES * (TILE_M + TILE_N) * TILE_K * sizeof(T)
    // tensor maps: A (TILE_M, TILE_K) swizzle 128, B (TILE_N, TILE_K) swizzle 128

`types` are the values of the macro DTYPE that the kernel takes. `needs` is the least GPU; one with an `a` is
the only one. `shared` is dynamic shared memory in bytes. A tensor map (CUtensorMap) takes the place of the
array of that name in the kernel's signature; that of a name such as C_map is one more argument, at the end,
and describes C. Behind the name stand the box in elements, in the order of the array's shape, and the swizzle
in bytes. Numbers are arithmetic as in the launch line, of macros and constants, without the problem's sizes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from labkit.kernels.launch_line import LaunchLineError
from simt.compiler.macros import names_of

_NEEDS = re.compile(r"sm_(\d+)(\d)(a?)")
ROW_BYTES = 16  # a tensor map takes rows of whole multiples (cuTensorMapEncodeTiled, globalStrides)
_MAP = re.compile(r"(\w+) *\(((?:[^()]|\([^()]*\))+)\)(?: *swizzle +(\d+))?(?:, *(?=\w)|$)")
_MAP_FORM = "// tensor maps: A (TILE_M, TILE_K) swizzle 128, B (TILE_N, TILE_K)"


@dataclass(frozen=True)
class BoxOf:
    """A tensor map that a kernel takes: its name, the sides of its box in elements, the swizzle in bytes."""

    name: str
    box: tuple[int, ...]
    swizzle: int = 0

    @property
    def array(self) -> str:
        """Return the name of the array that the map describes."""
        return self.name.removesuffix("_map")

    @property
    def replaces(self) -> bool:
        """Return True where the map takes the array's place among the arguments."""
        return self.name == self.array


def said(source: str, what: str) -> str:
    """Return the text of a source's line `// what:`; "" where there is none.

    Raises LaunchLineError where there are several.
    """
    found = re.findall(rf"^// {what}: *(.+?) *$", source, re.MULTILINE)
    if len(found) > 1:
        raise LaunchLineError(f"{len(found)} lines begin with `// {what}:`. Keep one of them.")
    return found[0] if found else ""


def types(source: str) -> tuple[str, ...]:
    """Return the values of DTYPE that a source names; () where it names none."""
    return tuple(re.findall(r"\w+", said(source, "types")))


def lacks(needed: str, compute_capability: str) -> bool:
    """Say whether a GPU of a compute capability such as "9.0" lacks what `needed`, such as sm_90a, has.

    What is compiled for an architecture with an `a` runs on that one alone (CUDA C++ Programming Guide,
    "Architecture-specific features"). Raises LaunchLineError for what is no architecture.
    """
    if not needed:
        return False
    match = _NEEDS.fullmatch(needed)
    if match is None:
        raise LaunchLineError(f"`// needs: {needed}` is no architecture. Write one such as sm_80 or sm_90a.")
    major, minor = map(int, compute_capability.split("."))
    wanted = int(match[1]), int(match[2])
    return (major, minor) != wanted if match[3] else (major, minor) < wanted


def shared_bytes(source: str, macros: Mapping[str, int | str]) -> int:
    """Return the bytes of dynamic shared memory of a launch of a source that is compiled with `macros`.

    Raises LaunchLineError where the line cannot be evaluated.
    """
    text = said(source, "shared")
    return sum(_evaluated(f"// shared: {text}", text, source, macros)) if text else 0


def tensor_maps(source: str, macros: Mapping[str, int | str]) -> tuple[BoxOf, ...]:
    """Return the tensor maps that a source, compiled with `macros`, takes. Raises LaunchLineError."""
    text = rest = said(source, "tensor maps")
    line, found = f"// tensor maps: {text}", []
    while rest:
        match = _MAP.match(rest)
        if match is None:
            raise LaunchLineError(
                f"`{line}` does not say how maps are made. It should have this form:\n{_MAP_FORM}"
            )
        name, box, swizzle = match.groups()
        found.append(BoxOf(name, tuple(_evaluated(line, box, source, macros)), int(swizzle or 0)))
        rest = rest[match.end() :]
    return tuple(found)


def _evaluated(line: str, text: str, source: str, macros: Mapping[str, int | str]) -> list[int]:
    try:
        return names_of(source, macros).several(text)
    except ValueError as error:
        raise LaunchLineError(f"`{line}`: {error}") from None
