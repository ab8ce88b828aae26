"""Criteria on occupancy: functions that work it out, and kernels that leave room for warps."""

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.answers import borrowing
from labkit.course import fresh_inputs
from labkit.course.criteria.kernels import few_sectors, profiled
from labkit.course.criteria.launches import as_said
from labkit.course.criteria.python import called, number_of, right_for, shown
from labkit.course.exercise import Unmet, criterion
from labkit.course.reimported import Elsewhere
from labkit.kernels.matmul.family import Matmul
from labkit.model.blocks_per_sm import LEAST_REGISTERS, RESOURCES, Block, cures
from simt import AnyKernel
from simt.common.limits import MAX_THREADS
from simt.common.occupancy import gpu, gpus
from simt.common.text import counted

LEAST_PERCENT = 75
YOUR_WORK = "Work the number out from the figures of gpu, such as gpu.registers_per_sm."
# GPU, threads of a block, registers of a thread, bytes of shared memory
Asked = tuple[str, int, int, int]


@criterion("{text}")
def resident(function: Callable[..., Any], text: str, hint: str, *launches: Asked) -> None:
    """Ask that `function(gpu, threads, registers, shared)` is the number of warps that an SM holds."""

    def ask(launch: Asked) -> None:
        block = _block(launch)
        got = _own(function, block.on, *launch[1:])
        if number_of(got) != _warps(block):
            raise Unmet(
                f"{function.__name__}({_shown(launch)}) returns {shown(got)}; it should be {_warps(block)}.\n"
                f"{_account(block)}\n{hint}"
            )

    def told(launch: Asked) -> str:
        block = _block(launch)
        return (
            f"{function.__name__}({_shown(launch)}) should return {_warps(block)}.\n{_account(block)}\n{hint}"
        )

    right_for(launches, _drawn, ask, told)


def _own(function: Callable[..., Any], *args: Any) -> Any:
    """Return what the function returns. Raises Unmet where labkit has worked it out."""
    if isinstance(function, Elsewhere):
        got, borrowed = called(function, *args), function.borrowed
    else:
        with borrowing() as found:
            got = called(function, *args)
        borrowed = found[0] if found else ""
    if borrowed:
        raise Unmet(
            f"{function.__name__} has labkit work it out, by its function {borrowed}: that is what the check "
            f"compares with.\n{YOUR_WORK}"
        )
    return got


def _block(launch: Asked) -> Block:
    return Block(gpu(launch[0]), *launch[1:])


def _warps(block: Block) -> int:
    return block.blocks * block.warps


def _shown(launch: Asked) -> str:
    name, threads, registers, shared = launch
    return f"{name}, threads={threads}, registers={registers}, shared={shared}"


def _drawn(rng: np.random.Generator, base: Asked) -> Asked:
    """Draw another launch for which the same resources decide; `base` if none is found.

    It is on any GPU whose SMs have as many sub-partitions: the text gives each a quarter, and a P100 has two.
    """
    alike = [each for each in gpus() if each.warp_unit == gpu(base[0]).warp_unit]
    for _ in range(fresh_inputs.TRIES):
        on = alike[rng.integers(len(alike))]
        threads, registers, shared = (int(each * rng.uniform(0.5, 1.25)) for each in base[1:])
        block = Block(on, min(threads, MAX_THREADS), max(registers, LEAST_REGISTERS), shared)
        is_possible = shared <= on.shared_bytes_per_block
        if is_possible and block.limited_by == Block(gpu(base[0]), *base[1:]).limited_by:
            return on.name, block.threads, block.registers, block.shared
    return base


@criterion("global loads of at most {most} sectors for M = N = K = {problem.N}")
def loads_at_most(kernel: AnyKernel, most: int, problem: Matmul, hint: str) -> None:
    """Limit the sectors of global loads, launched as the cell says; `most` grows with the multiply-adds."""
    M, N, K = fresh_inputs.one_of((1, 1, 1), ((2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1)))
    larger = Matmul(M * problem.M, N * problem.N, K * problem.K)
    launch, most = as_said(kernel, larger), most * larger.flops // problem.flops
    few_sectors(kernel, launch, most, f"{larger}, block {launch.block}", hint)


@criterion(f"at least {LEAST_PERCENT} % occupancy on {{name}}")
def occupied(kernel: AnyKernel, name: str, problem: Matmul) -> None:
    """Ask that the warps of the launch on `problem` fill an SM of that GPU well."""
    held = profiled(kernel, as_said(kernel, problem), gpu=name).occupancy
    registers = held.launch__registers_per_thread
    block = Block(held.gpu, held.threads_per_block, registers, kernel.shared_size_bytes)
    if block.percent < LEAST_PERCENT:
        limits = " and ".join(RESOURCES[each] for each in block.limited_by)
        raise Unmet(
            f"{name}: {block.percent:.3g} % occupancy, {block.blocks * block.warps} of "
            f"{block.on.warps_per_sm} warps; the goal is at least {LEAST_PERCENT} %.\n"
            f"A block has {block.threads} threads of {registers} registers, and {block.shared} bytes of "
            f"shared memory.\n{_account(block)}\nThe limit is {limits}. {_cure(block)}"
        )


def _account(block: Block) -> str:
    """Say how the number of blocks comes about."""
    limits = ", ".join(f"{count} by {RESOURCES[name]}" for name, count in block.limits.items())
    return f"A block has {counted(block.warps, 'warp')}. Blocks that fit an SM: {limits}."


def _cure(block: Block) -> str:
    """Name the least change of one resource that gives more warps."""
    words = {
        "registers": "at most {0.registers} registers per thread",
        "shared_mem": "at most {0.shared} bytes of shared memory",
        "warps": "{0.threads} threads",
        "blocks": "{0.threads} threads",
    }
    found = [
        f"With {words[name].format(better)} it would be {better.percent:.3g} %."
        for name, better in cures(block).items()
    ]
    return " ".join(found) or "More than one of them has to change."
