"""What all tests share: a cache of their own, and a skip where a GPU is needed."""

import os
import signal
from collections import Counter

import pytest

from labkit.doctor import find_gpu

# A job in the background ignores Ctrl-C, and so does all that it starts. The tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Tests neither find what an older version of the code cached, nor leave anything behind.

    The workers of a run share what they compile.
    """
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_CACHE", str(run / "cache"))
        yield


def pytest_collection_modifyitems(items):
    places = Counter()
    for item in items:
        if sampled := item.get_closest_marker("sampled"):
            if places[item.function] % sampled.args[0]:
                item.add_marker(pytest.mark.thorough)
            places[item.function] += 1
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and find_gpu() is None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


@pytest.fixture
def optimised(monkeypatch):
    """Small launches, too, run the optimised code that large ones do."""
    monkeypatch.setattr("labkit.simt.module.FEW_THREADS", 0)


@pytest.fixture
def gpu(monkeypatch):
    """CuPy, as the course's device."""
    monkeypatch.delenv("LABKIT_DEVICE", raising=False)
    return pytest.importorskip("cupy")
