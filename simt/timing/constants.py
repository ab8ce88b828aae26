"""The constants of the model that no data sheet has: simt/data/time_model.json, and how they came about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from simt.common.paths import DATA


@dataclass(frozen=True)
class Constants:
    """What was fitted to recorded times; `benchmarks/predict.py --fit` writes them.

    power, power_of_cores     how limits add up: of the whole, and of a multiprocessor's pipes
    start_us                  of an empty launch, by CUDA's events
    block_clocks              from a block's end to the first instruction of the next
    warp_clocks               that come on top of these for each warp of the block
    deal_clocks               between the starts of two blocks, anywhere on the GPU
    cold                      the latency of memory in a launch, by that of a chain of loads
    loaded_l2, loaded_dram    latency that is added where the memory is busy all the time, by the latency
    line_clocks               latency that each further line of a request adds
    barrier_clocks            latency of a barrier, and barrier_warp_clocks for each warp that it waits for
    barrier_cycles            of the pipe of shared memory, per warp that arrives at a barrier
    shared_clocks             the latency of shared memory in a launch, by that of a chain of loads
    l2_read, l2_write         rates, by the bandwidth of gpus.csv
    l2_words                  the same for requests that write one word of each sector; not fitted, but from
                              the naive transpose in data/h200/bench.csv: 70e9 sectors per second
    atomic_gs                 sectors of atomic operations, 10^9 per second
    read_gain                 how much faster than a copy memory is read or written alone
    scattered                 how much longer memory takes for places that stand alone, beyond once
    dirty                     the share of the L2 that must be written back before the launch has it
    miss_cycles               of the L1, per sector that it must fetch
    register_banks            the share of the register file's extra cycles in which nothing issues
    barrier_queue             the share of a block's issue slots that its warps wait for between two barriers
    tail                      waves more than the number of blocks says, in launches of many
    """

    power: float = 4.0
    power_of_cores: float = 4.0
    start_us: float = 4.7
    block_clocks: float = 600.0
    warp_clocks: float = 8.0
    deal_clocks: float = 1.2
    loaded_l2: float = 1.0
    loaded_dram: float = 0.3
    cold: float = 1.2
    line_clocks: float = 3.0
    barrier_clocks: float = 10.0
    barrier_warp_clocks: float = 2.0
    barrier_cycles: float = 0.8
    shared_clocks: float = 1.0
    l2_read: float = 0.55
    l2_write: float = 0.8
    l2_words: float = 0.215
    atomic_gs: float = 85.0
    read_gain: float = 1.08
    scattered: float = 0.6
    dirty: float = 0.43
    miss_cycles: float = 0.25
    register_banks: float = 0.5
    barrier_queue: float = 1.0
    tail: float = 0.25


@cache
def load_model() -> dict[str, Any]:
    """Read simt/data/time_model.json: the constants, the kernels they are from, and the errors on others."""
    found: dict[str, Any] = json.loads((DATA / "time_model.json").read_text(encoding="utf-8"))
    return found


@cache
def fitted() -> Constants:
    """Return the fitted constants."""
    return Constants(**load_model()["constants"])
