"""Write simt/data/precompiled.zip: the course's own kernels as NVIDIA's compiler leaves them, for macOS.

    python benchmarks/precompile.py             # everything, before a release: some 15 minutes
    python benchmarks/precompile.py --rungs     # the rungs alone, added to what is there: seconds
    python benchmarks/precompile.py 06          # the same, and what these notebooks compile and show

Every notebook runs, solved and as a student gets it; every explorer's controls go through all their places;
the rungs are launched with their defaults. What the compiler made meanwhile goes into the archive.
tests/simt/compiler/test_precompiled.py says, in make test-all, when it has to be done again.
"""

import os
import sys
import tempfile
from importlib.metadata import version
from itertools import chain
from pathlib import Path

os.environ["LABKIT_DEVICE"] = "simt"

import numpy as np
from rich.console import Console

from labkit import kernels, widgets
from labkit.course.notebooks import catalog, release, run
from labkit.kernels.problem import problem_class
from labkit.widgets import Explorer
from simt.common.cache import digest
from simt.compiler import nvdisasm, precompiled
from simt.compiler.nvrtc import COMPILER_WHEEL, HEADER_WHEELS, supported_architectures

CHECKSUM = 32  # bytes before an entry of the cache


def main(everything: bool, numbers: list[str]) -> None:
    """Fill an empty cache, and pack it; without `everything`, add the rungs and the notebooks `numbers`."""
    about = {
        "packages": {name: version(name) for name in (COMPILER_WHEEL, *HEADER_WHEELS, nvdisasm.WHEEL)},
        "architectures": supported_architectures(),
        "sources": digest(catalog.cuda_sources()),
    }
    if not everything and not precompiled.manifest()["packages"].items() <= about["packages"].items():
        raise SystemExit("The archive was made by another compiler. Make it anew: without arguments.")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "cache")
        os.environ["LABKIT_CACHE"] = str(cache)
        for rung in chain.from_iterable(map(kernels.names, kernels.FAMILIES)):
            launch(rung)
        for make in (getattr(widgets, name) for name in widgets.EXPLORERS if everything):
            print(make.__name__, flush=True)
            visit(make())
        for notebooks in (catalog.shipped() / release.SOLUTIONS, catalog.shipped()):
            chosen = catalog.notebooks(notebooks) if everything else catalog.find(numbers, notebooks)
            if chosen:
                run.tell(run.run(chosen, Path(folder, "pages"), Console()), Console())
        entries = {} if everything else precompiled.entries()
        entries |= {
            f"{kind}/{path.name}": path.read_bytes()[CHECKSUM:]
            for kind in precompiled.KINDS
            for path in (cache / kind).glob("*")
        }
    precompiled.write(entries, about)
    size = precompiled.ARCHIVE.stat().st_size / 1e6
    print(f"{precompiled.ARCHIVE.name}: {len(entries)} entries, {size:.1f} MB")


def visit(shown: Explorer) -> None:
    """Move each control through all its places, from the explorer's first values."""
    for name in shown.controls:
        first = shown.values[name]
        for _, value in shown.now[name].choices:
            shown.set(**{name: value})
        shown.set(**{name: first})


def launch(rung: str) -> None:
    """Count and check one small launch of a rung with its defaults."""
    small = problem_class(rung.partition("/")[0]).trials()[1]
    kernel = kernels.load(rung)
    kernel.check(*kernels.whole_launch(rung, small, small.args(np)))
    print(rung, kernel.profile(*kernels.whole_launch(rung, small, small.args(np))).occupancy)


if __name__ == "__main__":
    main(everything=not sys.argv[1:], numbers=[each for each in sys.argv[1:] if each != "--rungs"])
