"""Run the simulator's interface on a real GPU, through CuPy.

Before the first launch of its kind, some of its blocks run in the simulator, see preflight.py. There are
three differences from the simulator. Later launches return at once, as always in CUDA, and a mistake in them
shows at the next `synchronize()` or copy. There is no time limit on the GPU. CuPy compiles with `-ftz=true`,
so subnormal floats count as 0. Only this module and cublas.py import CuPy at their top; only select.py
imports this one, where there is a GPU.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import cupy
import numpy as np

import simt
from labkit.devices import faults, simulated_fallback
from labkit.devices.preflight import Rehearsals, warn_untried
from labkit.devices.select import device
from simt import ptx
from simt.analysis.layout import storage
from simt.common import launches
from simt.common.errors import LaunchError, SimtError
from simt.common.limits import Dim3, check_launch
from simt.common.occupancy import DEFAULT_GPU
from simt.common.tensor_map import BYTES, TensorMap
from simt.compiler.nvrtc import (
    FILE_NAME,
    Resources,
    compile_error,
    compile_ptx,
    cubin,
    options_stay,
    with_defaults,
)
from simt.kernel import Blocks, Launch, Size, launch_of
from simt.launch import twins
from simt.launch.arguments import bind
from simt.lowering.heap import uses_heap
from simt.module import check_raw, find_kernel
from simt.ptx.parser import parse
from simt.ptx.variables import find_variable, initial_memory
from simt.sass.listing import Sass

_SPECIFIC = re.compile(r"^\.target sm_\d+a", re.MULTILINE)  # PTX for one architecture alone
MOST_READY = 1000  # launches that are remembered as checked

faults.tell_at_the_end()


def raw_module(
    *,
    code: str,
    options: Sequence[str] = (),
    name_expressions: Sequence[str] | None = None,
    enable_cooperative_groups: bool = False,
) -> "RawModule | simulated_fallback.RawModule":
    """Return a module for this GPU, or for the simulator where the GPU lacks an instruction of the source."""
    here = device()
    instruction = simulated_fallback.lacking(
        compile_ptx(code, options, name_expressions or ()).text, here.compute_capability
    )
    if instruction:
        simulated_fallback.warn(instruction, here)
    make = simulated_fallback.RawModule if instruction else RawModule
    return make(
        code=code,
        options=options,
        name_expressions=name_expressions,
        enable_cooperative_groups=enable_cooperative_groups,
    )


def raw_kernel(
    code: str,
    name: str,
    options: Sequence[str] = (),
    backend: str = "nvrtc",
    *,
    translate_cucomplex: bool = False,
    enable_cooperative_groups: bool = False,
    jitify: bool = False,
) -> simt.AnyKernel:
    """Return one kernel of a source, in the form of CuPy's RawKernel: see `simt.RawKernel`."""
    check_raw(backend, translate_cucomplex, jitify)
    return raw_module(
        code=code,
        options=options,
        name_expressions=[name] if "<" in name else None,
        enable_cooperative_groups=enable_cooperative_groups,
    ).get_function(name)


