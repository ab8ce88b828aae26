"""What a counted run adds up: Nsight Compute's metrics for a launch, and a row a source line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.simt.abi import Counter
from labkit.simt.machine import Sample
from labkit.simt.ptx import Instruction

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = [entry[0] for entry in Counter._fields_]
GLOBAL = "l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum"


class Profile:
    """Counts of one launch: `metrics` by Nsight Compute's names, `lines` with a row a source line.

    `sample` is None if all blocks were counted; else the counts are those of a sample, scaled to the grid.
    """

    def __init__(
        self, code: Sequence[Instruction], counters: np.ndarray, source: Sequence[str], sample: Sample | None
    ) -> None:
        self.sample = sample
        scale = sample.total / len(sample.numbers) if sample else 1
        self._rows: list[dict[str, Any]] = [
            {
                "line": i.line,
                "space": space,
                "op": i.parts[0],
                "useful_bytes": round(int(row[1]) * i.moved_bytes * scale),
            }
            | {name: round(int(value) * scale) for name, value in zip(COLUMNS, row, strict=True)}
            for i, row in zip(code, counters, strict=True)
            if (space := _space(i)) and row.any()
        ]
        self._source = source
        self.metrics = self._metrics()

    @property
    def label(self) -> str:
        """Where the figures come from, for plots and tables."""
        if self.sample is None:
            return "counted by the simulator"
        return f"counted by the simulator in {len(self.sample.numbers)} of {self.sample.total} blocks, scaled"

    @property
    def lines(self) -> pd.DataFrame:
        """A row a source line and operation: requests, threads, sectors, bank conflicts, the source."""
        import pandas as pd

        columns = ["line", "space", "op", *COLUMNS, "useful_bytes"]
        table = (
            pd.DataFrame(self._rows, columns=columns).groupby(["line", "space", "op"], as_index=False).sum()
        )
        table["sectors_per_request"] = table["sectors"] / table["requests"]
        table["source"] = [
            self._source[n - 1].strip() if 0 < n <= len(self._source) else "" for n in table["line"]
        ]
        return table

    def _metrics(self) -> dict[str, float]:
        metrics: dict[str, float] = {}
        for op in ("ld", "st"):
            requests, sectors = (self._sum("global", op, what) for what in ("requests", "sectors"))
            metrics[GLOBAL.format(what="requests", op=op)] = requests
            metrics[GLOBAL.format(what="sectors", op=op)] = sectors
            average = GLOBAL.format(what="average_t_sectors_per_request", op=op).replace(
                "l1tex__t_average", "l1tex__average"
            )
            metrics[average.replace(".sum", ".ratio")] = sectors / requests if requests else 0.0
            metrics[CONFLICTS.format(op=op)] = self._sum("shared", op, "conflicts")
        return metrics

    def _sum(self, space: str, op: str, what: str) -> int:
        return sum(row[what] for row in self._rows if row["space"] == space and row["op"] == op)

    def __repr__(self) -> str:
        figures = "\n".join(f"  {name:<66} {value:>14,.6g}" for name, value in self.metrics.items())
        return f"Profile, {self.label}\n{figures}"


def choose_sample(blocks: int, total: int) -> Sample:
    """`blocks` block numbers spread evenly over the grid, the first and the last among them."""
    if blocks < 1:
        raise ValueError(f"blocks={blocks}: a sample has at least one block")
    return Sample(np.unique(np.linspace(0, total - 1, blocks).astype(np.int64)), total)


def _space(instruction: Instruction) -> str | None:
    if instruction.parts[0] not in ("ld", "st"):
        return None
    return next((part for part in instruction.parts if part in ("global", "shared")), None)
