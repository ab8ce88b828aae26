"""CUDA matrix kernels to read, run, measure and understand, with or without a GPU.

The names below are all a notebook needs. Each is imported when it is first used, so that `import labkit` is
quick and needs neither CuPy nor Jupyter.
"""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

# public name -> its location: a module of labkit, or "module:attribute"
_EXPORTS = {
    "RawKernel": "device.select:RawKernel",
    "RawModule": "device.select:RawModule",
    "answer": "course:answer",
    "ceilings": "ladder.ceilings",
    "check": "course:check",
    "climb": "figures.climb:climb",
    "cpu": "cpu",
    "device": "device.select:device",
    "end": "course.way:end",
    "kernels": "kernels",
    "ladder": "ladder",
    "load_ipython_extension": "programs.magic:load_ipython_extension",
    "matmul": "kernels.matmul.product:matmul",
    "plots": "figures.curves",
    "predict": "course.predictions:predict",
    "problem": "kernels.problem:problem",
    "profile": "figures.source_costs:profile",
    "records": "records",
    "roofline": "figures.roofline:roofline",
    "show": "figures.source_costs:show",
    "show_code": "widgets.show_code:show_code",
    "simt": "simt",
    "step": "widgets.step:step",
    "start": "course.way:start",
    "tensor_map": "device.tensor_map:tensor_map",
    "time": "device.timing:time_kernel",
    "trace": "stepping.tables:trace",
    "widgets": "widgets",
    "xp": "device.select:xp",
    "you_are_here": "figures.gpu_map:you_are_here",
    "yours": "figures.own_product",
}

# Notebooks handed out with version 0.1 import modules by these names, so students' copies keep working.
_MOVED = {
    "bounds": "model.limits",
    "errors": "core.errors",
    "instructions": "model.instructions",
    "ladder_plot": "figures.ladder_plot",
    "mismatch": "core.compare",
    "occupancy": "core.occupancy",
    "pictures": "figures.pictures",
    "problems": "kernels.problem",
    "steps": "ladder.steps",
    "timing": "device.timing",
    "transpose_report": "ladder.transpose_report",
}

__all__ = sorted([*_EXPORTS, "__version__"])


def __getattr__(name: str) -> Any:
    place = _EXPORTS.get(name) or _MOVED.get(name)
    if place is None:
        raise AttributeError(f"module 'labkit' has no attribute {name!r}")
    module_name, _, attribute = place.partition(":")
    module = import_module(f"labkit.{module_name}")
    return getattr(module, attribute) if attribute else module


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])


class _Elsewhere(MetaPathFinder, Loader):
    """Import modules such as `labkit.records` and `labkit.plots` by their public names."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find a public or a moved module. A package or module with exactly that name takes precedence."""
        package, _, short = name.partition(".")
        place = (_MOVED | _EXPORTS).get(short, "").partition(":")[0]
        return ModuleSpec(name, self, origin=f"labkit.{place}") if package == "labkit" and place else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module from its location, and keep its own attributes."""
        module = import_module(str(spec.origin))
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own name; it has already been run."""
        module.__spec__ = self._own_spec


class _Package(ModuleType):
    """Keeps `labkit.device` the function: importing labkit/device/ would bind the package to that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and ":" in _EXPORTS.get(name, "")):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
sys.meta_path.append(_Elsewhere())
