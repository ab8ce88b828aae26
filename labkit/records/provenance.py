"""The JSON file beside a table, which says on what the table was recorded."""

import json
import platform
from datetime import date
from pathlib import Path

_PROVENANCE = ("gpu", "driver", "versions", "date", "command")


def provenance(command: str, **versions: object) -> dict[str, str]:
    """Return what goes beside a table that `command` records here: gpu, driver, versions, date and command.

    `versions` lists the software involved besides CUDA, cuBLAS, CuPy and Python. Raises NoGpu without a GPU.
    """
    from labkit import doctor  # imported here: reading records needs no GPU
    from labkit.devices.select import find_gpu

    gpu = find_gpu()
    import cupy

    cublas = cupy.cuda.cublas.getVersion(cupy.cuda.get_cublas_handle())
    parts = {"CUDA runtime": cupy.cuda.runtime.runtimeGetVersion(), "cuBLAS": cublas}
    parts |= {"CuPy": cupy.__version__} | versions | {"Python": platform.python_version()}
    shown = doctor.find_gpu()
    return {
        "gpu": gpu.name,
        "driver": shown.driver if shown else "not known",
        "versions": ", ".join(f"{part} {version}" for part, version in parts.items()),
        "date": date.today().isoformat(),
        "command": command,
    }


def provenance_of(table: Path) -> dict[str, str]:
    """Read the file beside a recorded table, see `provenance`. Raises ValueError where a part is missing.

    A table of the CPU's times has `processor` in the place of gpu and driver.
    """
    path = table.with_suffix(".json")
    if not path.is_file():
        raise ValueError(
            f"{table.name} has no provenance: {path} is missing (keys: {', '.join(_PROVENANCE)})"
        )
    run = json.loads(path.read_text(encoding="utf-8"))
    instead = ("gpu", "driver") if "processor" in run else ()
    missing = [key for key in _PROVENANCE if key not in run and key not in instead]
    if missing:
        raise ValueError(f"{path} does not say: {', '.join(missing)}")
    return run
