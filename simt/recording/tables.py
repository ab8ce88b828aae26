"""A recorded block as tables, for questions of one's own: `labkit.trace`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from simt.common.limits import WARP
from simt.common.text import counted
from simt.counters.recording import AFTER, RESULT
from simt.kernel import Size
from simt.recording.events import ACCESSES, items_of, lanes_in
from simt.recording.memory import element
from simt.recording.page_data import text_of
from simt.recording.record import MEGABYTES, Recording, record
from simt.recording.variables import Variable

if TYPE_CHECKING:
    import pandas as pd

# NumPy types of PTX types, and of C++ types whose values are read otherwise than PTX says.
TYPES = {
    **{
        f"{kind}{bits}": f"{name}{bits}"
        for kind, name in (("s", "int"), ("u", "uint"))
        for bits in (8, 16, 32, 64)
    },
    **{f"b{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "pred": "bool",
}
CPP_TYPES = {
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "unsigned int": "uint32",
    "long": "int64",
    "long long": "int64",
    "bool": "bool",
    "short": "int16",
    "char": "int8",
    "half": "float16",
    "__half": "float16",
}


class Trace:
    """What one block did, as tables of pandas; an event is one PTX instruction that one warp executes.

    `recording` is what the tables are made of, and `findings` are those of `kernel.check` for this block.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Return a row per event, in order.

        warp          that executes it
        line          of the source, 0 where none is known
        instruction   of PTX
        kind          compute, load, store, atomic, barrier, branch or exit
        lanes         how many take part
        mask          one bit per lane
        """
        import pandas as pd

        found, events = self.recording, self.recording.events
        texts = np.array([text_of(each) for each in found.code], object)
        columns = {
            "warp": events.warp.astype(int),
            "line": np.array(found.lines)[events.site],
            "instruction": texts[events.site],
            "kind": found.kinds.astype(object)[events.site],
            "lanes": np.bitwise_count(events.mask),
            "mask": events.mask,
        }
        return pd.DataFrame(columns).rename_axis("event")

    @cached_property
    def accesses(self) -> pd.DataFrame:
        """Return a row per lane and item of each access to memory.

        event, warp, lane, line; thread: (x, y, z); kind: load, store or atomic; space: shared, global, local
        or const; array and element, such as `a` and `a[3][5]` ("" outside all arrays); address: in the
        recording, of which the remainder by 128 is that on a GPU; value: what was read, or what memory holds
        afterwards.
        """
        import pandas as pd

        return pd.DataFrame(list(self._accesses()))

    def _accesses(self) -> Iterator[dict[str, Any]]:
        found, events = self.recording, self.recording.events
        for event in np.flatnonzero(found.is_any(*ACCESSES)).tolist():
            code, kind = found.code[events.site[event]], str(found.kinds[events.site[event]])
            places = found.addresses(event)
            if places is None:
                continue
            for item in range(items_of(code)):
                role = (RESULT if kind == "load" else AFTER) + item
                bits, size = events.vectors.values(event, role), code.moved_bytes // items_of(code)
                for lane in lanes_in(int(events.mask[event])):
                    address = int(places[lane]) + item * size
                    at = found.memory.object_at(address)
                    type_ = at.dtype(size) if at else ""
                    value = None if bits is None else decoded(bits[lane], type_ or TYPES.get(code.type, ""))
                    yield {
                        "event": event,
                        "warp": int(events.warp[event]),
                        "lane": lane,
                        "thread": self.thread(int(events.warp[event]), lane),
                        "line": found.lines[events.site[event]],
                        "kind": kind,
                        "space": at.space if at else "",
                        "array": at.name if at else "",
                        "element": element(at, address) if at else "",
                        "address": address,
                        "value": value,
                    }

    def values(self, name: str, function: str = "") -> pd.DataFrame:
        """Return a row per lane and change of a variable: event, warp, lane, thread, line, value.

        `function` is the name of a device function; "" is the kernel itself. Raises ValueError for an unknown
        variable.
        """
        import pandas as pd

        variables = self.recording.variables
        chosen = [v for v in variables if v.name == name and v.function.partition("<")[0] == function]
        if not chosen:
            names = (f"{v.name} of {v.function}" if v.function else v.name for v in variables)
            known = ", ".join(dict.fromkeys(names)) or "none"
            raise ValueError(f"no variable is called {name!r}; this recording has: {known}")
        rows = [row for variable in chosen for row in self._values(variable)]
        columns = ("event", "warp", "lane", "thread", "line", "value")
        return pd.DataFrame(rows, columns=columns).sort_values(["event", "lane"], ignore_index=True)

    def _values(self, variable: Variable) -> Iterator[tuple[Any, ...]]:
        """Yield what a variable holds when it is another value than before, with the event that made it so.

        It may change without a write: the compiler lets it live in another variable's register for a while.
        """
        found, events = self.recording, self.recording.events
        registers = variable.registers(len(found.code))
        for warp in range(found.warps):
            held: dict[str, np.ndarray] = {}
            known, latest = np.zeros(WARP, bool), np.zeros(WARP, np.uint64)
            made_by = np.zeros(WARP, np.int64)
            for event in np.flatnonzero(events.warp == warp).tolist():
                site, lanes = int(events.site[event]), lanes_in(int(events.mask[event]))
                now = held.get(registers[site])
                if now is not None:
                    for lane in [lane for lane in lanes if not known[lane] or now[lane] != latest[lane]]:
                        known[lane], latest[lane], by = True, now[lane], int(made_by[lane])
                        type_ = CPP_TYPES.get(variable.type) or TYPES[found.registers[registers[site]]]
                        value, line = decoded(now[lane], type_), found.lines[events.site[by]]
                        yield by, warp, lane, self.thread(warp, lane), line, value
                made_by[lanes] = event
                for i, register in enumerate(found.code[site].results):
                    bits = events.vectors.values(event, RESULT + i)
                    if bits is not None and register.name in variable.names:
                        held.setdefault(register.name, np.zeros(WARP, np.uint64))[lanes] = bits[lanes]

    @cached_property
    def findings(self) -> pd.DataFrame:
        """Return a row per finding of `kernel.check`: tool, line, message, and the events of its accesses."""
        import pandas as pd

        rows = [(s.finding.tool, s.finding.line, s.finding.message, s.events) for s in self.recording.seen]
        return pd.DataFrame(rows, columns=("tool", "line", "message", "events"))

    def thread(self, warp: int, lane: int) -> tuple[int, int, int]:
        """Return threadIdx of a lane."""
        number = WARP * warp + lane
        x, y, _ = self.recording.launch.block
        return number % x, number // x % y, number // (x * y)

    def __repr__(self) -> str:
        found = self.recording
        return (
            f"Trace of block {found.at} of `{found.kernel}`: {len(found.events):,} events of "
            f"{counted(found.warps, 'warp')}. Tables: steps, accesses, findings; values(name) of a variable."
        )


def trace(
    kernel: Any,
    grid: Size,
    block: Size,
    args: Sequence[object],
    at: Size = 0,
    *,
    shared_mem: int = 0,
    first: int | None = None,
    seed: int | None = None,
    optimised: bool = False,
    megabytes: int = MEGABYTES,
) -> Trace:
    """Record the block `at` of a launch in the simulator, and return what it did as tables.

    The options are those of `labkit.step`. Raises TypeError for what is no kernel in CUDA C++, ValueError for
    a block outside the grid, LaunchError before anything runs, and SimtError for a kernel that cannot be
    recorded. What ended the run early is `trace.recording.error`.
    """
    how = {"shared_mem": shared_mem, "first": first, "seed": seed, "optimised": optimised}
    return Trace(record(kernel, grid, block, args, at=at, megabytes=megabytes, **how))  # type: ignore[arg-type]


def decoded(bits: Any, type_: str) -> Any:
    """Return the value of bits of a NumPy type; the bits themselves where it is unknown."""
    if not type_:
        return int(bits)
    if type_ == "bool":
        return bool(bits)
    wanted = np.dtype(type_)
    return np.array([bits]).view(np.uint8)[: wanted.itemsize].view(wanted)[0].item()
