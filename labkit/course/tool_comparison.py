"""Which tool finds which mistake: NVIDIA's compute-sanitizer on a GPU, as recorded, and `kernel.check`."""

from collections.abc import Sequence

import pandas as pd

from labkit import records
from simt import Finding

NOTHING = "nothing"


def who_finds(*mistakes: tuple[str, str, Sequence[Finding]]) -> pd.DataFrame:
    """Make a table with one row per mistake: which tool finds it on a GPU, and what `check` found here.

    A mistake is its name, a kernel of the recorded run that makes it too, and the findings here. A cell names
    the tools that find it. Raises ValueError for a kernel that was not recorded.
    """
    said = records.sanitizer()
    rows = []
    for mistake, kernel, findings in mistakes:
        own = said[said.kernel == kernel]
        if own.empty:
            raise ValueError(f"no record of {kernel!r}; there are: {', '.join(sorted(set(said.kernel)))}")
        theirs = own[own.kind != ""].tool.tolist()
        ours = [finding.tool for finding in findings]
        rows.append((mistake, _listed(theirs), _listed(ours)))
    columns = ["mistake", "compute-sanitizer, H200", "kernel.check, here"]
    return pd.DataFrame(rows, columns=columns).set_index("mistake")


def _listed(tools: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(tools)) or NOTHING
