"""Modules and kernels with the interface of CuPy's RawModule and RawKernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from simt import ptx
from simt.analysis.deciders import find_deciders
from simt.analysis.layout import Storage, storage
from simt.common.buffer_names import parameter_names as names_of_parameters
from simt.common.errors import CompileError, LaunchError, SimtError
from simt.common.limits import MAX_STATIC_SHARED_BYTES, Dim3, check_launch, max_threads_for
from simt.common.occupancy import DEFAULT_GPU, Gpu, occupancy
from simt.common.occupancy import gpu as find_gpu
from simt.compiler.machine_code import KernelCode, assembler
from simt.compiler.nvrtc import Resources, compile_ptx
from simt.compiler.origin import CudaSource, Origin, PtxText
from simt.counters.counting import Counting
from simt.counters.counts import Totals
from simt.counters.profile import LaunchContext, Profile
from simt.counters.recording import Recording
from simt.counters.traffic import TrafficRecorder, placed
from simt.counters.wavefronts import Issues
from simt.disk_cache import disk_cached
from simt.findings import Finding
from simt.kernel import PATIENCE_SECONDS, Blocks, Launch
from simt.kernel import Kernel as KernelProtocol
from simt.launch.arguments import Packed, Range, bind
from simt.launch.sample import Sample, choose_sample, whole_clusters
from simt.launch.twins import on_host
from simt.lowering.features import refuse
from simt.lowering.grid import make_grid_barriers
from simt.lowering.heap import HEAP_BYTES, uses_heap, with_heap
from simt.lowering.inline import inline_calls
from simt.lowering.lower import copy_parameters, lower
from simt.lowering.services import make_services
from simt.lowering.spinning import mark_spins
from simt.ptx.parser import parse, return_directly
from simt.ptx.variables import Place, demangled, element_type, find_variable, initial_memory
from simt.run.machine import BoundLaunch, NativeCode
from simt.run.observer import Observer
from simt.sanitizer.sanitizer import Sanitizer
from simt.sass.control_slice import NoCounts
from simt.sass.issued import Counted, Issued, MemorySnapshot, Traffic, issues_of, traffic_of
from simt.sass.listing import Sass, sass
from simt.sass.program import Lifted, bank_image, lifted
from simt.texture import Table


class RawModule:
    """CUDA C++ compiled for the simulator.

    `code` is the source, `options` go to NVRTC, and `name_expressions` name template instances such as
    `gemm<16>`. Raises CompileError with the compiler's messages, and TypeError for an argument of the wrong
    type. A kernel that synchronises its grid is launched as CUDA's cooperative launch does, also without
    `enable_cooperative_groups`, which CuPy asks for.
    """

    gpu = DEFAULT_GPU  # on which blocks that wait for each other run

    def __init__(
        self,
        *,
        code: str,
        options: Sequence[str] = (),
        name_expressions: Sequence[str] | None = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        compiled = compile_ptx(code, options, name_expressions or ())
        origin = CudaSource(code, tuple(options), tuple(name_expressions or ()))
        self.options, self.name_expressions = origin.options, origin.name_expressions
        self.enable_cooperative_groups = enable_cooperative_groups
        self._lowered, self.log = compiled.lowered_names, compiled.log
        self._begin(origin, with_heap(compiled.text, HEAP_BYTES))

    @classmethod
    def from_ptx(cls, origin: PtxText, place: Place | None = None, heap_bytes: int = HEAP_BYTES) -> RawModule:
        """Return the module of PTX that another compiler has made, such as nvcc for a whole program.

        `place` says where its variables lie: see `initial_memory`. `heap_bytes` are there for its kernels to
        allocate.
        """
        module = cls.__new__(cls)
        module.options, module.name_expressions = (), ()
        module.enable_cooperative_groups, module._lowered, module.log = False, {}, ""
        module._begin(origin, with_heap(origin.text, heap_bytes), place)
        return module

    def _begin(self, origin: Origin, text: str, place: Place | None = None) -> None:
        self.origin, self.code, self.ptx = origin, origin.code, text
        key = [text, *map(repr, sorted(origin.first_lines.items()))]
        self.parsed = disk_cached("parsed", key, lambda: _parsed(text, origin.first_lines))
        self.memory = initial_memory(self.parsed, place)

    def get_function(self, name: str) -> Kernel:
        """Return the kernel called `name`: an `extern "C"` name or one of the name expressions."""
        return Kernel(self, find_kernel(self.parsed, self._lowered, name), name)

    def get_global(self, name: str) -> np.ndarray:
        """Return the elements of a `__device__` or `__constant__` variable; the bytes of a structure.

        Later launches see changes. It is a buffer, too: as with CuPy, one may write
        `np.ndarray((4,), np.float32, module.get_global("weights"))`.
        """
        found = find_variable(list(self.memory), self._lowered, name)
        memory, variable = self.memory[found], self.parsed.variables[found][1]
        dtype = element_type(self.code, demangled(found), variable.type)
        return memory.view(dtype) if dtype and memory.size % dtype.itemsize == 0 else memory

    def restart(self) -> None:
        """Give the module's variables new memory with their first values.

        What `get_global` returned before is no longer theirs.
        """
        if self.memory:
            self.memory = initial_memory(self.parsed)
            self.__dict__.pop("_ranges", None)

    def with_options(self, options: Sequence[str]) -> RawModule:
        """Compile the same source with other options. Raises CompileError."""
        return type(self)(
            code=self.code,
            options=options,
            name_expressions=self.name_expressions,
            enable_cooperative_groups=self.enable_cooperative_groups,
        )

    @cached_property
    def _ranges(self) -> list[Range]:
        """Return the memory of the module's variables, in the order of their numbers (see `Storage`)."""
        spaces = {name: space for name, (space, _) in self.parsed.variables.items()}
        return [
            Range(memory.ctypes.data, memory.nbytes, 0, name, is_constant=spaces[name] == "const")
            for name, memory in self.memory.items()
        ]

    @cached_property
    def lines(self) -> list[str]:
        """Return the lines of the source."""
        return self.code.splitlines()

    @cached_property
    def asks_for_fenced_inits(self) -> bool:
        """Say whether a check asks for a fence after an mbarrier's initialisation.

        libcu++'s memcpy_async makes bulk copies without one, as NVIDIA documents it.
        """
        return MEMCPY_ASYNC not in self.ptx

    @cached_property
    def resources(self) -> dict[str, Resources]:
        """Return each kernel's registers and memory, as ptxas gives them for sm_90 (H100, H200)."""
        return self.origin.resources("sm_90")


