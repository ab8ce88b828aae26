"""The matrix products of the course reports, as `labkit bench` measures them on this machine's GPU."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from labkit.devices.timing import breakdown
from labkit.kernels.matmul.family import Matmul
from labkit.ladder.running import END, Case, Row, Section, case

TILES = (1, 2, 4, 8, 16, 32)
ENOUGH = 2**33  # multiply-adds that are enough to time, per element of a tile: half a second on an H200
SHAPES = ((32, 32, 32), (256, 256, 256), (4096, 4096, 2048))  # M, N, K of report tiled-matmul-ko
STEPS = {  # timing.STEPS -> their names in tables
    "context creation": "context_time",
    "allocation": "malloc_time",
    "pinning": "pin_time",
    "host to device": "htod_time",
    "kernel": "kernel_time",
    "device to host": "dtoh_time",
    "end to end": "total_time",
}


@dataclass(frozen=True)
class Band(Case):
    """A product of which only the top rows of C are computed, as small tiles take minutes; C has `m` rows.

    Every row of C costs the same, so the time is that of the band, scaled; `note` says so.
    """

    m: int = 0

    def place(self) -> Row:
        """Return the columns that identify the case, with the rows of the whole product."""
        return super().place() | {
            "m": self.m,
            "note": f"{self.problem.sizes['M']} of {self.m} rows of C, scaled",
        }

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """Make the rows of the whole product: the times of its band, scaled."""
        times = self.m / self.problem.sizes["M"]
        return [
            row | {"value": row["value"] * times} if row["unit"] == "ms" else row
            for row in super().rows(args)
        ]


@dataclass(frozen=True)
class Breakdown(Case):
    """All steps from arrays on the host to a result on the host, see `timing.breakdown`."""

    def place(self) -> Row:
        """Return the columns that identify the case, with the note "breakdown"."""
        return super().place() | {"note": "breakdown"}

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """Make one row per step and statistic: `htod_time` is the average of repeated calls.

        `note` says which kind of host memory a step depends on.
        """
        table = breakdown(self.problem, *self.compiled())
        rows = [row for _, step in table.iterrows() for row in self._step_rows(step)]
        return [*rows, self.place() | {"quantity": END, "unit": "1", "value": table.calls.max()}]

    def _step_rows(self, step: pd.Series) -> list[Row]:
        place, name = self.place() | {"note": step.host_memory, "unit": "ms"}, STEPS[step.step]
        values = {"": step.avg_ms, "_first": step.first_ms, "_min": step.min_ms, "_max": step.max_ms}
        return [
            place | {"quantity": name + which, "value": value, "source": step.source}
            for which, value in values.items()
            if pd.notna(value)
        ]


def _tiles(quick: bool) -> Iterator[Case]:
    """Yield naive and tiled with blocks of side 1 to 32, as in reports int-matmul and cpu-gpu-matmul."""
    sizes = (1024,) if quick else (256, 512, 1024, 2048, 4096, 8192)
    for dtype, n, rung, tile in product(("float32", "int32"), sizes, ("naive", "tiled"), TILES):
        rows = min(n, n * ENOUGH * tile**2 // n**3)
        band = case(rung, Matmul(rows, n, n, dtype=dtype), TILE=tile)
        yield band if rows == n else Band(rung, band.problem, band.macros, m=n)


def _shapes(quick: bool) -> Iterator[Case]:
    """Yield the small, medium and large product of report tiled-matmul-ko."""
    for size in SHAPES[:2] if quick else SHAPES:
        yield case("naive", Matmul(*size), TILE=16)
        for tile in (4, 8, 16, 32):
            yield case("tiled", Matmul(*size), TILE=tile)


def _breakdown(quick: bool) -> Iterator[Case]:
    """Yield the products of report cpu-gpu-matmul, timed from host to host."""
    for n in (1024,) if quick else (512, 1024, 2048, 4096):
        yield _broken_down(case("naive", Matmul(n, n, n)))


def _broken_down(case: Case) -> Breakdown:
    return Breakdown(case.rung, case.problem, case.macros)


SECTIONS: dict[str, Section] = {"tiles": _tiles, "shapes": _shapes, "breakdown": _breakdown}
