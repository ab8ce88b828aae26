"""The simulator counts what Nsight Compute counted on an H200 (data/h200/counters.csv)."""

import numpy as np
import pandas as pd
import pytest

from labkit import kernels, records, simt
from labkit.problems import problem

KEYS = ["kernel", "dtype", "m", "n", "k", "rows", "cols", "block_y", "tile"]
CASES = list(records.recorded("h200").groupby(KEYS, dropna=False, sort=False))


def test_the_record_is_whole():
    assert len(CASES) == 56
    assert {len(rows) for _, rows in CASES} == {6}


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: "-".join(str(key) for key in case[0] if pd.notna(key))
)
def test_counters_equal_the_hardwares(case):
    key, recorded = dict(zip(KEYS, case[0], strict=True)), case[1]
    family = key["kernel"].partition("/")[0]
    sizes = [int(key[name]) for name in (("m", "n", "k") if family == "matmul" else ("rows", "cols"))]
    shape = problem(family, *sizes, dtype=key["dtype"])
    options = (f"-DDTYPE={shape.ctype}", f"-DTILE={key['tile']}")
    kernel = simt.RawModule(code=kernels.source(key["kernel"]), options=options).get_function(family)
    counted = kernel.profile(*shape.launch(int(key["tile"]), int(key["block_y"])), shape.args(np)).metrics
    expected = dict(zip(recorded.quantity, recorded.value, strict=True))
    assert {name: counted[name] for name in expected} == expected
