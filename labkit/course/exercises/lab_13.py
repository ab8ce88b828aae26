"""Exercises of 04b_whole_program: memory and copies, errors, mistakes that a check finds, times, streams."""

from collections.abc import Callable
from functools import cache

import numpy as np

import simt
from labkit.course.criteria.programs import (
    Work,
    computed,
    computes,
    drawn_gpu,
    fails,
    no_mistake,
    number,
    prints,
    succeeded,
    timed,
    timed_whole,
)
from labkit.course.exercise import Exercise, criterion
from labkit.course.fresh_inputs import further
from simt.common.occupancy import gpu
from simt.programs.program import AnyProgram
from simt.programs.server.gpu import COPY_SECONDS, LAUNCH_SECONDS, pinned_rate

Args = tuple[int, ...]
THREADS = 256  # per block


def _other_size(rng: np.random.Generator, base: Args) -> Args:
    """Draw another case with a first argument of about the same size."""
    return (max(1, int(base[0] * rng.uniform(0.5, 1.25))), *base[1:])


def _sum(work: Work) -> Callable[..., float]:
    """Return what the program prints: the sum of the result."""
    return lambda *args: float(work.result(*args).sum(dtype=np.float64))


# 13.1: memory, copies and a launch.


def _saxpy(n: int, a: int) -> np.ndarray:
    i = np.arange(n)
    return a * (i % 8) + i % 5


SAXPY = Work("saxpy", _saxpy, lambda args, x, y: args[1] * x + y, inputs=2)


def _other_saxpy(rng: np.random.Generator, base: Args) -> Args:
    return max(1, int(base[0] * rng.uniform(0.5, 1.25))), int(rng.integers(4, 20))


MEMORY = (
    "cudaMalloc gives device memory for x and for y, n * sizeof(float) bytes each. cudaMemcpy copies both "
    "vectors there (HostToDevice); the kernel gets the device pointers; then y comes back (DeviceToHost)."
)
FREED = {
    "leak": "Each cudaMalloc wants a cudaFree, and each cudaMallocHost a cudaFreeHost.",
    "out of bounds": "The last block may stick out over the end: a thread with i >= n does nothing.",
}

# 13.2: a launch that fails, and a kernel that fails while it runs.

CAPACITY = 1 << 16


def _filled(n: int, threads: int) -> np.ndarray:
    return np.arange(n) % 16


FILL = Work("fill", _filled, lambda args: _filled(*args), inputs=0)


def _valid(rng: np.random.Generator, base: Args) -> Args:
    return int(rng.integers(1000, CAPACITY)), int(rng.choice([64, 96, 160, 512, 768, 1024]))


CHECKED = (
    "A launch returns nothing. cudaGetLastError() after it says whether the launch was accepted. Errors "
    "while a kernel runs come back from a later call that waits: cudaDeviceSynchronize() or cudaMemcpy. "
    "Put CUDA_CHECK around each."
)

# 13.3: out of bounds, and a leak.


def _ring(x: np.ndarray) -> np.ndarray:
    return np.roll(x, -1) - x


def _steps(n: int, rounds: int) -> np.ndarray:
    return _ring(np.arange(n) * 7 % 11)


def _squares(n: int, rounds: int) -> float:
    return float(rounds * (_steps(n, rounds) ** 2).sum())


STEPS = Work("steps", _steps, lambda args, x: _ring(x[: args[0]]), inputs=1)


def _other_steps(rng: np.random.Generator, base: Args) -> Args:
    return int(rng.integers(100, 3000)), int(rng.integers(2, 6))


MENDED = {
    "leak": "What one round allocates, the same round has to free.",
    "out of bounds": "The neighbour of the last element is element 0, not element n.",
}

# 13.4: a time by events.

TRIAD = """
extern "C" __global__ void triad(int n, const float* a, const float* b, float* c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + 3 * b[i];
}
"""
BY_EVENTS = (
    "Record one event right before the launch and one right behind it; wait for the second with "
    "cudaEventSynchronize; cudaEventElapsedTime then gives milliseconds. Only the launch stands between them."
)
NEAR = 0.1  # of the predicted time: a launch before this one may have filled caches


def _triad(n: int) -> np.ndarray:
    i = np.arange(n)
    return i % 8 + 3 * (i % 4)


TRIAD_WORK = Work("triad", _triad, lambda args, a, b: a + 3 * b, inputs=2)


