"""What each request means: kernels described, launched, counted or checked; the GPU that is stood for."""

from __future__ import annotations

import io
import math
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from enum import IntEnum

from simt.common.errors import (
    BarrierError,
    InvalidAccess,
    LaunchError,
    OutOfMemory,
    SimtError,
    Timeout,
)
from simt.common.occupancy import DEFAULT_GPU, Gpu, occupancy
from simt.common.occupancy import gpu as find_gpu
from simt.compiler.nvrtc import MissingTool
from simt.findings import Finding
from simt.kernel import TOOLS, Launch
from simt.launch.arguments import Packed
from simt.module import Kernel
from simt.programs.header import numbers
from simt.programs.server.device_code import Modules
from simt.programs.server.gpu import described
from simt.programs.server.libraries import Libraries
from simt.programs.server.memory import DEVICE, MANAGED, PINNED, SITES, Allocation, Memory, arguments
from simt.programs.server.places import Places
from simt.programs.server.recorder import Recorder
from simt.programs.server.reporting import Launches, Mistakes, tell
from simt.programs.server.textures import Textures
from simt.programs.server.timing import Timing
from simt.programs.server.waits import Operation, Order, Waits, launched, moved
from simt.programs.server.wire import Answer, Reader
from simt.programs.server.words import shown, worded
from simt.sanitizer.sanitizer import Sanitizer

_PLACE = re.compile(r"(?:ptxas )?/\S+\.ptx\b")  # of the copy that the assembler got
SECONDS = 120.0  # time limit of a kernel, unless LABKIT_TIMEOUT sets another

_REQUESTS = {number: name.lower() for name, number in numbers("request").items()}


