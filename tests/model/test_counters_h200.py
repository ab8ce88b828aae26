"""The simulator counts what Nsight Compute counted on an H200 (data/h200/counters.csv)."""

import numpy as np
import pandas as pd
import pytest

from labkit import kernels, records, simt
from labkit.kernels.problem import problem

KEYS = ["kernel", "dtype", "m", "n", "k", "rows", "cols", "tile", "note"]
COUNTERS = records.recorded("h200")
COUNTERS = COUNTERS[COUNTERS.kernel.str.contains("/")]  # other tables there name rungs as the ladder does
CASES = list(COUNTERS.groupby(KEYS, dropna=False, sort=False))
# The simulator compiles each of these for five seconds and more.
SLOW = ("4_register_column", "5_register_tile", "6_vectorised", "7_double_buffered", "8_warp_tile")
SLOW += ("9_tuned", "tensor_cores")
LOADS, STORES = (f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in ("ld", "st"))
COPIES = "sm__sass_l1tex_t_{}_pipe_lsu_mem_global_op_ldgsts_cache_{}.sum"


def test_the_record_is_whole():
    """Three products with 3 tiles, 2 sizes and 2 dtypes, five transposes with 2 and 2, and what came
    later.
    """
    assert len(CASES) >= 56
    assert {len(set(rows.quantity)) for _, rows in CASES} <= {6, 10}
    assert not COUNTERS.duplicated([*KEYS, "quantity"]).any()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id="-".join(str(key) for key in case[0] if pd.notna(key)),
            marks=[pytest.mark.thorough] if case[0][0].endswith(SLOW) else [],
        )
        for case in CASES
    ],
)
def test_counters_equal_the_hardwares(case):
    key, recorded = dict(zip(KEYS, case[0], strict=True)), case[1]
    family = key["kernel"].partition("/")[0]
    sizes = [int(key[name]) for name in (("m", "n", "k") if family == "matmul" else ("rows", "cols"))]
    precision = "PRECISION" in key["note"]  # then dtype is what the rung rounds float32 to
    shape = problem(family, *sizes, dtype="float32" if precision else key["dtype"])
    macros = dict(macro.split("=") for macro in key["note"].split())
    macros = {name: int(value) if value.isdecimal() else value for name, value in macros.items()}
    if pd.notna(key["tile"]):
        macros["TILE"] = int(key["tile"])
    options = [f"-D{name}={value}" for name, value in {"DTYPE": shape.ctype, **macros}.items()]
    kernel = simt.RawModule(code=kernels.source(key["kernel"]), options=options).get_function(family)
    counted = kernel.profile(*kernels.launch(key["kernel"], shape, **macros), shape.args(np)).metrics
    expected = dict(zip(recorded.quantity, recorded.value, strict=True))
    for unit in ("requests", "sectors"):  # a cp.async is among the loads, as in the simulator
        copies = sum(expected.pop(COPIES.format(unit, cache), 0) for cache in ("access", "bypass"))
        assert copies <= expected[f"l1tex__t_{unit}_pipe_lsu_mem_global_op_ld.sum"]
    if copies:  # the hardware leaves out the bank conflicts of what a cp.async stores
        assert counted[STORES] >= expected.pop(STORES)
    if precision:  # the hardware's conflicts of a piece's loads vary a little from run to run
        assert counted[LOADS] == pytest.approx(expected.pop(LOADS), rel=0.01)
    assert {name: counted[name] for name in expected} == expected
