"""Predictions of another size reuse what the kernel alone decides, and addresses do not matter."""

import numpy as np
import pytest

import simt
from simt import module as module_of_kernels
from simt.run import machine

CODE = """extern "C" __global__ void strided(const float* in, float* out, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[(long long)i * stride];
}"""


def launch(n, stride, before=0):
    """Return a launch; its arrays lie elsewhere if other memory was taken `before`."""
    taken = [np.ones(n + 3, np.uint8) for n in range(before)]
    arrays = np.ones(n * stride, np.float32), np.ones(n, np.float32)
    return (-(-n // 128), 128, (*arrays, np.int32(n), np.int32(stride))), taken


def test_nothing_is_compiled_or_read_again(monkeypatch):
    made = simt.RawModule(code=CODE).get_function("strided")
    first = made.predict(*launch(1 << 14, 1)[0])

    def refuse(*_):
        raise AssertionError("made again")

    monkeypatch.setattr(machine, "Program", refuse)
    monkeypatch.setattr(module_of_kernels, "disk_cached", refuse)
    found = [made.predict(*launch(1 << 14, stride)[0]).seconds for stride in (1, 2, 8, 31)]
    assert found[0] == first.seconds
    assert len(set(found)) == 4


@pytest.mark.parametrize("n", [100, 1000, 1 << 14])
def test_where_arrays_lie_in_this_process_does_not_matter(n):
    made = simt.RawModule(code=CODE).get_function("strided")
    kept = [launch(n, 3, before) for before in (0, 1, 5, 9, 20)]
    found = {
        (each.seconds, each.dram_bytes, tuple(part.seconds for part in each.parts))
        for each in (made.predict(*call) for call, _ in kept)
    }
    assert len(found) == 1