class RawModule:
    """CUDA C++ compiled for the GPU by CuPy, with the interface of `simt.RawModule`.

    Raises CompileError with the compiler's messages, as the simulator does.
    """

    _folder: TemporaryDirectory[str] | None = None  # of the file that CuPy loads, where there is one

    def __init__(
        self,
        *,
        code: str,
        options: Sequence[str] = (),
        name_expressions: Sequence[str] | None = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        # Compile for the simulator first: for its messages, and for the types of each kernel's arguments.
        compiled = compile_ptx(code, options, name_expressions or ())
        self.code, self.options, self.name_expressions = code, tuple(options), tuple(name_expressions or ())
        self.enable_cooperative_groups = enable_cooperative_groups
        self.ptx, self._lowered, self._parsed = compiled.text, compiled.lowered_names, parse(compiled.text)
        self._module = (
            self._assembled()
            if _SPECIFIC.search(compiled.text) or options_stay(self.options)
            else self._compiled()
        )

    def _compiled(self) -> cupy.RawModule:
        """Return the module as CuPy compiles it, for every GPU of this one's generation or later."""
        module = cupy.RawModule(
            code=self.code,
            options=tuple(with_defaults(self.options)),
            name_expressions=self.name_expressions or None,
        )
        try:
            module.compile()
        except cupy.cuda.compiler.CompileException as error:  # from CuPy's own, maybe older, compiler
            log = error.get_message().replace(error.name or "default_program", FILE_NAME)
            raise compile_error(log) from None
        return module

    def _assembled(self) -> cupy.RawModule:
        """Return the module assembled for this GPU's architecture alone, such as sm_90a.

        CuPy always asks NVRTC for sm_90, which lacks wgmma, and in this process.
        """
        arch = f"sm_{cupy.cuda.Device().compute_capability}"
        image = cubin(self.code, ["--ftz=true", *self.options], self.name_expressions, arch)
        self._folder = TemporaryDirectory()  # CuPy loads the file when a kernel is first used
        path = Path(self._folder.name) / "kernels.cubin"
        path.write_bytes(image)
        return cupy.RawModule(path=str(path))

    def get_function(self, name: str) -> "Kernel":
        """Return the kernel called `name`: an `extern "C"` name or one of the name expressions."""
        parsed = find_kernel(self._parsed, self._lowered, name)
        known = self._lowered.get(name, name) if self._folder else name
        return Kernel(self, self._module.get_function(known), parsed, name)

    def with_options(self, options: Sequence[str]) -> "RawModule":
        """Compile the same source with other options. Raises CompileError."""
        return RawModule(
            code=self.code,
            options=options,
            name_expressions=self.name_expressions,
            enable_cooperative_groups=self.enable_cooperative_groups,
        )

    def restart(self) -> None:
        """Give the module's variables their first values, in the order of the GPU's queue."""
        for now, first in self._variables:
            now.data.copy_from_device_async(first.data, first.nbytes)

    @cached_property
    def _variables(self) -> list[tuple[cupy.ndarray, cupy.ndarray]]:
        """Return the memory of each variable, and a copy of its first values.

        CuPy keeps one module per source, in which kernels may have run: so the values are the compiler's.
        """
        found = []
        for name, first in initial_memory(self._parsed).items():
            # String literals and similar have no address to ask for; values that are addresses are the GPU's.
            with suppress(cupy.cuda.driver.CUDADriverError):
                now = cupy.ndarray((first.size,), cupy.uint8, self._module.get_global(name))
                if not self._parsed.variables[name][1].addresses:
                    found.append((now, cupy.asarray(first.view(np.uint8))))
        return found

    def get_global(self, name: str) -> cupy.cuda.MemoryPointer:
        """Return the memory of a `__device__` or `__constant__` variable, as CuPy does.

        For an array: `cupy.ndarray((4,), cupy.float32, module.get_global("weights"))`.
        """
        variables = [v for v, (space, _) in self._parsed.variables.items() if space in ("global", "const")]
        return self._module.get_global(find_variable(variables, self._lowered, name))


class Kernel(simt.AnyKernel):
    """A kernel of a module. Call it with `kernel(grid, block, args, shared_mem=0)`."""

    module: RawModule
    xp = cupy
    rehearse = True  # False: launches go to the GPU without a rehearsal
    _dynamic_shared: int | None = None  # bytes, where somebody has set the most that a launch may have

    def __init__(self, module: RawModule, function: cupy.RawKernel, parsed: ptx.Kernel, name: str) -> None:
        self.module, self.name, self._function, self._parsed = module, name, function, parsed
        self._storage = storage(parsed, module._parsed)
        self._ready: dict[Hashable, _Ready] = {}

    def __call__(
        self, grid: Size, block: Size, args: Sequence[object], shared_mem: int = 0, timeout: float = 5
    ) -> None:
        """Launch the kernel. Arrays are CuPy's and are changed in place; NumPy scalars are passed by value.

        `shared_mem` is dynamic shared memory in bytes. The first launch of its kind is first tried in the
        simulator, where a block may take `timeout` seconds, and is waited for on the GPU. Raises LaunchError
        for what the GPU would refuse, and the simulator's errors for what the kernel does.
        """
        key = repr(grid), repr(block), shared_mem, self.rehearse, *map(_sign, args)
        ready = self._ready.get(key)  # checks and conversions can take longer than the launch
        is_first = ready is None
        if ready is None:
            ready = self._prepare(launch_of(grid, block, args, shared_mem, timeout))
            if len(self._ready) >= MOST_READY:
                self._ready.clear()
            self._ready[key] = ready
        self._run(ready, args, shared_mem)
        if is_first and ready.is_tried:
            synchronize()  # so that a mistake the rehearsal missed shows here

    def launcher(
        self, grid: Size, block: Size, args: Sequence[object], shared_mem: int = 0, timeout: float = 5
    ) -> Callable[..., None]:
        """Check a launch, and return what launches the kernel with other arrays and the same numbers.

        The arrays are the first arguments. They must be as large as those in `args`, which nobody checks
        again: that takes twice as long as the launch. Raises what a launch raises before the kernel runs.
        """
        ready = self._prepare(launch_of(grid, block, args, shared_mem, timeout))
        numbers = [arg for arg, number in zip(args, ready.numbers, strict=True) if number is not None]

        def launch(*arrays: cupy.ndarray) -> None:
            self._run(ready, (*arrays, *numbers), shared_mem)

        return launch

    def _run(self, ready: "_Ready", args: Sequence[object], shared_mem: int) -> None:
        """Put a checked launch into the GPU's queue."""
        on_device = tuple(arg if n is None else n for arg, n in zip(args, ready.numbers, strict=True))
        faults.note(self.name, ready.grid, ready.block)
        launches.note(self, ready.grid, ready.block, args, shared_mem)
        try:
            self._start(ready.grid, ready.block, on_device, shared_mem=shared_mem)
        except cupy.cuda.driver.CUDADriverError as error:
            raise _explained(error) from None

    @cached_property
    def _start(self) -> Callable[..., None]:
        """Return what launches the kernel; cooperatively where it synchronises its grid.

        CuPy's own `enable_cooperative_groups` would also link a library that such kernels no longer need.
        """
        if self.module.enable_cooperative_groups or self._is_cooperative:
            return partial(self._function.kernel, enable_cooperative_groups=True)
        return self._function

    @property
    def _is_cooperative(self) -> bool:
        """Say whether the kernel synchronises its grid; of one that the simulator refuses, whether it may."""
        if "%envreg" not in self.module.ptx:
            return False
        try:
            return self.simulated.is_cooperative
        except SimtError:
            return True

    def run_launch(self, launch: Launch) -> None:
        """Run a launch; see AnyKernel."""
        self(launch.grid, launch.block, launch.args, launch.shared_mem, launch.timeout)

    def _prepare(self, launch: Launch) -> "_Ready":
        """Check a launch, and try it in the simulator unless a similar one was tried."""
        check_launch(self.name, launch.grid, launch.block, self._parsed.max_threads)
        self._check_shared(launch.shared_mem)
        numbers = self._numbers(launch.args)
        return _Ready(launch.grid, launch.block, numbers, self.rehearse and self._try(launch))

    def _for_simulator(self, launch: Launch) -> Launch:
        self._copy_variables()
        return replace(launch, args=twins.on_host(launch.args))

    def profile_launch(self, launch: Launch, blocks: Blocks, gpu: str) -> simt.Profile:
        """Count a launch; see AnyKernel."""
        return self.simulated.profile_launch(launch, blocks, gpu)

    def check_launch(self, launch: Launch, tools: Sequence[str], blocks: Blocks) -> list[simt.Finding]:
        """Check a launch; see AnyKernel."""
        return self.simulated.check_launch(launch, tools, blocks)

    def resources_for(self, arch: str) -> Resources:
        """Return the registers and memory that the kernel needs on an architecture such as `sm_90`."""
        return self.simulated.resources_for(arch)

    def sass(self, gpu: str = DEFAULT_GPU) -> Sass:
        """Return the kernel's machine code for a GPU of gpus.csv, as the simulator's kernel does."""
        return self.simulated.sass(gpu)

    @cached_property
    def simulated(self) -> simt.Kernel:
        """Return the same kernel for the simulator."""
        module = self.module
        made = simt.RawModule(
            code=module.code,
            options=module.options,
            name_expressions=module.name_expressions,
            enable_cooperative_groups=module.enable_cooperative_groups,
        ).get_function(self.name)
        made.max_dynamic_shared_size_bytes = self._dynamic_shared
        return made

    @cached_property
    def _rehearsals(self) -> Rehearsals | None:
        """Return the kernel's rehearsals; None where the simulator lacks a feature that the kernel uses."""
        try:
            if uses_heap(self.module.ptx):
                raise SimtError("what its module allocates in kernels lies on the GPU")
            return Rehearsals(self.simulated)
        except SimtError as error:
            warn_untried(self.name, error)
            return None

    def _try(self, launch: Launch) -> bool:
        """Try a launch in the simulator unless a similar one was tried, and return whether it ran."""
        if self._rehearsals is None:
            return False

        def on_host(contents: bool) -> Sequence[object]:
            if not contents:
                return twins.zeros(launch.args)
            self._copy_variables()
            return twins.on_host(launch.args)

        return self._rehearsals.first(launch, on_host)

    def _copy_variables(self) -> None:
        """Copy what the module's variables hold on the GPU to the simulator."""
        for name, memory in self.simulated.module.memory.items():
            # String literals and similar have no address to ask for.
            with suppress(cupy.cuda.driver.CUDADriverError):
                pointer = self.module._module.get_global(name)
                memory[...] = cupy.ndarray(memory.shape, memory.dtype, pointer).get()

    @property
    def attributes(self) -> dict[str, int]:
        """Return all that CUDA reports about the kernel."""
        return self._function.attributes

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Return the most dynamic shared memory of a launch; set it for more than 48 KB per block."""
        return self._function.max_dynamic_shared_size_bytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self._function.max_dynamic_shared_size_bytes = size
        self._dynamic_shared = size
        if "simulated" in self.__dict__:
            self.simulated.max_dynamic_shared_size_bytes = size

    def _check_shared(self, dynamic: int) -> None:
        if dynamic and not 0 <= dynamic <= (most := self.max_dynamic_shared_size_bytes):
            raise LaunchError(
                f"shared_mem={dynamic}: kernel `{self.name}` may have at most {most} bytes of dynamic shared "
                f"memory beside its {self.shared_size_bytes} static ones. "
                "For more, set kernel.max_dynamic_shared_size_bytes first."
            )

    def _numbers(self, args: Sequence[object]) -> tuple[object, ...]:
        """Return the numbers as CuPy must pass them, in the size that the kernel takes; None for arrays.

        The simulator's own binding checks number, sizes and types, using host arrays instead of CuPy's.
        """
        host = [_host_twin(position, arg) for position, arg in enumerate(args)]
        data, _ = bind(self._parsed, self._storage, host)
        return tuple(
            None
            if isinstance(arg, cupy.ndarray)
            else _scalar(arg, data, self._storage.params[param.name], param)
            for param, arg in zip(self._parsed.params, args, strict=True)
        )


@dataclass(frozen=True)
class _Ready:
    """A checked launch. `numbers` has None for each array; `is_tried` says if it was just rehearsed."""

    grid: Dim3
    block: Dim3
    numbers: tuple[object, ...]
    is_tried: bool


def _sign(arg: object) -> Hashable:
    """Return all of an argument that the checks of a launch depend on."""
    if isinstance(arg, cupy.ndarray):
        return arg.shape, arg.dtype, arg.flags.c_contiguous, arg.data.ptr % 16
    if isinstance(arg, TensorMap):
        return arg.data
    return type(arg), arg.tobytes() if isinstance(arg, np.generic) else repr(arg)


def synchronize() -> None:
    """Wait for the GPU. Raises SimtError where a kernel failed."""
    try:
        cupy.cuda.Device().synchronize()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise _explained(error) from None


def _explained(error: Exception) -> SimtError:
    """Return a CUDA error as one of ours."""
    return faults.lost() or LaunchError(f"{error}. CUDA refused the launch.")


def _host_twin(position: int, arg: object) -> object:
    """Return an argument as the simulator would get it; arrays without their contents."""
    if isinstance(arg, np.ndarray):
        raise LaunchError(
            f"argument {position} is a NumPy array, in the host's memory; a GPU kernel takes arrays on the "
            "GPU. Pass labkit.xp.asarray(...), and read the result with .get()."
        )
    if isinstance(arg, TensorMap):
        if isinstance(arg.array, np.ndarray):
            raise LaunchError(
                f"argument {position} is a {arg} of a NumPy array, in the host's memory. Make it of an array "
                "on the GPU, labkit.xp.asarray(...)"
            )
        return replace(arg, array=np.empty(0))
    if not isinstance(arg, cupy.ndarray):
        return arg
    if not arg.flags.c_contiguous:
        raise LaunchError(f"argument {position} is not contiguous. Pass labkit.xp.ascontiguousarray(...).")
    return np.empty(arg.shape, arg.dtype)


def _scalar(arg: object, data: bytes, offset: int, param: ptx.Variable) -> object:
    """Return the parameter's bytes at `offset` as a NumPy scalar; a structure is passed unchanged."""
    if isinstance(arg, TensorMap):
        return np.frombuffer(arg.data, f"V{BYTES}")[0]
    if param.size not in (1, 2, 4, 8):
        return arg
    return np.frombuffer(data, f"u{param.size}", count=1, offset=offset)[0]