def _parsed(text: str, first_lines: Mapping[str, int]) -> ptx.Module:
    """Parse a module and inline every call in its kernels."""
    module = parse(text, first_lines)
    for function in [*module.functions.values(), *module.kernels.values()]:
        lower(function)
    for kernel in module.kernels.values():
        copy_parameters(kernel)
        inline_calls(kernel, module)
        if "%envreg" in text:
            make_grid_barriers(kernel)
        refuse(kernel)
        make_services(kernel)
        return_directly(kernel)
        mark_spins(kernel)
    return module


# PTX instructions that the assembler makes branches of, by their operands.
BRANCHES = (
    "div",
    "rem",
    "sqrt",
    "rcp",
    "rsqrt",
    "sin",
    "cos",
    "ex2",
    "lg2",
    "vote",
    "match",
    "redux",
    "shfl",
)
USUAL_REGISTERS = 32  # per thread, of a kernel of which the assembler does not say it
MEMCPY_ASYNC = '"memcpy_async_barrier.h"'  # a header of libcu++
MAX_CLUSTER = 16  # blocks, of a kernel that may use more than the portable 8


def find_kernel(module: ptx.Module, lowered_names: dict[str, str], name: str) -> ptx.Kernel:
    """Return the kernel called `name`, or its name expression. Raises SimtError, which lists the kernels."""
    kernel = module.kernels.get(lowered_names.get(name, name))
    if kernel is None:
        known = ", ".join(f"`{known}`" for known in [*lowered_names, *module.kernels]) or "none"
        raise SimtError(
            f"no kernel is called `{name}`; this module has: {known}. "
            'Declare it extern "C" __global__, or list it in name_expressions'
        )
    return kernel


@dataclass(frozen=True)
class LaunchSnapshot:
    """What it takes to run a launch's machine code later: its arguments, its blocks, the GPU, the memory."""

    bound: BoundLaunch
    sample: Sample | None
    gpu: Gpu
    memory: MemorySnapshot


