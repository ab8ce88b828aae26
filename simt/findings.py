"""Put into words what is wrong with a kernel: the findings behind a launch's errors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from simt.analysis.layout import STRIDE
from simt.code import abi
from simt.code.abi import Launch
from simt.common.buffer_names import Freed, Named
from simt.common.errors import BarrierError, InvalidAccess, SimtError, Timeout
from simt.common.limits import WARP, Dim3
from simt.common.text import counted
from simt.launch.arguments import Range
from simt.lowering.wgmma import Role, misfit
from simt.ptx import Kernel
from simt.ptx.variables import demangled
from simt.texture import CALLS, GEOMETRIES, existed, existing

UNFENCED_INIT = "mbarrier init not fenced"  # the kind of a finding


@dataclass(frozen=True)
class Finding:
    """One mistake: the compute-sanitizer tool that looks for it, its line (0: unknown), and who made it."""

    tool: str
    kind: str
    line: int
    block: Dim3
    thread: Dim3
    message: str
    source: str = ""
    other_line: int = 0  # for a race: the line of the other access
    calls: tuple[int, ...] = ()  # lines that call the function in which the line stands, innermost first
    site: int = field(default=-1, compare=False, repr=False)  # the instruction's number in the kernel's code
    other_site: int = field(default=-1, compare=False, repr=False)

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        text = f"{place}{self.message}\n    by thread {self.thread} of block {self.block}"
        if self.calls:
            calls = ", which is called in line ".join(map(str, self.calls))
            text += f"\n    in a function called in line {calls}"
        return f"{text}\n    {self.line:>4} | {self.source}" if self.source else text


@dataclass(frozen=True)
class Access:
    """An access and the thread that makes it; `shared` is where the block's shared memory begins."""

    site: int
    address: int
    shared: int
    block: Dim3
    thread: int


_TRAPS = {
    "trap": "the kernel stopped itself",
    "assert": "assertion failed",
    "recursion": "the recursion is too deep for a stack of 1024 bytes per thread, CUDA's default",
    "driver": "it calls a function of the driver (such as printf's), whose instructions are unknown",
    "pointer": "a call through a pointer that points to no function of this type",
}


