"""Write data/precompiled.zip: the course's own kernels as NVIDIA's compiler leaves them, for macOS.

    python benchmarks/precompile.py

Every notebook runs, solved and as a student gets it; every explorer's controls go through all their places;
the rungs are launched with their defaults. What the compiler made meanwhile goes into the archive. It takes
some 15 minutes. tests/test_precompiled.py says when it has to be done again.
"""

import os
import tempfile
from importlib.metadata import version
from itertools import chain
from pathlib import Path

os.environ["LABKIT_DEVICE"] = "simt"

import numpy as np
from rich.console import Console
from sliders import EXPLORERS

from labkit import kernels, problem
from labkit.compiler import precompiled
from labkit.compiler.nvrtc import COMPILER_WHEEL, HEADER_WHEELS, supported_architectures
from labkit.core.cache import digest
from labkit.course.notebooks import catalog, release, run
from labkit.widgets import Explorer

CHECKSUM = 32  # bytes before an entry of the cache


def main() -> None:
    """Fill an empty cache, and pack it."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "cache")
        os.environ["LABKIT_CACHE"] = str(cache)
        for make in EXPLORERS:
            print(make.__name__, flush=True)
            visit(make())
        for rung in chain.from_iterable(map(kernels.names, kernels.FAMILIES)):
            launch(rung)
        for notebooks in (catalog.shipped() / release.SOLUTIONS, catalog.shipped()):
            run.tell(run.run(catalog.notebooks(notebooks), Path(folder, "pages"), Console()), Console())
        entries = {
            f"{kind}/{path.name}": path.read_bytes()[CHECKSUM:]
            for kind in precompiled.KINDS
            for path in (cache / kind).iterdir()
        }
    about = {
        "packages": {name: version(name) for name in (COMPILER_WHEEL, *HEADER_WHEELS)},
        "architectures": supported_architectures(),
        "sources": digest(catalog.cuda_sources()),
    }
    precompiled.write(entries, about)
    size = precompiled.ARCHIVE.stat().st_size / 1e6
    print(f"{precompiled.ARCHIVE.name}: {len(entries)} entries, {size:.1f} MB")


def visit(shown: Explorer) -> None:
    """Move each control through all its places, from the explorer's first values."""
    for control in shown.controls.values():
        start = control.value
        values = (
            [value for _, value in control.options]
            if hasattr(control, "options")
            else range(control.min, control.max + 1)
        )
        for value in values:
            control.value = value
        control.value = start


def launch(rung: str) -> None:
    """Count and check one small launch of a rung with its defaults."""
    family = rung.partition("/")[0]
    small = problem(family, *{"matmul": (64, 64, 64), "transpose": (64, 64)}[family])
    kernel, shape = kernels.load(rung), kernels.launch(rung, small)
    kernel.check(*shape, small.args(np))
    print(rung, kernel.profile(*shape, small.args(np)).occupancy)


if __name__ == "__main__":
    main()
