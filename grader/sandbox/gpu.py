"""Times of a kernel on a GPU: in a sandbox of its own that sees the GPU, while nobody else uses it."""

import subprocess
import sys

import pandas as pd

from grader.sandbox.process import Sandbox
from grader.sandbox.wire import Channel
from labkit.course.criteria.undisturbed import Disturbed
from labkit.kernels.matmul.family import Matmul
from labkit.records import frame_of

BUSY_PERCENT = 10  # of the time that a GPU works, from which on it is somebody else's
START_SECONDS, SECONDS = 120, 300
INSIDE = "from grader.sandbox.probe import serve; serve()"


def measured(
    isolation: str, problem: Matmul, rungs: tuple[str, ...], **kernel: object
) -> tuple[pd.DataFrame, str]:
    """Time a kernel in a new sandbox, as `own_product.measured` does; `kernel`: code, options, names.

    Raises Disturbed where the GPU is busy, BorderError where the sandbox ends before its time.
    """
    refuse_if_busy()
    with Sandbox(isolation, with_gpu=True) as sandbox:
        process = subprocess.Popen(
            sandbox.command([sys.executable, "-P", "-s", "-c", INSIDE]),
            cwd=sandbox.folder,
            env=sandbox.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        sandbox.watch(process)

        def is_alive() -> bool:
            return process.poll() is None

        channel = Channel(sandbox.accepted(START_SECONDS, is_alive))
        channel.send({"do": "measured", "problem": vars(problem), "rungs": rungs, **kernel})
        reply = channel.receive(SECONDS, is_alive)
        sandbox.stop()
        process.wait()
    if "error" in reply:
        return frame_of([]), f"{reply['error']['kind']}: {reply['error']['message']}"
    return frame_of(reply["value"]["rows"]), str(reply["value"]["wrong"])


def refuse_if_busy() -> None:
    """Raise Disturbed where the GPU works for somebody else; nothing where NVML does not tell."""
    try:
        import pynvml
    except ImportError:
        return
    try:
        pynvml.nvmlInit()
        busy = pynvml.nvmlDeviceGetUtilizationRates(pynvml.nvmlDeviceGetHandleByIndex(0)).gpu
    except pynvml.NVMLError:
        return
    if busy > BUSY_PERCENT:
        raise Disturbed(f"The GPU is busy with something else for {busy} % of the time.")
