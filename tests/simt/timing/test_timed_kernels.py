"""The kernels of benchmarks/timed are right, and split into two sets of all kinds."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from gallery import references

import simt

sys.path[:0] = [str(Path(__file__).parents[3] / "benchmarks")]

import timed  # noqa: E402

SMALL = timed.small()


def run(case, how="__call__"):
    """Launch or check a case: what comes back, and the arguments by name."""
    args = case.args(empty=simt.empty) if how == "check" else case.args()
    kernel = simt.RawModule(code=case.source, options=case.options).get_function(case.entry)
    found = getattr(kernel, how)(
        case.grid, case.block, tuple(args.values()), shared_mem=case.shared_mem, timeout=case.timeout
    )
    return found, args


def test_the_set_is_whole():
    assert len(SMALL) >= 52
    assert min(Counter(each.set for each in SMALL).values()) >= 16
    assert {*Counter(each.set for each in SMALL)} == {*timed.SETS}
    for each in SMALL:
        large = [other for other in timed.launches() if other.kernel == each.kernel]
        assert 2 <= len(large) <= 5, each.kernel
        assert each.case.expectations, each.kernel
        assert each.kernel == each.case.entry
        assert references.wrong(each.case, each.case.args()), "a kernel that does nothing does not pass"
        for kind in (other.kind for other in SMALL):
            kernels = [other.set for other in SMALL if other.kind == kind]
            assert len(kernels) == 1 or {*kernels} == {*timed.SETS}, kind


def test_the_large_launches_fit_into_memory():
    for each in timed.launches():
        sizes = [timed.nbytes(argument) for argument in each.case.arguments]
        assert sum(sizes) <= 2 * 2**30, each.name
        assert max(sizes) // 4 < 2**31, each.name


@pytest.mark.slow  # kernels that predictions are measured with; no lab uses them
@pytest.mark.parametrize("launch", SMALL, ids=lambda launch: launch.kernel)
def test_results(launch):
    _, args = run(launch.case)
    assert references.wrong(launch.case, args) == ""


@pytest.mark.slow  # likewise
@pytest.mark.parametrize("launch", SMALL, ids=lambda launch: launch.kernel)
def test_no_finding(launch):
    findings, args = run(launch.case, "check")
    assert not findings, "\n".join(f"{each.tool}, line {each.line}: {each.message}" for each in findings)
    assert references.wrong(launch.case, args) == ""
