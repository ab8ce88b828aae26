"""The interface of a kernel, wherever it runs: on a GPU, in the simulator, or in the grader's sandbox.

`Kernel` turns the arguments of a call, of `profile` and of `check` into one `Launch`. The three kinds of
kernels subclass it and implement how a launch is run, counted and checked; mypy compares them with it.
"""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from simt.common import launches
from simt.common.limits import Dim3, as_dim3
from simt.common.occupancy import DEFAULT_GPU

if TYPE_CHECKING:
    import pandas as pd

SECONDS = 10  # time limit of a launch, in a notebook and in a check
PATIENCE_SECONDS = 60  # time limit of a rung: it ends on a busy machine, too
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")  # compute-sanitizer's tools, as in `check`
Size = int | Sequence[int]  # size of a grid or a block, in 1 to 3 dimensions
Blocks = int | Sequence[int] | None  # blocks to run: a number of them, over the whole grid; those listed; all
ProfileT = TypeVar("ProfileT")
FindingT = TypeVar("FindingT")


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel; `shared_mem` is in bytes per block and `timeout` in seconds."""

    grid: Dim3
    block: Dim3
    args: Sequence[object]
    shared_mem: int
    timeout: float


def launch_of(grid: Size, block: Size, args: Sequence[object], shared_mem: int, timeout: float) -> Launch:
    """Return a Launch with both sizes in three dimensions. Raises LaunchError for an invalid size."""
    return Launch(as_dim3(grid, "grid"), as_dim3(block, "block"), args, shared_mem, timeout)


class Predicted(Protocol):
    """A predicted time, in seconds: `simt.timing.prediction.Prediction`."""

    @property
    def seconds(self) -> float:
        """Return the predicted time."""

    @property
    def low(self) -> float:
        """Return the time that a launch seldom falls short of."""

    @property
    def high(self) -> float:
        """Return the time that a launch seldom exceeds."""

    @property
    def limit(self) -> str:
        """Return the name of the part of the GPU that would take longest alone."""

    @property
    def limits(self) -> pd.DataFrame:
        """Return a table of how long each part would take alone."""


class Module(Protocol[ProfileT, FindingT]):
    """The source of kernels, and the options it was compiled with."""

    code: str
    options: tuple[str, ...]
    name_expressions: tuple[str, ...]

    def with_options(self, options: Sequence[str]) -> Module[ProfileT, FindingT]:
        """Compile the same source with other options. Raises CompileError."""

    def get_function(self, name: str) -> Kernel[ProfileT, FindingT]:
        """Return the kernel called `name`. Raises SimtError where there is none."""

    def restart(self) -> None:
        """Give the `__device__` and `__constant__` variables their first values, as a new process would."""


class Kernel(Protocol[ProfileT, FindingT]):
    """A compiled kernel. Call it with `kernel(grid, block, args, shared_mem=0, timeout=10)`."""

    name: str
    module: Module[ProfileT, FindingT]
    xp: ModuleType = np  # the library whose arrays it takes
    latest_profile: weakref.ref[ProfileT] | None = None  # what `profile` returned last, while it is kept
    rehearse: bool = False  # on a GPU: are launches tried in the simulator first?

    def __call__(
        self, grid: Size, block: Size, args: Sequence[object], shared_mem: int = 0, timeout: float = SECONDS
    ) -> None:
        """Run the kernel on a grid and blocks of 1 to 3 dimensions.

        Arrays are changed in place; NumPy scalars are passed by value. `shared_mem` is dynamic shared memory
        in bytes, `timeout` is in seconds. Raises LaunchError before anything runs, and InvalidAccess,
        BarrierError or Timeout for what the kernel does.
        """
        launches.note(self, grid, block, args, shared_mem)
        self.run_launch(launch_of(grid, block, args, shared_mem, timeout))

    def launcher(
        self,
        grid: Size,
        block: Size,
        args: Sequence[object],
        shared_mem: int = 0,
        timeout: float = SECONDS,
    ) -> Callable[..., None]:
        """Return what launches the kernel with other arrays, the first arguments, and the same numbers."""
        numbers = [arg for arg in args if not isinstance(arg, np.ndarray)]  # arrays are not kept alive

        def launch(*arrays: object) -> None:
            self(grid, block, (*arrays, *numbers), shared_mem, timeout)

        return launch

    def __hash__(self) -> int:  # or mypy takes kernels for unhashable
        return id(self)

    def profile(
        self,
        grid: Size,
        block: Size,
        args: Sequence[object],
        shared_mem: int = 0,
        blocks: Blocks = None,
        timeout: float = SECONDS,
        gpu: str = DEFAULT_GPU,
    ) -> ProfileT:
        """Run the kernel in the simulator and count memory traffic as Nsight Compute does.

        `blocks` limits the run to this many, spread over the grid, or to those with these numbers (x counts
        fastest); the counts are scaled up. `gpu` names the GPU, as in gpus.csv, for which the profile
        reports occupancy. Raises ValueError for an unknown name. Arrays on a GPU are copied and stay
        unchanged.
        """
        launch = self._for_simulator(launch_of(grid, block, args, shared_mem, timeout))
        found = self.profile_launch(launch, blocks, gpu)
        self.latest_profile = weakref.ref(found)
        return found

    def check(
        self,
        grid: Size,
        block: Size,
        args: Sequence[object],
        shared_mem: int = 0,
        tools: Sequence[str] = TOOLS,
        timeout: float = SECONDS,
        blocks: Blocks = None,
    ) -> list[FindingT]:
        """Run the kernel in the simulator and return what compute-sanitizer's tools would find.

        memcheck: accesses outside the arrays or not aligned, failed assertions, arrays of another dtype than
        the kernel reads. racecheck: unordered accesses to shared or global memory. initcheck: reads of
        shared, local or `simt.empty` memory that was never written, and of variables without a value.
        synccheck: threads missing at a barrier, masks of warp-wide operations. An
        endless loop is a finding of the tool "timeout". Arrays are changed
        as by a call; those on a GPU are copied instead, stay unchanged, and count as written. `blocks` is as
        in `profile`. Raises LaunchError before anything runs, and ValueError for an unknown tool or block.
        """
        unknown = [tool for tool in tools if tool not in TOOLS]
        if isinstance(tools, str) or unknown:
            raise ValueError(f"tools={tools!r}: choose from {', '.join(TOOLS)}, as a list")
        launches.note(self, grid, block, args, shared_mem)
        launch = self._for_simulator(launch_of(grid, block, args, shared_mem, timeout))
        return self.check_launch(launch, tools, blocks)

    def predict(
        self,
        grid: Size,
        block: Size,
        args: Sequence[object],
        shared_mem: int = 0,
        gpu: str = DEFAULT_GPU,
        timeout: float = SECONDS,
    ) -> Predicted:
        """Predict how long a launch takes on a GPU of gpus.csv, and what limits it; no GPU is needed.

        A sample of the blocks runs in the simulator; arrays keep their contents. Raises ValueError for an
        unknown GPU, LaunchError before anything runs, and NoPrediction where the time cannot be predicted.
        """
        from simt.timing.prediction import predict_launch

        launch = launch_of(grid, block, args, shared_mem, timeout)
        return predict_launch(self.simulated, self._for_simulator(launch), gpu)

    def _for_simulator(self, launch: Launch) -> Launch:
        """Return the launch with copies of what lies on a GPU."""
        return launch

    @property
    def simulated(self) -> Kernel[ProfileT, FindingT]:
        """Return the same kernel in the simulator: itself, unless it runs on a GPU."""
        return self

    @property
    @abstractmethod
    def attributes(self) -> dict[str, int]:
        """Return the figures of CuPy's `kernel.attributes`, as far as they are known here."""

    @property
    def num_regs(self) -> int:
        """Return the registers per thread."""
        return self.attributes["num_regs"]

    @property
    def shared_size_bytes(self) -> int:
        """Return the static shared memory per block."""
        return self.attributes["shared_size_bytes"]

    @property
    def local_size_bytes(self) -> int:
        """Return the local memory per thread."""
        return self.attributes["local_size_bytes"]

    @property
    def max_threads_per_block(self) -> int:
        """Return how many threads a block may have, by the kernel's registers and launch bounds."""
        return self.attributes["max_threads_per_block"]

    @abstractmethod
    def run_launch(self, launch: Launch) -> None:
        """Run a launch: a call, with its sizes and arguments in one."""

    @abstractmethod
    def profile_launch(self, launch: Launch, blocks: Blocks, gpu: str) -> ProfileT:
        """Count a launch whose arrays are the host's, and may change; see `profile`."""

    @abstractmethod
    def check_launch(self, launch: Launch, tools: Sequence[str], blocks: Blocks) -> list[FindingT]:
        """Check a launch whose arrays are the host's, and may change; see `check`."""
