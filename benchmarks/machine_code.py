"""How long a listing of machine code takes, and how many counts at its level equal an H200's.

    python benchmarks/machine_code.py [matmul/9_tuned ...]
    python benchmarks/machine_code.py --counts

Times are medians of five, in milliseconds: of the first listing, of one from the cache, of one for another
GPU, and of each part. Each first listing begins with an empty cache. Goals: the first in less than 1000, from
the cache in less than 50, another GPU in less than 1000.

`--counts` profiles every launch of data/h200/machine_code/counters.csv, in some minutes, and compares the
instructions and the wavefronts of shared memory with what Nsight Compute counted.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import pandas as pd

from labkit import kernels
from simt.compiler import machine_code, nvdisasm
from simt.compiler.nvrtc import assemble, parse_resources
from simt.module import Kernel

ROOT = Path(__file__).parents[1]
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


def compared() -> pd.DataFrame:
    """Return how many launches have each figure equal, within 2 % and 10 %, further off, and absent."""
    sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "simt")]
    from test_issues import INSTRUCTIONS, ROWS, WAVEFRONTS, profile

    found: dict[str, Counter[str]] = {name: Counter() for name in (INSTRUCTIONS, *WAVEFRONTS)}
    reasons: Counter[str] = Counter()
    for name, launch in ROWS.items():
        metrics = profile(name).metrics
        for metric, counts in found.items():
            recorded = int(launch[metric])
            try:
                off = abs(metrics[metric] - recorded) / max(recorded, 1)
            except KeyError as error:
                counts["absent"] += 1
                reasons[f"{metric}: {name}: {str(error.args[0]).partition('here: ')[2]}"] += 1
                continue
            varies = " (varies)" if metric in launch["varies"].split() else ""
            counts[
                ("equal" if not off else "2 %" if off <= 0.02 else "10 %" if off <= 0.1 else "more") + varies
            ] += 1
    print(*sorted(reasons), sep="\n")
    return pd.DataFrame(found).fillna(0).astype(int)


if __name__ == "__main__":
    if sys.argv[1:] == ["--counts"]:
        print(compared().to_string())
        sys.exit()
    rungs = sys.argv[1:] or ["matmul/9_tuned", "matmul/2_tiled", "transpose/4_unrolled"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LABKIT_CACHE"] = folder
        print(pd.DataFrame(row(rung, folder) for rung in rungs).set_index("rung").round(0).to_string())
