"""What is said when a GPU stopped a kernel; on a GPU: tests/labkit/devices/test_gpu.py."""

import re

import pytest

from labkit.devices import faults
from simt.common.errors import InvalidAccess

OURS = "the GPU stopped a kernel"
CUPYS = """
class CUDARuntimeError(RuntimeError):
    __module__ = "cupy_backends.cuda.api.runtime"
"""


@pytest.fixture
def run(ipython, monkeypatch, capsys):
    """Run a cell after a fault, and give what a notebook shows."""
    monkeypatch.setattr(faults, "lost", lambda: InvalidAccess(OURS))
    ipython.run_cell(CUPYS)

    def run_cell(source):
        result = ipython.run_cell(source)
        assert not result.success
        return capsys.readouterr().out

    return run_cell


def test_nothing_is_lost_without_a_gpu(monkeypatch):
    monkeypatch.setattr(faults, "_launched", None)
    faults.note("f", (1, 1, 1), (1, 1, 1))
    assert faults.lost() is None
    faults.check()


def test_an_error_of_cupys_is_told_in_our_words(run):
    shown = run("raise CUDARuntimeError('cudaErrorIllegalAddress')")
    assert shown.strip().splitlines() == [f"InvalidAccess: {OURS}"]


@pytest.mark.parametrize(
    "error",
    ["RuntimeError('deque changed')", "RecursionError('deep')", "ValueError('x')", "NotImplementedError()"],
)
def test_other_errors_are_shown_as_ever(run, error):
    shown = re.sub(r"\x1b\[[\d;]*m", "", run(f"raise {error}"))  # without colours
    assert OURS not in shown
    assert "Traceback" in shown and f"raise {error}" in shown
