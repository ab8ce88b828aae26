"""CUDA matrix kernels to read, run, measure and understand, with or without a GPU.

The names below are all a notebook needs. Each is imported when it is first used, so that `import labkit` is
quick and needs neither CuPy nor Jupyter.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name -> its location: a module, or "module:attribute"
_EXPORTS = {
    "RawKernel": "labkit.devices.select:RawKernel",
    "RawModule": "labkit.devices.select:RawModule",
    "answer": "labkit.course:answer",
    "ceilings": "labkit.ladder.ceilings",
    "check": "labkit.course:check",
    "climb": "labkit.figures.ladder_chart:climb",
    "cpu": "labkit.cpu",
    "device": "labkit.devices.select:device",
    "end": "labkit.course.progress_panel:end",
    "guess": "labkit.course.predictions:guess",
    "kernels": "labkit.kernels",
    "ladder": "labkit.ladder",
    "load_ipython_extension": "labkit.program_magic:load_ipython_extension",
    "matmul": "labkit.kernels.matmul.product:matmul",
    "plots": "labkit.figures.curves",
    "predict": "labkit.course.predictions:predict",
    "problem": "labkit.kernels.problem:problem",
    "profile": "labkit.figures.source_costs:profile",
    "records": "labkit.records",
    "roofline": "labkit.figures.roofline:roofline",
    "show": "labkit.figures.source_costs:show",
    "show_code": "labkit.widgets.show_code:show_code",
    "simt": "simt",
    "step": "labkit.widgets.step:step",
    "start": "labkit.course.progress_panel:start",
    "tensor_map": "labkit.devices.tensor_map:tensor_map",
    "time": "labkit.devices.timing:time_kernel",
    "trace": "simt.recording.tables:trace",
    "widgets": "labkit.widgets",
    "xp": "labkit.devices.select:xp",
    "you_are_here": "labkit.figures.gpu_map:you_are_here",
    "yours": "labkit.figures.own_product",
}

__all__ = sorted([*_EXPORTS, "__version__"])


def __getattr__(name: str) -> Any:
    place = _EXPORTS.get(name)
    if place is None:
        raise AttributeError(f"module 'labkit' has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