@dataclass(frozen=True)
class Recorded:
    """What a block did, until it ended or `error` ended it.

    `code` is the kernel's, `blocks` has the numbers of the instructions of each basic block, and `record` the
    log of their visits and values. `ranges` is valid global memory; `storage` names the rest.
    """

    code: Sequence[ptx.Instruction]
    blocks: Sequence[Sequence[int]]
    record: Recording
    ranges: Sequence[Range]
    shared_bytes: int
    storage: Storage
    error: SimtError | None


AnyKernel = KernelProtocol[Profile, Finding]  # wherever it runs


class Kernel(AnyKernel):
    """A kernel of a module. Call it with `kernel(grid, block, args, shared_mem=0, timeout=10)`."""

    module: RawModule

    def __init__(self, module: RawModule, parsed: ptx.Kernel, name: str) -> None:
        self.module, self.name, self.parsed = module, name, parsed
        # As in CuPy: set it to use more than 48 KB per block.
        self.max_dynamic_shared_size_bytes: int | None = None
        self.storage = storage(parsed, module.parsed)
        self.native = NativeCode(parsed, self.storage, module.ptx, module.lines)
        self._lifts: dict[tuple[str, bool], tuple[Lifted, NativeCode]] = {}
        if self.storage.static_shared_bytes > MAX_STATIC_SHARED_BYTES:
            raise LaunchError(
                f"kernel `{name}` declares {self.storage.static_shared_bytes} bytes of shared memory; a "
                f"kernel can declare at most {MAX_STATIC_SHARED_BYTES} (48 KB). Use a smaller tile, or "
                "`extern __shared__` memory sized at launch"
            )

    def run_launch(self, launch: Launch) -> None:
        """Run a launch; see AnyKernel."""
        self.bind(launch).run(Observer())

    def _for_simulator(self, launch: Launch) -> Launch:
        return replace(launch, args=on_host(launch.args))

    def profile_launch(self, launch: Launch, blocks: Blocks, gpu: str) -> Profile:
        """Count a launch; see AnyKernel."""
        on_gpu, sample = find_gpu(gpu), self._sample(blocks, launch.grid)
        bound = self.bind(launch)
        kept = LaunchSnapshot(
            bound, sample, on_gpu, MemorySnapshot.of(bound.ranges, self._contents_may_decide)
        )
        totals = bound.run(Counting(), sample)
        context = LaunchContext(
            grid=launch.grid,
            block=launch.block,
            shared_bytes=bound.shared_bytes,
            resources=self.resources_for,
            gpu=on_gpu,
            scalars=[int(arg) if isinstance(arg, int | np.integer) else None for arg in launch.args],
        )
        issued = partial(self._issued, kept)
        return Profile(self.parsed.code, totals.counts, self.module.lines, sample, context, issued)

    def check_launch(self, launch: Launch, tools: Sequence[str], blocks: Blocks) -> list[Finding]:
        """Check a launch; see AnyKernel."""
        return self.run_checked(launch, tools, blocks)[0]

    def run_checked(
        self, launch: Launch, tools: Sequence[str], blocks: Blocks
    ) -> tuple[list[Finding], Sanitizer]:
        """Check a launch; return the findings, and the sanitizer, which knows what the launch touched."""
        sanitizer = Sanitizer(self.parameter_types, self.module.asks_for_fenced_inits)
        bound = self.bind(launch)
        try:
            findings = bound.run(sanitizer, self._sample(blocks, launch.grid))
        except SimtError as error:
            found, findings = error.finding, sanitizer.result
            if not isinstance(found, Finding):
                raise
            if all((each.kind, each.line) != (found.kind, found.line) for each in findings):
                findings.append(found)
        return [finding for finding in findings if finding.tool in (*tools, "timeout")], sanitizer

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Give the module's variables and all surfaces what they hold now, after what runs inside.

        They are no arguments of a launch, so that copies of these do not keep them.
        """
        surfaces = Table().arrays() if any(i.is_texture for i in self.parsed.code) else []
        memory = [*self.module.memory.values(), *(each.memory for each in surfaces)]
        kept = [each.copy() for each in memory]
        try:
            yield
        finally:
            for each, contents in zip(memory, kept, strict=True):
                each[...] = contents

    def record(self, launch: Launch, number: int, order: np.ndarray, megabytes: int) -> Recorded:
        """Run one block of a launch and keep all that it does, as far as `megabytes` hold it.

        `order` has a row per round: the numbers of the warps, in the order in which they run to the next
        barrier. Raises LaunchError, and SimtError for a kernel whose blocks meet.
        """
        if self.is_cooperative:
            raise SimtError("a kernel that synchronises its grid cannot be recorded: its blocks meet")
        if self.parsed.blocks_together > 1:
            raise SimtError("a kernel with clusters cannot be recorded: their blocks meet")
        bound, recording, error = self.bind(launch), Recording(megabytes, order), None
        blocks = self.native.program(launch, Recording, 1).compiled.blocks
        try:
            bound.run(recording, choose_sample([number], launch.grid))
        except SimtError as found:
            error = found
        shared, code = bound.shared_bytes, self.parsed.code
        return Recorded(code, blocks, recording, bound.ranges, shared, self.storage, error)

    @property
    def simulated(self) -> Kernel:
        """Return the kernel itself."""
        return self

    @property
    def attributes(self) -> dict[str, int]:
        """Return those of CuPy's `kernel.attributes` that are known without a GPU."""
        return {
            "num_regs": self.num_regs,
            "shared_size_bytes": self.shared_size_bytes,
            "local_size_bytes": self._resources.local_bytes,
            "max_threads_per_block": min(self.parsed.max_threads, max_threads_for(self.num_regs)),
            "max_dynamic_shared_size_bytes": self.max_dynamic_shared_size_bytes
            or MAX_STATIC_SHARED_BYTES - self.shared_size_bytes,
        }

    @property
    def num_regs(self) -> int:
        """Return the registers per thread."""
        return self._resources.registers

    @property
    def shared_size_bytes(self) -> int:
        """Return the static shared memory per block, which is known without the assembler."""
        return self.storage.static_shared_bytes

    @cached_property
    def parameter_types(self) -> list[str]:
        """Return the C++ types of the kernel's parameters; [] where they are not known."""
        return self.module.origin.parameter_types(self.name)

    @cached_property
    def parameter_names(self) -> list[str]:
        """Return the names of the kernel's parameters; [] where its source does not show them."""
        return names_of_parameters(self.module.code, self.name, len(self.parsed.params))

    @property
    def _resources(self) -> Resources:
        return self.module.resources[self.parsed.name]

    def resources_for(self, arch: str) -> Resources:
        """Return the registers and memory that the kernel needs on an architecture such as `sm_90`."""
        return self.module.origin.resources(arch)[self.parsed.name]

    def sass(self, gpu: str = DEFAULT_GPU) -> Sass:
        """Return the kernel's machine code for a GPU of gpus.csv.

        Raises ValueError for an unknown name, and CompileError for a GPU that the compiler makes no code for
        and where NVIDIA's disassembler is missing.
        """
        return sass(self.module.origin, self.parsed.name, gpu)

    @cached_property
    def _contents_may_decide(self) -> bool:
        """Say whether the contents of arrays may decide which machine code runs.

        The assembler makes branches of quotients, roots and sines, and where a value decides at PTX level.
        """
        return find_deciders(self.parsed).contents or any(i.parts[0] in BRANCHES for i in self.parsed.code)

    def _issued(self, kept: LaunchSnapshot) -> Issued:
        """Return how often a launch issues each instruction of the machine code; counted when needed."""
        sass = self.sass(kept.gpu.name)
        sample = kept.sample
        scale = sample.total / len(sample.numbers) if sample else 1.0
        return Issued(sass, partial(self._count_issues, sass, kept), scale)

    def lifted(self, code: KernelCode, keeps_traffic: bool = False) -> Lifted:
        """Return what decides in machine code, as a kernel of its own; see `simt.sass.program`."""
        return self._lifted(code, keeps_traffic)[0]

    def _lifted(self, code: KernelCode, keeps_traffic: bool) -> tuple[Lifted, NativeCode]:
        if (code.arch, keeps_traffic) not in self._lifts:
            text = [self.module.ptx, *self.module.options, code.arch, assembler()]
            key = [*text, self.parsed.name, *["traffic"] * keeps_traffic]
            made = disk_cached(
                "lifted", key, lambda: lifted(code, self.parsed, self.module.parsed, keeps_traffic)
            )
            native = NativeCode(made.kernel, made.storage, "\n".join(text), self.module.lines)
            self._lifts[code.arch, keeps_traffic] = made, native
        return self._lifts[code.arch, keeps_traffic]

    def _count_issues(self, sass: Sass, kept: LaunchSnapshot) -> Counted:
        """Run the machine code as far as it decides. Raises NoCounts."""
        decides, native = self._lifted(sass.code, keeps_traffic=False)
        patient = replace(kept.bound.launch, timeout=max(kept.bound.launch.timeout, PATIENCE_SECONDS))
        bound = replace(kept.bound, code=native, launch=patient)
        with kept.memory.restored() if decides.needs_contents else nullcontext():
            totals = self._run_machine_code(sass.code, decides, bound, Issues(), kept.sample)
        return issues_of(decides, totals.counts())

    def traffic(self, bound: BoundLaunch, numbers: Sequence[int], gpu: str, in_order: bool = True) -> Traffic:
        """Run these blocks' machine code as far as it decides; record where they access global memory.

        Unless that is wanted `in_order`, accesses like earlier ones may be left out. Arrays keep their
        contents. Raises NoCounts, and what `sass` raises.
        """
        sass = self.sass(gpu)
        decides, native = self._lifted(sass.code, keeps_traffic=True)
        sample = choose_sample(numbers, bound.launch.grid)
        bound = replace(bound, code=native, ranges=placed(bound.ranges))
        recorder = TrafficRecorder(None if in_order else decides.kinds)
        with MemorySnapshot.of(bound.ranges, True).restored() if decides.writes_arrays else nullcontext():
            totals = self._run_machine_code(sass.code, decides, bound, recorder, sample)
        return traffic_of(sass, decides, totals, bound.shared_bytes, bound.ranges)

    def _run_machine_code(
        self, code: KernelCode, decides: Lifted, bound: BoundLaunch, observer: Issues, sample: Sample | None
    ) -> Totals:
        """Run what decides in the machine code of a launch. Raises NoCounts."""
        if self.is_cooperative:
            raise NoCounts("a barrier of the whole grid waits for other blocks: how long is a matter of time")
        if uses_heap(self.module.ptx):
            raise NoCounts("it allocates memory, by code of the GPU's own")
        images = [bank_image(code, bank, self.module.memory) for bank in decides.banks]
        banks = [Range(i.ctypes.data, i.nbytes, 0, "constants", is_constant=True) for i in images]
        try:
            return replace(bound, ranges=[*bound.ranges, *banks]).run(observer, sample)
        except NoCounts:
            raise
        except SimtError as error:
            told = getattr(error.finding, "message", error)
            raise NoCounts(f"its machine code did not run in the simulator: {told}") from error

    def bind(self, launch: Launch) -> BoundLaunch:
        """Check a launch and bind its arguments. Raises LaunchError."""
        check_launch(self.name, launch.grid, launch.block, self.parsed.max_threads)
        shared = self._shared_bytes(launch.shared_mem)
        if self.module.enable_cooperative_groups or self.is_cooperative:
            self._check_residency(launch, shared)
        self._check_clusters(launch.grid)
        params, ranges = bind(self.parsed, self.storage, launch.args, self.parameter_names)
        ranges += self.module._ranges
        for packed in launch.args:
            if isinstance(packed, Packed):
                ranges += packed.ranges
        return BoundLaunch(
            self.native, launch, params, ranges, shared, partial(self._residents, launch, shared)
        )

    def _check_clusters(self, grid: Dim3) -> None:
        """Check that clusters cover the grid. Raises LaunchError."""
        cluster, together = self.parsed.cluster, self.parsed.blocks_together
        if any(size % side for size, side in zip(grid, cluster, strict=True)):
            raise LaunchError(
                f"kernel `{self.name}` has clusters of {cluster} blocks; grid {grid} is not a multiple "
                "of that. Launch more blocks, and let those beyond the edge do nothing but meet the others"
            )
        if together > MAX_CLUSTER:
            raise LaunchError(
                f"kernel `{self.name}` has clusters of {together} blocks; a cluster holds at most "
                f"{MAX_CLUSTER}"
            )

    def _sample(self, blocks: Blocks, grid: Dim3) -> Sample | None:
        """Return the requested blocks; None for all, without which a cooperative launch would not go on."""
        sample = choose_sample(blocks, grid)
        if sample and self.parsed.blocks_together > 1:
            sample = whole_clusters(sample, grid, self.parsed.cluster)
        return None if self.is_cooperative or self.parsed.waits_for_blocks else sample

    @cached_property
    def is_cooperative(self) -> bool:
        """Say whether the kernel synchronises its whole grid, with `cg::this_grid().sync()`."""
        return self.parsed.waits_for_grid

    def _check_residency(self, launch: Launch, shared_bytes: int) -> None:
        """Check that a GPU holds all blocks at once. Raises LaunchError."""
        gpu, threads, blocks = find_gpu(DEFAULT_GPU), math.prod(launch.block), math.prod(launch.grid)
        if blocks <= gpu.multiprocessors:  # any kernel that can run has one block on each
            return
        fits = occupancy(gpu, threads, self.resources_for(gpu.arch).registers, shared_bytes)
        most = fits.blocks * gpu.multiprocessors
        if blocks > most:
            limit = " and ".join(fits.limited_by or ["warps"])
            raise LaunchError(
                f"kernel `{self.name}` synchronises its grid, so all blocks must be on the GPU at once. The "
                f"launch has {blocks}, and an {gpu.name} holds {most}: {gpu.multiprocessors} multiprocessors "
                f"with {fits.blocks} blocks of {threads} threads each, limited by {limit}. Launch at most "
                f"{most} blocks, and let each do more of the work in a loop"
            )

    def _residents(self, launch: Launch, shared_bytes: int) -> int:
        """Return how many blocks of a launch the GPU holds at once; at least one."""
        gpu, threads = find_gpu(self.module.gpu), math.prod(launch.block)
        if math.prod(launch.grid) <= gpu.multiprocessors:  # any kernel that can run has one on each
            return gpu.multiprocessors
        try:
            registers = self.resources_for(gpu.arch).registers
        except (CompileError, OSError):  # as with a program's code for a newer GPU
            registers = USUAL_REGISTERS
        fits = occupancy(gpu, threads, registers, shared_bytes)
        return max(1, fits.blocks * gpu.multiprocessors)

    def _shared_bytes(self, dynamic: int) -> int:
        """Return a block's static and dynamic shared memory. Raises LaunchError if it is too much."""
        if not isinstance(dynamic, int | np.integer):
            raise LaunchError(f"shared_mem={dynamic!r} must be a whole number of bytes")
        total = self.storage.static_shared_bytes
        if dynamic:
            total = self.storage.dynamic_shared_start + dynamic
        limit = max(
            MAX_STATIC_SHARED_BYTES,
            (self.max_dynamic_shared_size_bytes or 0) + self.storage.dynamic_shared_start,
        )
        if dynamic < 0 or total > limit:
            raise LaunchError(
                f"shared_mem={dynamic} makes {total} bytes of shared memory a block; the limit is {limit}. "
                "For more, set kernel.max_dynamic_shared_size_bytes first (up to 227 KB on an H100 or H200)"
            )
        return total