class Diagnosis:
    """Puts what went wrong in a launch into words."""

    def __init__(
        self,
        kernel: Kernel,
        source: Sequence[str],
        block: Dim3,
        shared_bytes: int,
        shared_names: Mapping[str, int],
        ranges: Sequence[Range],
    ) -> None:
        self.kernel, self.source, self.block, self.ranges = kernel, source, block, ranges
        self.shared_bytes, self.shared_names = shared_bytes, shared_names

    def error(self, launch: Launch, barriers: Sequence[int]) -> SimtError:
        """Return the error recorded in `launch`; `barriers` are the sites of barriers by number."""
        if launch.error == abi.BAD_ACCESS:
            finding = self.access(self._recorded(launch, launch.error_at))
            return InvalidAccess(str(finding), finding)
        if launch.error == abi.TRAPPED:
            kind = self.kernel.code[launch.error_at].parts[-1]
            message = _TRAPS[kind]
            finding = self.found("memcheck", kind, self._recorded(launch, launch.error_at), message)
            return SimtError(str(finding), finding)
        if launch.error == abi.BAD_TEXTURE:
            finding = self._wrong_object(self._recorded(launch, launch.error_at))
            return SimtError(str(finding), finding)
        if launch.error == abi.BAD_SURFACE_PLACE:
            finding = self._beyond_surface(launch)
            return InvalidAccess(str(finding), finding)
        if launch.error == abi.BAD_DESCRIPTOR:
            finding = self._wrong_descriptor(launch)
            return InvalidAccess(str(finding), finding)
        if launch.error == abi.PARTED_AT_BARRIER:
            lanes = (launch.error_mask & 0xFFFFFFFF).bit_count()
            message = (
                f"__syncthreads() inside a branch that not all threads take: {lanes} of the warp's {WARP} "
                "threads are elsewhere. "
                "Every thread of a block must reach the same barrier; move it out of the branch"
            )
            finding = self._barrier(self._recorded(launch, launch.error_at), message)
        else:
            here, there = (barriers[number - 1] for number in (launch.error_at, launch.error_other))
            message = (
                f"warps of one block wait at different barriers, line {self._line(here)} and line "
                f"{self._line(there)}: they would never meet"
            )
            finding = self._barrier(self._recorded(launch, here), message)
        return BarrierError(str(finding), finding)

    def blocks_gone(self, ended: int, site: int, block: Dim3) -> BarrierError:
        """Return the error for a grid of which `ended` blocks have ended while `block` waits for them."""
        who = "a block of the grid has" if ended == 1 else f"{ended} blocks of the grid have"
        message = (
            f"{who} ended, and others wait here for ever: every block of a grid must reach grid.sync(). "
            "Let idle blocks skip only the work"
        )
        finding = self._barrier(Access(site, 0, 0, block, 0), message)
        return BarrierError(str(finding), finding)

    def blocks_do_not_fit(self, launch: Launch, most: int) -> BarrierError:
        """Return the error for a launch whose `most` blocks that the GPU holds wait for further ones."""
        site, block = launch.stopped_at, (launch.stopped_x, launch.stopped_y, launch.stopped_z)
        message = (
            "blocks wait here for others that cannot begin: the launch has "
            f"{launch.block_count:,} blocks, the GPU holds {most:,} of this kernel at once, and all of those "
            f"wait. Launch at most {most:,} blocks, and let each do more of the work in a loop"
        )
        finding = self.found("synccheck", "blocks that wait", Access(max(site, 0), 0, 0, block, 0), message)
        return BarrierError(str(finding), finding)

    def timeout(self, launch: Launch, seconds: float, ended: int) -> Timeout:
        """Return the error for a launch that was stopped after `seconds`, with the line where it was.

        `ended` of its blocks had ended by then.
        """
        line = self._line(launch.stopped_at) if launch.stopped_at >= 0 else 0
        place = "the loop here" if line else "a loop"
        message = f"the kernel ran for more than {seconds:g} s and was stopped in {place}. "
        if ended:
            message += (
                f"{ended:,} of its {launch.block_count:,} blocks had ended; all would take about "
                f"{_long(seconds * launch.block_count / ended)}. Choose a smaller size or a longer time limit"
            )
        else:
            message += "Does its condition ever become false?"
        block = (launch.stopped_x, launch.stopped_y, launch.stopped_z)
        finding = Finding("timeout", "time limit", line, block, (0, 0, 0), message, self._text(line))
        where = f"line {line}: " if line else ""
        shown = f"\n    {line:>4} | {finding.source}" if finding.source else ""
        return Timeout(f"{where}{message}{shown}", finding)

    def access(self, access: Access) -> Finding:
        """Describe an access outside all arrays, or one that is not aligned."""
        instruction = self.kernel.code[access.site]
        size, space = instruction.moved_bytes, self._space(access)
        shown = "constant" if space == "const" else space
        what = f"invalid {shown} {self._verb(access.site)} of {size} bytes"
        if space == "shared":
            block = Named(f"the block's {self.shared_bytes} bytes of shared memory", self.shared_bytes)
            where = _place(access.address - access.shared, size, block)
        elif space == "local":
            where = "the address is outside the thread's own arrays, or not aligned"
        else:
            where = self._other_space(access) or _near(access.address, size, self.ranges)
        kind = "misaligned" if "multiple" in where else "out of bounds"
        return self.found("memcheck", kind, access, f"{what}: {where}")

    def _wrong_object(self, access: Access) -> Finding:
        """Describe a handle that stands for no texture or surface of the kind that the call needs."""
        parts, handle = self.kernel.code[access.site].parts, access.address
        call = CALLS[next(part for part in parts if part in GEOMETRIES)]
        call = "tex1Dfetch" if parts[0] == "tex" and "1d" in parts and parts[-1] != "f32" else call
        call = "tex2Dgather" if parts[0] == "tld4" else call
        call = call.replace("tex", "surf") + "read or -write" if parts[0] == "suaddr" else call
        if each := existing(handle):
            what = f"gets {each}"
        elif existed(handle):
            what = (
                f"gets the handle {handle} of a texture or surface that no longer exists: keep the Python "
                "object until the kernel has run"
            )
        else:
            what = (
                f"gets {handle:#x}, which is not the handle of a texture or surface: pass a TextureObject or "
                "SurfaceObject"
            )
        return self.found("memcheck", "wrong texture", access, f"{call} {what}")

    def _wrong_descriptor(self, launch: Launch) -> Finding:
        """Describe a descriptor of `wgmma` with which it reads beyond the block's shared memory."""
        access = self._recorded(launch, launch.error_at)
        role: Role = "b" if launch.error_other else "a"
        instruction = self.kernel.code[access.site]
        message = misfit(instruction, role, launch.error_address, self.shared_bytes)
        return self.found("memcheck", "descriptor", access, f"wgmma: {message}")

    def _beyond_surface(self, launch: Launch) -> Finding:
        """Describe an access of a surface beyond its edges, or one that is not aligned."""
        access = self._recorded(launch, launch.error_at)
        _, geometry, _, size = self.kernel.code[access.site].parts
        x, y, z = (
            (number & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)
            for number in (launch.error_address, launch.error_address >> 32, launch.error_depth)
        )
        each = existing(launch.error_other)
        assert each is not None, "the launch keeps it"
        record = each.record
        names = {"1d": "x", "2d": "xy", "3d": "xyz", "a1d": "xz", "a2d": "xyz"}[geometry]
        ends = {"x": record.width * record.texel_bytes, "y": record.height, "z": record.depth}
        shown = {"z": "layer"} if geometry[0] == "a" else {}
        at = {"x": x, "y": y, "z": z}
        place = ", ".join(f"{shown.get(name, name)} = {at[name]}" for name in names)
        if x % int(size):
            where = f"x = {x} is not a multiple of {size} bytes"
        else:
            outside = [name for name in names if not 0 <= at[name] < ends[name]]
            beyond = [f"{shown.get(name, name)} goes from 0 to {ends[name] - 1}" for name in outside]
            where = "; ".join(beyond) or f"its {size} bytes end beyond the row"
        message = (
            f"invalid surface access of {size} bytes at {place}: {where} ({each}). x counts bytes: the "
            "element's index times its size"
        )
        kind = "misaligned" if x % int(size) else "out of bounds"
        return self.found("memcheck", kind, access, message)

    def unwritten(self, access: Access) -> Finding:
        """Describe a read of memory that nobody has written."""
        space = self._space(access)
        message = f"reads {self._place(access)}, which nobody has written yet"
        if space == "shared":
            message += (
                " in this block: does every thread that should fill it reach the store, at the edges too?"
            )
        return self.found("initcheck", f"uninitialised {space} read", access, message)

    def unset(self, access: Access) -> Finding:
        """Describe the use of a variable that has no value yet."""
        message = "uses a variable that was never set: it has no value yet, not even 0. Set it first"
        return self.found("initcheck", "unset variable", access, message)

    def race(self, access: Access, kind: str, what: str, other_site: int, other: str) -> Finding:
        """Describe two accesses that nothing orders."""
        line = self._line(other_site)
        there = f"line {line}" if line != self._line(access.site) else "the same line"
        did = {"wrote": f"writes in {there}", "read": f"reads in {there}"}
        if self.kernel.code[other_site].family.is_atomic:
            did["wrote"] = f"changes with an atomic operation in {there}"
        other_block = "another block" in other
        missing = "no barrier lies between them"
        if other_block and not self.kernel.waits_for_grid:
            missing = "nothing orders blocks within a launch"
        elif other_block:
            missing = "no grid.sync() lies between them"
        message = (
            f"race ({kind}) on {self._place(access)}: the thread {what.format(other=other, **did)}; {missing}"
        )
        found = self.found("racecheck", kind, access, message)
        return replace(found, other_line=line, other_site=other_site)

    def exited(self, access: Access) -> Finding:
        """Describe a barrier at which some threads wait while others have ended."""
        message = (
            "__syncthreads() that some threads of the block never reach: they have returned or left a loop "
            "earlier. Every thread of a block must reach each barrier; let idle threads skip only the work"
        )
        return self._barrier(access, message)

    def sync_mask(self, access: Access) -> Finding:
        """Describe a warp-wide operation whose mask does not fit the threads that run it."""
        message = (
            "the mask of this warp-wide operation does not fit the threads that run it: one of them is not "
            "named, or one that is named is in another branch. Name exactly the threads that arrive together"
        )
        return self.found("synccheck", "invalid mask", access, message)

    def thread(self, index: int) -> Dim3:
        """Return the index (x, y, z) of a thread from its number in the block."""
        x, y, _ = self.block
        return index % x, index // x % y, index // (x * y)

    def _barrier(self, access: Access, message: str) -> Finding:
        return self.found("synccheck", "divergent barrier", access, message)

    def found(self, tool: str, kind: str, access: Access, message: str) -> Finding:
        """Return a finding with its line, its source and its thread."""
        line = self._line(access.site)
        thread = self.thread(access.thread)
        calls = self.kernel.code[access.site].calls
        source = self._text(line)
        return Finding(tool, kind, line, access.block, thread, message, source, calls=calls, site=access.site)

    def _recorded(self, launch: Launch, site: int) -> Access:
        """Return the access of the first lane in the record of an error."""
        mask = launch.error_mask & 0xFFFFFFFF
        lane = (mask & -mask).bit_length() - 1 if mask else 0
        block = (launch.error_x, launch.error_y, launch.error_z)
        return Access(
            site, launch.error_address, launch.error_shared or 0, block, WARP * launch.error_warp + lane
        )

    def _space(self, access: Access) -> str:
        """Return the space of an access; for a generic address, its value decides."""
        if (space := self.kernel.code[access.site].space) != "generic":
            return space
        return "shared" if 0 <= access.address - access.shared < self.shared_bytes else "global"

    def _other_space(self, access: Access) -> str:
        """Describe an access that confuses constant memory with the rest; "" where it does not."""
        range_, instruction = self._range(access), self.kernel.code[access.site]
        if range_ and instruction.space == "const" and not range_.is_constant:
            return f"{range_.named.name} is not in constant memory"
        if range_ and instruction.family.writes and range_.is_constant:
            return f"{range_.named.name} is in constant memory, which a kernel can only read"
        return ""

    def _range(self, access: Access) -> Range | None:
        """Return the first array or variable that holds an address."""
        return next((r for r in self.ranges if r.start <= access.address < r.start + r.size), None)

    def _place(self, access: Access) -> str:
        """Name the memory of an access."""
        space = self._space(access)
        if space == "shared":
            start, name = self._shared_variable(access)
            return f"byte {access.address - access.shared - start} of shared `{name}`"
        if space == "local":
            return "a local variable"
        if range_ := self._range(access):
            return range_.named.element((access.address - range_.start) // range_.itemsize)
        return f"{space} memory"

    def variable(self, access: Access) -> str:
        """Return the name of the shared array or argument that an access goes to; "" if it has none."""
        if self._space(access) == "shared":
            return self._shared_variable(access)[1]
        range_ = self._range(access)
        return range_.named.name if range_ else ""

    def outside(self, address: int, size: int) -> str:
        """Say where an address lies that is in no array."""
        return _near(address, size, self.ranges)

    def place_in_shared(self, access: Access) -> str:
        """Name a place in the shared memory of the block, or of another of its cluster."""
        rank, offset = divmod(access.address - access.shared, STRIDE)
        start, name = self._shared_variable(replace(access, address=access.shared + offset))
        other = " of another block of the cluster" if rank else ""
        return f"byte {offset - start} of shared `{name}`{other}"

    def _shared_variable(self, access: Access) -> tuple[int, str]:
        """Return the offset and name of the last shared array that begins at or before an address."""
        offset = access.address - access.shared
        before = [(start, name) for name, start in self.shared_names.items() if start <= offset]
        start, name = max(before, default=(0, "memory"))
        return start, last_name(name)

    def _verb(self, site: int) -> str:
        family = self.kernel.code[site].family
        return "atomic operation" if family.is_atomic else "write" if family.writes else "read"

    def _line(self, site: int) -> int:
        return self.kernel.code[site].line

    def _text(self, line: int) -> str:
        return self.source[line - 1].strip() if 0 < line <= len(self.source) else ""


def last_name(mangled: str) -> str:
    """Return the last name in a mangled one: `tile` for `_ZZ6matmulE4tile` (Itanium C++ ABI, 5.1.2).

    A variable of a namespace has the namespace, too: `a::tile`.
    """
    for match in reversed(list(re.finditer(r"E(\d+)", mangled))):
        name = mangled[match.end() :][: int(match[1])]
        if len(name) == int(match[1]):
            return name
    return demangled(mangled)


FAR = 1 << 40  # bytes
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def _long(seconds: float) -> str:
    """Return a time in the largest unit of which it is at least one."""
    length, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return counted(max(1, round(seconds / length)), unit)


def _near(address: int, size: int, ranges: Sequence[Range]) -> str:
    """Describe where an address lies relative to the nearest array."""
    if address < 4096:
        return f"address {address:#x} is a null pointer" + (f" plus {address} bytes" if address else "")
    arrays = [r for each in ranges for r in (each.arrays or [each]) if r.owner is not None]
    for each in arrays:
        offset = address - each.start
        if isinstance(each.owner, Freed) and each.owner.has(offset):
            return each.owner.element(offset)
    arrays = [r for r in arrays if not isinstance(r.owner, Freed)]
    if not arrays:
        return (
            f"no array was passed to the kernel; address {address:#x} may be a host pointer "
            "(malloc, new, the stack)"
        )

    def distance(r: Range) -> int:
        return max(r.start - address, address + size - r.start - r.size, 0)

    nearest = min(arrays, key=distance)
    if distance(nearest) > FAR:
        return f"address {address:#x} is far from all arrays: is it a host pointer (malloc, new, the stack)?"
    return _place(address - nearest.start, size, nearest.named)


def _place(offset: int, size: int, memory: Named) -> str:
    if offset >= 0 and offset + size <= memory.size:
        return (
            f"byte {offset} of {memory.name} is not a multiple of {size}, as an access of {size} bytes needs"
        )
    return memory.outside(offset, size)
