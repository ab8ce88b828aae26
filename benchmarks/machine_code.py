"""What a listing of machine code takes: the first, from the cache, for another GPU; and each part of it.

    python benchmarks/machine_code.py [matmul/9_tuned ...]

Times are medians of five, in milliseconds; each first listing begins with an empty cache. Goals: the first in
less than 1000, from the cache in less than 50, another GPU in less than 1000.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from statistics import median
from time import perf_counter

import pandas as pd

from labkit import kernels
from labkit.compiler import machine_code, nvdisasm
from labkit.compiler.nvrtc import assemble, parse_resources
from labkit.simt.module import Kernel

REPEATS = 5
OTHER = "T4"


def took(make: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """Return the median time of `make`, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        before()
        begin = perf_counter()
        make()
        times.append(1e3 * (perf_counter() - begin))
    return median(times)


def row(name: str, folder: str) -> dict[str, object]:
    """Return what the listing of one rung takes."""
    kernel = kernels.load(name)
    assert isinstance(kernel, Kernel)
    module = kernel.module
    what = module.code, module.options, module.name_expressions
    kernel.sass("H200")  # loads the compiler

    def empty() -> None:
        os.environ["LABKIT_CACHE"] = tempfile.mkdtemp(dir=folder)

    found: dict[str, object] = {"rung": name, "instructions": kernel.sass("H200").used}
    found["first"] = took(lambda: kernel.sass("H200"), empty)
    found["cached"] = took(lambda: kernel.sass("H200"))
    found["cached, table"] = took(lambda: kernel.sass("H200").table)
    found[f"first {OTHER}"] = took(lambda: kernel.sass(OTHER), empty)
    image, log = assemble(*what, "sm_90")
    listings, resources = nvdisasm.disassemble(image), parse_resources(log)
    found["NVRTC"] = took(lambda: assemble(*what, "sm_90"))
    found["nvdisasm"] = took(lambda: nvdisasm.disassemble(image))
    found["parse"] = took(lambda: list(machine_code._kernels(image, *listings, resources)))
    return found


if __name__ == "__main__":
    rungs = sys.argv[1:] or ["matmul/9_tuned", "matmul/2_tiled", "transpose/4_unrolled"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LABKIT_CACHE"] = folder
        print(pd.DataFrame(row(rung, folder) for rung in rungs).set_index("rung").round(0).to_string())
