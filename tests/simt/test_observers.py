"""An observer of a test's own, in one file: what the core knows of observers is enough for it."""

from dataclasses import dataclass

import numpy as np
import pytest

import simt
from simt.code.abi import I32, I64, Frame, load_field
from simt.code.emitter import Emitter
from simt.code.instructions import intrinsic
from simt.counters.counting import Counting
from simt.kernel import launch_of
from simt.launch.sample import choose_sample
from simt.run.observer import Observer
from simt.sanitizer.sanitizer import Sanitizer

SOURCE = """extern "C" __global__ void half(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && threadIdx.x % 4 == 0) y[i] = x[i] / 2;
}"""


class StoreEmitter(Emitter):
    """Counts the lanes that store to global memory, in the first word behind `trace`."""

    def takes(self, instruction, access):
        return False  # every access in its careful form, which knows its lanes

    def careful(self, look):
        if not look.access.is_store:
            return
        count = load_field(look.b, Frame, look.frame, "trace")
        lanes = look.b.zext(intrinsic(look.b, "ctpop", I32, look.mask), I64)
        look.b.store(look.b.add(look.b.load(count, typ=I64), lanes), count)

    def facts(self):
        return [i.line for i in self.w.kernel.code if i.is_access and i.parts[0] == "st"]


@dataclass(frozen=True)
class Stores:
    """How many elements were stored, and in which lines."""

    lanes: int
    lines: list


class StoreCount(Observer[Stores]):
    """Counts what a launch stores."""

    name = "a test's"
    emitter = StoreEmitter

    def begin(self, run):
        self.counts = []

    def attach(self, run, worker):
        self.counts.append(np.zeros(1, np.int64))
        for head in worker.heads:
            head.trace = self.counts[-1].ctypes.data

    def finish(self, run):
        self.result = Stores(int(sum(self.counts)[0]), run.compiled.facts)


@pytest.fixture
def bound():
    kernel = simt.RawModule(code=SOURCE).get_function("half")
    x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    return kernel.bind(launch_of(8, 128, (x, y, np.int32(1000)), 0, 10)), x, y


def test_an_observer_is_one_file(bound):
    launch, x, y = bound
    assert launch.run(StoreCount()) == Stores(250, [3])
    np.testing.assert_array_equal(y, np.where(np.arange(1000) % 4, 0, x / 2))


def test_a_launch_bound_once_runs_again_with_any_observer(bound):
    launch, x, y = bound
    some = choose_sample([7], (8, 1, 1))  # elements 896 to 999
    assert launch.run(StoreCount(), some).lanes == 26
    np.testing.assert_array_equal(np.flatnonzero(y), np.arange(896, 1000, 4))
    assert launch.run(Sanitizer()) == []
    assert launch.run(Counting()).counts().sectors.sum() == 250  # 125 loaded, 125 stored
    assert launch.run(Observer()) is None
    x *= 2  # memory is bound, not copied
    launch.run(Observer())
    np.testing.assert_array_equal(y[::4], x[::4] / 2)


def test_a_launch_that_fails_leaves_what_was_seen():
    kernel = simt.RawModule(code=SOURCE).get_function("half")
    short = np.zeros(100, np.float32)
    launch = kernel.bind(launch_of(1, 128, (short, short, np.int32(128)), 0, 10))
    sanitizer, counted = Sanitizer(), StoreCount()
    assert [finding.kind for finding in launch.run(sanitizer)] == ["out of bounds"]
    with pytest.raises(simt.InvalidAccess):
        launch.run(counted)
    assert counted.result.lanes == 24  # of whole warps, before the one that fails: elements 0 to 95
