"""`labkit bench FOLDER --limits`: measure what bounds a kernel on this machine's GPU, as a flat table.

The table is limits.csv, with the columns quantity, variant, unit and value; limits.json says on what it was
measured. A multiprocessor is an SM; MiB are 2^20 bytes, GB 10^9; an instruction is one of a warp. Quantities:

- `latency`, clocks: one step of a chain in which each step waits for the one before, one thread. L1, shared,
  L2 and DRAM are loads (DRAM: a 4 MiB ring that no cache has; "DRAM, spread": one of 1 GiB, where addresses
  are also translated anew); "shared atomic" and "global atomic" return the old value; "barrier 256" is one
  `__syncthreads()` of a block of 256 threads.
- `issue_rate`, instructions per clock and SM: of one kind, each independent of the others. IADD becomes
  IADD3 and IMAD.IADD in turn, HFMA2 both HFMA2 and HFMA2.MMA. "FFMA and IADD": both are counted.
  The loop's own instructions, one in a hundred, are not.
- `load_clocks`, `store_clocks`, clocks per request and SM: a warp's access to global memory that touches so
  many 128-byte lines and 32-byte sectors. Loads hit the L1. "distinct banks": each lane's word has another
  position modulo 128 bytes. "same banks": the words of each line have the same positions.
- `load_bandwidth`, bytes per clock and SM: a warp's contiguous loads of 4, 8 or 16 bytes per lane, L1 hits.
- `shared_clocks`, clocks per request and SM: a warp's loads and stores with 1 to 32 words per bank.
- `shared_atomic_clocks`, the same for additions without a result, which the compiler does not combine. Of
  floats: it makes a loop of a load, an addition and a compare-and-swap.
- `clock`, MHz: the SMs' clock, from cycles and time, under multiply-adds on one or all SMs.
- `l2_read`, GB/s: all SMs read the whole footprint, again and again. `l2_write`: each writes its part.
- `dram_read`, `dram_write`, `dram_copy`, `dram_triad` (reads two arrays, writes a third), GB/s: all bytes
  read and written; the variant is the size of one array.
- `dram_in_flight`, GB/s: a copy with so many warps per SM, each with 512 bytes under way.
- `sectors`, GB/s: the useful bytes of one 32-byte sector every 64, 128 or 256 bytes of 1 GiB; `gather`:
  sectors at random.
- `atomics`, 10^9 additions per second: all SMs, without a result (REDG). Each lane's addition counts, whether
  its warp's request has 32 or 1 of them. These are PTX, which the compiler does not combine; of C++'s
  `atomicAdd` of integers to an address that all lanes share and it knows, it makes "1 lane per request".
- `launch`, us: kernels that do nothing, so many blocks x threads; "one float" reads one and writes one.
- `tail`, us: 8 blocks of 1024 threads per SM, with the same work in all: even, growing with the block's
  number, or shrinking.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from labkit.ladder.limits import latency, launches, memory, rates
from labkit.ladder.limits.machine import Limit, Machine
from simt.common.errors import SimtError

COLUMNS = ("quantity", "variant", "unit", "value")
Row = tuple[str, str, str, float]


def plan(only: Iterable[str] = ()) -> list[Limit]:
    """Return all that is measured, or the quantities `only`. Raises ValueError for an unknown quantity."""
    limits = [each for module in (latency, rates, memory, launches) for each in module.limits()]
    known, only = dict.fromkeys(each.quantity for each in limits), list(only)
    if unknown := [name for name in only if name not in known]:
        raise ValueError(f"there is no limit {unknown[0]!r}. Choose from {', '.join(known)}.")
    return [each for each in limits if not only or each.quantity in only]


def measure(limits: Iterable[Limit], machine: Machine) -> Iterator[tuple[Limit, float | Exception]]:
    """Yield each limit with its value, or with the exception that says what went wrong."""
    for each in limits:
        try:
            yield each, each.measure(machine)
        except (SimtError, MemoryError, ValueError, RuntimeError) as wrong:  # the last: CuPy's
            yield each, wrong


def run(limits: list[Limit], folder: Path, origin: dict[str, str]) -> tuple[list[Row], list[str]]:
    """Measure the limits and write folder/limits.csv and limits.json; each row as soon as it is known.

    `origin` is `records.provenance` of this run. A table that is there already is measured anew. Returns the
    rows, and one line per failure.
    """
    from tqdm import tqdm

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "limits.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    rows: list[Row] = []
    failures: list[str] = []
    with (folder / "limits.csv").open("w", encoding="utf-8", newline="") as file, tqdm(limits) as bar:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for each, value in measure(bar, Machine()):
            bar.set_description(str(each))
            if isinstance(value, Exception):
                failures.append(f"{each}: {value}")
                continue
            rows.append((each.quantity, each.variant, each.unit, float(f"{value:.5g}")))
            writer.writerow(rows[-1])
            file.flush()
    return rows, failures


def read(path: Path) -> list[Row]:
    """Read a table that `run` has written."""
    with path.open(encoding="utf-8", newline="") as file:
        return [(quantity, variant, unit, float(value)) for quantity, variant, unit, value in _rows(file)]


def _rows(file: Iterable[str]) -> Iterator[list[str]]:
    """Yield the rows below the head. Raises ValueError for another table."""
    rows = csv.reader(file)
    if (head := tuple(next(rows, ()))) != COLUMNS:
        raise ValueError(f"columns must be {', '.join(COLUMNS)}, not {', '.join(head)}")
    yield from rows
