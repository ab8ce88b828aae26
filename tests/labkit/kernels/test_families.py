"""Every kernel of every family, found in the folders: right on the family's sizes, and without a finding."""

import re

import numpy as np
import pytest
from small_kernels import small

from labkit import cpu, kernels
from labkit.kernels.problem import families, problem_class
from labkit.ladder import rungs


def gpu_rungs():
    """The rungs of all families, but those that round their inputs and those that only copy."""
    for family in families():
        kind = problem_class(family)
        for rung, name in rungs(family).items():
            if rung not in kind.rounding and rung not in kind.copies:
                yield name


RUNGS = list(gpu_rungs())
TYPED = [
    (name, dtype)
    for name in RUNGS
    for dtype, ctype in problem_class(name.partition("/")[0]).dtypes.items()
    if ctype in kernels.types(name)
]


def trials(name, dtype=""):
    """The problems of a family's sizes that a rung takes, but the last one, which is large."""
    kind = problem_class(name.partition("/")[0])
    for case in kind.trials(dtype, kind.check_sizes[:-1]):
        if not kernels.unfit(name, case, **small(name)):
            yield case


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


@pytest.mark.parametrize(("name", "dtype"), TYPED)
def test_a_rung_is_right_on_the_familys_sizes(name, dtype):
    for case in trials(name, dtype):
        kernel, args = kernels.load(name, DTYPE=case.ctype, **small(name)), case.args(np)
        kernel(*kernels.whole_launch(name, case, args, **small(name)))
        case.verify(case.output(args))


@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_has_no_finding(name):
    for case in trials(name):
        kernel = kernels.load(name, DTYPE=case.ctype, **small(name))
        assert kernel.check(*kernels.whole_launch(name, case, case.args(np), **small(name))) == []


@pytest.mark.parametrize("family", families())
def test_each_family_says_what_the_rest_of_labkit_asks(family):
    kind = problem_class(family)
    case = kind.trials()[0]
    assert kind.output_name in kind.arrays and set(case.sizes) == set(kind.size_names)
    assert case.bytes > 0 and kind.reference_name and kind.benchmarked(quick=True)
    numbers = [int(digits[1]) for name in rungs(family).values() if (digits := re.search(r"/(\d+)_", name))]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("name", [each for family in families() for each in kernels.names(family, "cpu")])
def test_a_kernel_in_c_is_right(name):
    kind = problem_class(name.partition("/")[0])
    rung = name.partition("/cpu_")[2].partition("_")[2]
    if rung == kind.ceiling or rung in kind.copies:
        pytest.skip("a ceiling computes nothing of use")
    verdict = cpu.check(kernels.load(name), kind.check_sizes[:-1])
    assert verdict.ok, verdict
