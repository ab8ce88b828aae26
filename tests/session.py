"""What labkit remembers from one cell to the next: each test begins without it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Names of modules, and of what they remember: a dict, a set or a list, or something that is None at first.
REMEMBERED = (
    ("labkit.magic", "answers"),
    ("labkit.magic", "runs"),
    ("labkit.course.progress", "_unkept"),
    ("labkit.course.progress", "_unkept_said"),
    ("labkit.course.progress_panel", "_shown"),
    ("simt.common.launches", "_seen"),
    ("labkit.devices.faults", "_launched"),
    ("simt.programs.server.device_code", "_texts"),
)
# What changes while a process runs and need not be forgotten, with the reason.
KEPT = {
    (
        "labkit.course.missing_name_hint",
        "_told_by",
    ): "belongs to a shell, which the fixture `ipython` makes anew",
    ("labkit.course.criteria.undisturbed", "_seers"): "a stack: a context manager takes off what it put on",
    ("labkit.c.run", "_runners"): "a stack, likewise",
    ("simt.common.tensor_map", "_live"): "arrays that exist",
    ("simt.launch.unwritten", "_empty"): "arrays that exist",
    ("simt.texture", "_live"): "textures that exist",
    ("simt.texture", "_last"): "a number that is given once",
    **{
        ("simt.run.thread_pool", name): "the process's threads" for name in ("_crew", "_sockets", "_watchman")
    },
    ("simt.code.instructions.table", "OPERATIONS"): "a table that imports fill",
    ("simt.sass.lift.table", "RULES"): "a table that imports fill",
}


@contextmanager
def without_memory() -> Iterator[None]:
    """Empty what labkit remembers, in place, and put it back in the end."""
    found = [(sys.modules[module], name) for module, name in REMEMBERED if module in sys.modules]
    before = [_emptied(module, name) for module, name in found]
    yield
    for (module, name), old in zip(found, before, strict=True):
        now = getattr(module, name)
        if isinstance(old, dict | set):
            now.clear()
            now.update(old)
        else:
            setattr(module, name, old)


def _emptied(module: object, name: str) -> object:
    """Empty a memory; return a copy of what it held."""
    value = getattr(module, name)
    if isinstance(value, dict | set):
        copy = value.copy()
        value.clear()
        return copy
    setattr(module, name, None)
    return value