@cache
def _triad_ms(n: int, gpu: str) -> float:
    """Return the predicted time of a launch of the kernel in milliseconds."""
    a = np.zeros(n, np.float32)
    kernel = simt.RawModule(code=TRIAD).get_function("triad")
    args = (np.int32(n), a, a.copy(), a.copy())
    seconds = kernel.predict((-(-n // THREADS),), (THREADS,), args, gpu=gpu).seconds
    return 1e3 * (LAUNCH_SECONDS + seconds)


@criterion("the time of the kernel alone, by events")
def _time_of_the_kernel(program: AnyProgram, *cases: Args) -> None:
    gpu = drawn_gpu()
    for args in further(cases, _other_size):
        run = succeeded(program, args, gpu=gpu)
        computed(run, args, TRIAD_WORK)
        got, expected = timed(run, "triad", BY_EVENTS), _triad_ms(*args, gpu)
        # Behind other work, the launch itself costs nothing: the GPU gets it in time.
        if not (1 - NEAR) * (expected - 1e3 * LAUNCH_SECONDS) <= got <= (1 + NEAR) * expected:
            raise run.unmet(
                f"ms is {got:.4g}; for the kernel alone, {expected:.4g} ms are predicted for an {gpu}.",
                BY_EVENTS,
            )


@criterion("the bandwidth of that time")
def _bandwidth(program: AnyProgram, *cases: Args) -> None:
    for args in further(cases, _other_size):
        run = succeeded(program, args)
        got, expected = number(run, "GB/s"), 12 * args[0] / timed(run, "triad", BY_EVENTS) / 1e6
        if not abs(got - expected) <= 0.02 * expected:
            raise run.unmet(
                f"GB/s is {got:.4g}; with the time that it prints it should be {expected:.4g}.",
                "Per element, the kernel reads two floats and writes one: 12 bytes. A GB is 10^9 bytes.",
            )


# 13.5: copies and kernels at the same time.

OVERLAP = 0.8  # of the time that the copies take one after the other
CHUNKS = 8
TWO = (
    "Chunk c belongs in stream c % 2: its copy, its kernel and its copy back, all with that stream as the "
    "last argument. cudaMemcpyAsync returns at once only from pinned memory: cudaMallocHost."
)
JOINED = (
    "Work in stream[1] may begin before the first event of stream[0], and end after its last: let it wait "
    "(cudaStreamWaitEvent), or wait for both streams before the last event."
)


def _tripled(n: int) -> np.ndarray:
    return 3 * (np.arange(n) % 16) + 1


TRIPLED = Work("triple", _tripled, lambda args, x: 3 * x + 1, inputs=1)


@criterion("copies and kernels overlap: at most 80 % of the time that the copies take one after the other")
def _overlaps(program: AnyProgram, *cases: Args) -> None:
    name = drawn_gpu()
    for args in further(cases, _other_size):
        run = succeeded(program, args, gpu=name)
        computed(run, args, TRIPLED)
        way = CHUNKS * COPY_SECONDS + 4 * args[0] / pinned_rate(gpu(name))
        # All chunks come one after the other, and the last one still has to go back.
        got, most = timed_whole(run, JOINED), 1e3 * OVERLAP * 2 * way
        if got > most:
            raise run.unmet(
                f"ms is {got:.4g}; the goal is at most {most:.4g} (predicted for an {name}).", TWO
            )


EXERCISES = (
    Exercise("13.1", "From main to the sum", 3, magic="program").asks(
        prints(
            "the right sum", (1000, 2), (2500, 5), (1, 1),
            by=SAXPY, of=_sum(SAXPY), draw=_other_saxpy, hint=MEMORY,
        ),
        computes("the GPU computes it", (1000, 2), work=SAXPY, draw=_other_saxpy, hint=MEMORY),
        no_mistake("a checked run finds nothing", (1000, 2), draw=_other_saxpy, hints=FREED, by=SAXPY),
    ),
    Exercise("13.2", "A launch that fails", 3, magic="program", given=1).asks(
        prints("the right sum", (1000, 128), by=FILL, of=_sum(FILL), draw=_valid, hint=CHECKED),
        fails(
            "a launch that CUDA refuses ends the program", (1000, 1025),
            draw=lambda rng, base: (base[0], int(rng.integers(1026, 5000))),
            code=1, message="invalid argument", hint=CHECKED,
        ),
        fails(
            "a kernel that fails ends the program", (CAPACITY + 1, 256),
            draw=lambda rng, base: (CAPACITY + int(rng.integers(2, 999)), 128),
            code=710, message="device-side assert triggered", hint=CHECKED,
        ),
    ),
    Exercise("13.3", "A leak, and a step too far", 3, magic="program", practice=True).asks(
        no_mistake(
            "no thread reads outside an array", (1000, 2), draw=_other_steps, hints=MENDED,
            kinds=("out of bounds",), by=STEPS,
        ),
        prints(
            "the right sum", (1000, 3),
            by=STEPS, of=_squares, draw=_other_steps, hint=MENDED["out of bounds"],
        ),
        no_mistake("a checked run finds nothing", (1000, 3), draw=_other_steps, hints=MENDED, by=STEPS),
    ),
    Exercise("13.4", "How long does the kernel take?", 3, magic="program", given=1).asks(
        prints(
            "the right sum", (4096,),
            by=TRIAD_WORK, of=_sum(TRIAD_WORK), draw=_other_size, hint="c[i] is a[i] + 3 b[i].",
        ),
        _time_of_the_kernel((1 << 20,)),
        _bandwidth((1 << 20,)),
    ),
    Exercise("13.5", "Two streams", 4, magic="program", given=1, practice=True).asks(
        prints("the right sum", (100001,), by=TRIPLED, of=_sum(TRIPLED), draw=_other_size, hint=TWO),
        _overlaps((1 << 20,)),
        no_mistake("a checked run finds nothing", (1 << 14,), draw=_other_size, hints=FREED, by=TRIPLED),
    ),
)  # fmt: skip
