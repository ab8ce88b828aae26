"""CUDA matrix kernels to read, run, measure and understand, with or without a GPU.

The names below are all a notebook needs. Each is imported when it is first used, so that `import labkit` is
quick and needs neither CuPy nor Jupyter.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

# public name -> where it lives: a module of labkit, or "module:attribute"
_EXPORTS = {
    "RawModule": "device:RawModule",
    "answer": "course:answer",
    "ceilings": "ceilings",
    "check": "course:check",
    "cpu": "cpu",
    "device": "device:device",
    "kernels": "kernels",
    "ladder": "ladder",
    "load_ipython_extension": "magic:load_ipython_extension",
    "plots": "plots",
    "problem": "problems:problem",
    "profile": "checks:profile",
    "records": "records",
    "roofline": "roofline:roofline",
    "show": "heat:show",
    "simt": "simt",
    "time": "timing:time_kernel",
    "widgets": "widgets",
    "xp": "device:xp",
    "yours": "yours",
}

__all__ = sorted([*_EXPORTS, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'labkit' has no attribute {name!r}")
    module_name, _, attribute = _EXPORTS[name].partition(":")
    module = import_module(f"labkit.{module_name}")
    return getattr(module, attribute) if attribute else module


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])


class _Package(ModuleType):
    "Keeps `labkit.device` the function: importing labkit/device.py would bind the module to that name."

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and ":" in _EXPORTS.get(name, "")):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
