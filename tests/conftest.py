"""What all tests share: a cache of their own, and a skip where a GPU is needed."""

import atexit
import os
import signal
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from session import without_memory
from traitlets.config import Config

from labkit.doctor import find_gpu

LONG = (  # the files that take longest: they go first, so that the workers end together
    "labkit/course/test_notebooks",
    "tests/grader/test_hostile",
    "browser/test_opened_notebooks",
    "labkit/kernels/test_kernels",
    "tests/grader/test_judge",
    "labkit/course/test_course_10",
    "/browser/",
    "labkit/ladder/test_bench",
    "tests/grader/",
    "labkit/c/test_c_function",
    "labkit/cpu/test_cpu_kernels",
    "labkit/course/",
)

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
    items.sort(key=_place)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and find_gpu() is None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


def _place(item):
    """Return the place in LONG of the item's file, or the end."""
    path = item.path.as_posix()
    return next((place for place, name in enumerate(LONG) if name in path), len(LONG))


@pytest.fixture(autouse=True)
def same_device_afterwards():
    """No test leaves another device chosen: later ones would run elsewhere, or not at all."""
    before = os.environ.get("LABKIT_DEVICE")
    yield
    assert os.environ.get("LABKIT_DEVICE") == before


@pytest.fixture(autouse=True)
def new_session(same_device_afterwards):
    """No test finds the cells that another has run, or what it has solved in no student's folder."""
    with without_memory():
        yield


@pytest.fixture(autouse=True)
def titles_have_room(same_device_afterwards, request, monkeypatch):
    """Each picture that a test of pictures draws has titles of one line that fit."""
    if request.path.parent.name not in ("figures", "ladder", "model", "widgets"):
        return
    from titles import misfits

    from labkit.figures.svg import Svg

    drawn = Svg.__str__

    def checked(picture):
        wrong = misfits(svg := drawn(picture))
        assert not wrong, f"titles without room: {wrong}"
        return svg

    monkeypatch.setattr(Svg, "__str__", checked)


@pytest.fixture
def ipython(monkeypatch):
    """A fresh IPython with `%load_ext labkit`; the module `__main__`, which it replaces, comes back."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.run_line_magic("load_ext", "labkit")
    yield shell
    atexit.unregister(shell.atexit_operations)  # which takes half a second for each shell there was
    InteractiveShell.clear_instance()


@pytest.fixture
def optimised(monkeypatch):
    """Small launches, too, run the optimised code that large ones do."""
    monkeypatch.setattr("simt.run.machine.FEW_THREADS", 0)


@pytest.fixture
def gpu(monkeypatch):
    """CuPy, as the course's device."""
    monkeypatch.delenv("LABKIT_DEVICE", raising=False)
    return pytest.importorskip("cupy")