class Code(IntEnum):
    """CUDA's errors."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    INVALID_PTX = 218
    NOT_FOUND = 500
    ILLEGAL_ADDRESS = 700
    LAUNCH_TIMEOUT = 702
    ASSERT = 710
    MISALIGNED = 716
    LAUNCH_FAILURE = 719
    NOT_SUPPORTED = 801


class Server:
    """Serves one program, by its process; `file` is the number of the file that its memory lies in.

    With a `seed` there is a record of what the program does.
    """

    def __init__(self, file: int, process: int, seed: int | None = None) -> None:
        self.memory = Memory(file)
        self.modules = Modules(self.memory)
        self.gpu: Gpu = find_gpu(os.environ.get("LABKIT_GPU") or DEFAULT_GPU)
        self.seconds = float(os.environ.get("LABKIT_TIMEOUT") or SECONDS)
        self.textures = Textures(self.memory)
        self.libraries = Libraries(self.memory, self.gpu)
        self.timing = Timing(self.gpu)
        self.mode = os.environ.get("LABKIT_PROGRAM", "")
        self.mistakes, self.launches = Mistakes(), Launches(self.gpu.name)
        self.places = Places(process)
        self.waits = Waits(self.memory, self.mistakes)
        self._ran: Operation | None = None  # the last launch
        self._sanitizer: Sanitizer | None = None  # of a launch that has just run
        self.recorder = None if seed is None else Recorder(self.memory, self.gpu.name, seed)
        self._unseen = ""  # a launch that was refused, while nothing has looked for it

    def answer(self, request: int, reader: Reader) -> Answer:
        """Answer one request: by the method of its name in runtime/runtime.h."""
        serve: Callable[[Reader], Answer] = getattr(self, _REQUESTS[request])
        return serve(reader)

    def end(self) -> None:
        """Report what is to be reported when the program has ended."""
        if self.mode == "check":
            self._blame_unseen()
            self.mistakes.finish(is_optimised=self.modules.are_optimised)
        elif self.mode == "profile":
            self.launches.finish()

    def load(self, reader: Reader) -> Answer:
        """Keep a module's device code; one that the program has loaded by itself is looked at now."""
        number, is_own, heap_bytes, count = reader.u32(), reader.u32(), reader.u64(), reader.u32()
        managed: dict[str, int] = {}
        for _ in range(count):
            start = reader.u64()
            managed[reader.text()] = start
        self.modules.load(number, reader.rest(), managed, heap_bytes)
        if not is_own:
            return Answer().u32(Code.SUCCESS)
        try:
            with suppress(MissingTool):  # what is wrong with PTX, NVIDIA's assembler knows best
                self.modules.module(number).origin.resources(self.gpu.arch)
        except SimtError as error:
            told = _PLACE.sub("PTX", str(error))
            tell(f"labkit: the simulator cannot load this module: {told}")
            return Answer().u32(Code.INVALID_PTX)
        return Answer().u32(Code.SUCCESS)

    def kernel(self, reader: Reader) -> Answer:
        """Describe a kernel: its limits, and where its parameters lie."""
        module, name = reader.u32(), reader.text()
        try:
            number = self.modules.kernel(module, name)
        except SimtError as error:
            if self.modules.has_kernel(module, name):
                tell(f"labkit: the simulator cannot run kernel `{name}`: {error}")
                return Answer().u32(Code.NOT_SUPPORTED)
            tell(f"labkit: {error}")
            return Answer().u32(Code.NOT_FOUND)
        _, kernel = self.modules.kernels[number]
        parsed, storage = kernel.parsed, kernel.storage
        answer = Answer().u32(Code.SUCCESS, number, parsed.max_threads, kernel.shared_size_bytes)
        answer.u32(*parsed.cluster, kernel.is_cooperative, storage.param_bytes, len(parsed.params))
        for parameter in parsed.params:
            answer.u32(storage.params[parameter.name], parameter.size)
        return answer

    def find_variable(self, reader: Reader) -> Answer:
        """Say where a variable lies."""
        module, name = self.modules.module(reader.u32()), reader.text()
        if name not in module.memory:
            return Answer().u64(0, 0).u32(0)
        memory, (space, _) = module.memory[name], module.parsed.variables[name]
        return Answer().u64(memory.ctypes.data, memory.nbytes).u32(space == "const")

    def launch(self, reader: Reader) -> Answer:
        """Run a kernel."""
        number = reader.u32()
        sizes = [reader.u32() for _ in range(6)]
        shared, _is_cooperative, is_timed = reader.u32(), reader.u32(), reader.u32()
        sites = [reader.u64() for _ in range(SITES)]
        module, kernel = self.modules.kernels[number]
        grid, block = (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5])
        packed = Packed(reader.rest(), self.memory.ranges(exact=self.mode == "check"))
        launch = Launch(grid, block, [packed], shared, self.seconds)
        kernel.max_dynamic_shared_size_bytes = self.gpu.shared_bytes_per_block
        self._ran = None
        printed, code, is_refused, seconds, share = io.StringIO(), Code.SUCCESS, False, math.nan, 1.0
        if is_timed or self.mode == "profile":
            seconds, share = self.timing.of(kernel, launch)
        added = self.recorder.before(kernel, launch) if self.recorder else None
        start = time.perf_counter()
        try:
            with redirect_stdout(printed):
                code = self._run(module, kernel, launch, seconds)
        except LaunchError as error:
            code, is_refused = Code.INVALID_VALUE, True
            tell(f"labkit: {self._at(sites)}{error}")
        except SimtError as error:
            code = code_of(error)
            tell(f"labkit: kernel `{shown(kernel)}` has failed: {self._placed(module, error)}")
        if self.mode == "check" and code == Code.SUCCESS:
            assert self._sanitizer is not None
            touched = self._sanitizer.touched(arguments(kernel, launch)[1].values())
            sources = self.modules.sources[module]
            self._ran = launched(shown(kernel), self.places.line(sites), sources, kernel.parsed, touched)
        self._sanitizer = None  # it holds the launch's arrays
        if math.isnan(seconds):
            seconds = time.perf_counter() - start
        if self.recorder:
            self.recorder.after(added, code, seconds)
        return Answer().u32(code, is_refused).double(seconds, share).text(printed.getvalue())

    def _run(self, module: int, kernel: Kernel, launch: Launch, seconds: float) -> Code:
        """Run a launch as the mode says; return the error that it leaves."""
        sources = self.modules.sources[module]
        call = (launch.grid, launch.block, launch.args, launch.shared_mem)
        if self.mode == "profile":
            profile = kernel.profile(*call, gpu=self.gpu.name, timeout=self.seconds)
            self.launches.add(kernel, launch.grid, launch.block, profile, seconds, sources)
        elif self.mode == "check":
            findings, self._sanitizer = kernel.run_checked(launch, TOOLS, None)
            for each in findings:
                key = f"{shown(kernel)} {each.line} {each.other_line} {each.kind}"
                self.mistakes.add(each.kind, worded(each, sources), key)
            return next((code for each in findings if (code := _ENDING.get(each.kind))), Code.SUCCESS)
        else:
            kernel(*call, timeout=self.seconds)
        return Code.SUCCESS

    def _at(self, sites: Sequence[int]) -> str:
        line = self.places.line(sites)
        return f"{line}: " if line else ""

    def resources(self, reader: Reader) -> Answer:
        """Say how many registers and bytes of local memory a kernel needs."""
        _, kernel = self.modules.kernels[reader.u32()]
        try:
            found = kernel.resources_for(self.gpu.arch)
        except SimtError as error:
            tell(f"labkit: the registers of `{shown(kernel)}` are not known: {error}")
            return Answer().u32(32, 0)
        return Answer().u32(found.registers, found.local_bytes)

    def occupancy(self, reader: Reader) -> Answer:
        """Say how many blocks of a kernel a multiprocessor holds."""
        _, kernel = self.modules.kernels[reader.u32()]
        threads, dynamic = reader.u32(), reader.u32()
        shared = kernel.shared_size_bytes + dynamic
        try:
            registers = kernel.resources_for(self.gpu.arch).registers
            return Answer().u32(occupancy(self.gpu, threads, registers, shared).blocks)
        except (SimtError, ValueError):
            return Answer().u32(0)

    def array(self, reader: Reader) -> Answer:
        """Make a CUDA array."""
        return self._made(self.textures.array, reader)

    def object(self, reader: Reader) -> Answer:
        """Make a texture or a surface."""
        return self._made(self.textures.object, reader)

    def destroy(self, reader: Reader) -> Answer:
        """Forget a CUDA array, a texture or a surface."""
        was_there = self.textures.destroy(bool(reader.u32()), reader.u64())
        return Answer().u32(Code.SUCCESS if was_there else Code.INVALID_VALUE, 0)

    def _made(self, make: Callable[[Reader], int], reader: Reader) -> Answer:
        try:
            return Answer().u32(Code.SUCCESS, make(reader))
        except ValueError as error:
            tell(f"labkit: {error}")
            return Answer().u32(Code.INVALID_VALUE, 0)

    def library_call(self, reader: Reader) -> Answer:
        """Serve a call of cuBLAS or cuRAND."""
        status, seconds, result = self.libraries.call(reader)
        return Answer().u32(status).double(seconds, result)

    def machine(self, reader: Reader) -> Answer:
        """Describe the GPU."""
        return Answer([described(self.gpu).encode()])

    def failed_call(self, reader: Reader) -> Answer:
        """Note a call that has failed."""
        function, name, text = reader.text(), reader.text(), reader.text()
        line = self.places.line([reader.u64() for _ in range(SITES)])
        where = f"{line}: " if line else ""
        is_launch = "cudaLaunch" in function  # the driver's own returns its error
        what = "a kernel launch failed" if is_launch else f"{function} failed"
        self.mistakes.add("failed call", f"{where}{what}: {name} ({text})", f"{line} {function} {name}")
        if is_launch:
            self._blame_unseen()
            self._unseen = f"{where}this launch failed"
        return Answer()

    def looked(self, reader: Reader) -> Answer:
        """Note that the program has asked for its last error."""
        self._unseen = ""
        return Answer()

    def _blame_unseen(self) -> None:
        if self._unseen:
            self.mistakes.add(
                "unchecked launch",
                f"{self._unseen}, and the program never noticed: call cudaGetLastError() after it",
            )
        self._unseen = ""

    def last(self, reader: Reader) -> Answer:
        """Note that the program has come to its end: what is still allocated now is a leak."""
        if self.recorder:
            self.recorder.ended = True
        return self.left(reader)

    def left(self, reader: Reader) -> Answer:
        """Note what the program leaves, at its end or to cudaDeviceReset: each array is a leak."""
        if self.mode == "check":
            kept = [each for each in self.memory.allocations() if each.kind in (DEVICE, MANAGED, PINNED)]
            self.mistakes.add_leaks([(each, self.places.line(each.sites)) for each in kept if each.sites[0]])
        return Answer()

    def unwritten(self, reader: Reader) -> Answer:
        """Note a copy to the host of memory that nobody has written."""
        start, size = reader.u64(), reader.u64()
        where = self._at([reader.u64() for _ in range(SITES)])
        for each in self.memory.allocations():
            if each.start <= start < each.start + each.bytes:
                first = start - each.start
                what = f"copies bytes {first} to {first + size - 1} of {each} to the host"
                self.mistakes.add("uninitialised copy", f"{where}{what}; nobody has written them", where)
        return Answer()

    def freed(self, reader: Reader) -> Answer:
        """Note that memory is about to be freed, and where."""
        start, size, kind, number = reader.u64(), reader.u64(), reader.u32(), reader.u32()
        sites = tuple(reader.u64() for _ in range(SITES))
        each = Allocation(start, size, kind, number, sites)
        self.memory.note_freed(each, lambda: self.places.line(sites))
        return Answer()

    def order(self, reader: Reader) -> Answer:
        """Follow who waits for whom; answer with the pages that the host must not use now."""
        kind = Order(reader.u32())
        sites = [reader.u64() for _ in range(SITES)]
        numbers = [reader.u64() for _ in range(len(reader.data[reader.at :]) // 8)]
        if self.mode != "check":
            return Answer().u32(0)
        waits = self.waits
        if kind == Order.RAN:
            if self._ran:
                waits.enqueue(numbers[0], self._ran)
        elif kind == Order.MOVED:
            waits.enqueue(numbers[0], moved(self.places.line(sites), *numbers[1:]))
        elif kind == Order.HOST_TOUCHED:
            waits.host_touched(numbers[0], bool(numbers[1]), self.places.line(sites))
        else:
            waits.follow(kind, numbers)
        guards = waits.guards
        return Answer().u32(len(guards)).u64(*(number for guard in guards for number in guard))

    def noted(self, reader: Reader) -> Answer:
        """Keep what the program's library reports for the record."""
        if self.recorder:
            self.recorder.note(reader)
        return Answer()

    def _placed(self, module: int, error: SimtError) -> str:
        """Put a mistake into words, with its file."""
        finding = error.finding
        if not isinstance(finding, Finding):
            return str(error)
        return worded(finding, self.modules.sources[module])


# What ends a kernel on a GPU, too; after other mistakes a checked program goes on, to show more of them.
_ENDING = {
    "time limit": Code.LAUNCH_TIMEOUT,
    "assert": Code.ASSERT,
    "trap": Code.LAUNCH_FAILURE,
}


def code_of(error: SimtError) -> Code:
    """Return CUDA's error for a mistake."""
    kind = getattr(error.finding, "kind", "")
    if isinstance(error, InvalidAccess):
        return Code.MISALIGNED if kind == "misaligned" else Code.ILLEGAL_ADDRESS
    if kind == "assert":
        return Code.ASSERT
    if isinstance(error, Timeout):
        return Code.LAUNCH_TIMEOUT
    if isinstance(error, OutOfMemory):
        return Code.OUT_OF_MEMORY
    if isinstance(error, BarrierError) or kind:
        return Code.LAUNCH_FAILURE
    return Code.NOT_SUPPORTED
