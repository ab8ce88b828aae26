"""Find NVIDIA's programs: in their wheels, which share one folder, else in an installed CUDA toolkit."""

import os
import shutil
from importlib import util
from pathlib import Path

_TOOLKIT = Path("/usr/local/cuda/bin")  # where NVIDIA's installer puts it, often not in PATH


def folders() -> list[Path]:
    """Return the folders of NVIDIA's wheels."""
    found = util.find_spec("nvidia")
    return [Path(place) for place in found.submodule_search_locations or ()] if found else []


def program(name: str) -> Path | None:
    """Return the path of `nvcc`, `ptxas` or `nvdisasm`, or None where it is not installed."""
    file = f"{name}.exe" if os.name == "nt" else name
    for folder in folders():
        for path in sorted(folder.glob(f"*/bin/**/{file}"), reverse=True):
            return path
    in_path = shutil.which(file) or shutil.which(file, path=str(_TOOLKIT))
    return Path(in_path) if in_path else None