class RawKernel(Kernel):
    """One kernel of a source, in the form of CuPy's RawKernel: `RawKernel(code, "saxpy")(grid, block, args)`.

    `name` is that of an `extern "C"` kernel, or a template's instance such as `gemm<16>`. `options` go to the
    compiler, which is NVRTC for either `backend`. The source is compiled now. Raises CompileError.
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool = False,
    ) -> None:
        check_raw(backend, translate_cucomplex, jitify)
        module = RawModule(
            code=code,
            options=options,
            name_expressions=[name] if "<" in name else None,
            enable_cooperative_groups=enable_cooperative_groups,
        )
        super().__init__(module, find_kernel(module.parsed, module._lowered, name), name)
        self.code, self.options, self.backend = code, tuple(options), backend

    def compile(self) -> None:
        """Do nothing: the kernel is compiled."""


def check_raw(backend: str, translate_cucomplex: bool, jitify: bool) -> None:
    """Check what RawKernel is asked for. Raises ValueError for what there is in CuPy alone."""
    if backend not in ("nvrtc", "nvcc"):
        raise ValueError(f"backend={backend!r}: choose 'nvrtc' or 'nvcc'")
    for name, is_wanted in (("translate_cucomplex", translate_cucomplex), ("jitify", jitify)):
        if is_wanted:
            raise ValueError(f"{name}=True is CuPy's alone: leave it away")
