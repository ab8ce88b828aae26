"""Find where a Python function calls labkit for what it should compute itself."""

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any


def borrowed_name(function: Callable[..., Any]) -> str:
    """Return a name in the function's code that stands for a part of labkit, or an empty string."""
    for name in function.__code__.co_names:
        found = function.__globals__.get(name)
        of = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", "")
        is_callable = isinstance(found, ModuleType | FunctionType | type)
        if name.partition(".")[0] == "labkit" or (is_callable and of.partition(".")[0] == "labkit"):
            return name
    return ""
