"""The package as a whole: its import, its errors and its cache."""

import os
import pickle
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import labkit
import simt
from simt.common import errors
from simt.common.cache import cache_dir, cached_bytes

ROOT = Path(labkit.__file__).parent.parent


ALONE = """
import sys
ABSENT = ["labkit", "grader", "IPython", "anywidget", "ipywidgets", "jupyterlab", "matplotlib", "tqdm"]
sys.modules |= dict.fromkeys([*ABSENT, "cupy", "threadpoolctl"])
import numpy as np, simt
code = 'extern "C" __global__ void f(float *x) { x[threadIdx.x] *= 2; }'
twice = simt.RawModule(code=code).get_function("f")
x = np.array([1, 2], np.float32)
twice((1,), (2,), (x,))
found = twice.check((1,), (2,), (x.copy(),))
loads = twice.profile((1,), (2,), (x.copy(),)).metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
print(x, len(found), int(loads), twice.predict((1,), (2,), (x,)).seconds > 0)
"""


def python(code: str) -> str:
    """What a fresh Python prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


class TestImport:
    def test_brings_neither_jupyter_nor_cupy_nor_anything_slow(self):
        loaded = set(python("import sys, labkit; print(*sys.modules)").split())
        assert not loaded & {
            "cupy",
            "ipywidgets",
            "IPython",
            "jupyterlab",
            "matplotlib",
            "pandas",
            "llvmlite",
            "torch",
        }

    def test_simt_needs_neither_labkit_nor_the_course(self):
        """Where labkit and the packages of notebooks and figures are absent, simt does its work."""
        assert python(ALONE) == "[2. 4.] 0 1 True\n"

    def test_every_public_name_of_simt_is_there(self):
        for name in simt.__all__:
            assert getattr(simt, name) is not None, name
            assert name in dir(simt)
        with pytest.raises(AttributeError, match="'simt' has no attribute 'rawmodule'"):
            simt.rawmodule  # noqa: B018

    def test_every_public_name_is_there(self):
        for name in labkit.__all__:
            assert getattr(labkit, name) is not None, name
            assert name in dir(labkit)

    def test_functions_are_not_shadowed_by_modules_of_the_same_name(self):
        assert python("import labkit.devices.select; print(callable(labkit.device))") == "True\n"

    def test_an_unknown_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="'labkit' has no attribute 'rawmodule'"):
            labkit.rawmodule  # noqa: B018

    def test_version_is_the_one_of_the_package(self):
        assert labkit.__version__ == pyproject()["project"]["version"]


def test_the_examples_of_the_pages_run():
    names: dict = {}
    for page in ("simt/README.md", "README.md", "docs/cpu.md", "docs/gpu.md", "docs/simulator.md"):
        for example in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL):
            exec(example, names)
    assert names["x"].tolist() == list(range(0, 2000, 2))
    assert (names["C"] == 1000).all()


class TestErrors:
    def test_all_are_simt_errors_that_survive_another_process(self):
        error = errors.CompileError("kernel.cu(3): error: no\n", [(3, "error", "no")])
        copy = pickle.loads(pickle.dumps(error))
        assert (str(copy), copy.log, copy.lines, copy.finding) == (
            "kernel.cu(3): error: no",
            error.log,
            [(3, "error", "no")],
            None,
        )

    @pytest.mark.parametrize(
        "name", ["CompileError", "LaunchError", "InvalidAccess", "BarrierError", "Timeout"]
    )
    def test_family(self, name):
        assert issubclass(getattr(errors, name), errors.SimtError)

    def test_a_finding_goes_with_the_error(self):
        assert errors.InvalidAccess("out of bounds", finding="record").finding == "record"


class TestCache:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))

    def test_makes_once(self):
        assert cached_bytes("t", ["key"], lambda: b"first") == b"first"
        assert cached_bytes("t", ["key"], lambda: b"second") == b"first"

    def test_other_parts_or_kinds_are_other_entries(self):
        keys = [("t", ["ab", "c"]), ("t", ["a", "bc"]), ("t", ["abc"]), ("u", ["abc"]), ("t", ["abc", ""])]
        for number, (kind, parts) in enumerate(keys):
            cached_bytes(kind, parts, lambda number=number: bytes([number]))
        assert [cached_bytes(kind, parts, lambda: b"new")[0] for kind, parts in keys] == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100])
    def test_a_damaged_entry_is_made_again(self, damage):
        cached_bytes("t", ["key"], lambda: b"first")
        (entry,) = (cache_dir() / "t").iterdir()
        entry.write_bytes(damage)
        assert cached_bytes("t", ["key"], lambda: b"second") == b"second"
        assert cached_bytes("t", ["key"], lambda: b"third") == b"second"

    def test_a_folder_that_cannot_be_written_changes_nothing(self, monkeypatch, tmp_path):
        (tmp_path / "file").touch()
        monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "file" / "below"))
        assert cached_bytes("t", ["key"], lambda: b"made") == b"made"

    def test_an_error_of_make_leaves_no_entry(self):
        with pytest.raises(ZeroDivisionError):
            cached_bytes("t", ["key"], lambda: bytes(1 // 0))
        assert cached_bytes("t", ["key"], lambda: b"made") == b"made"

    def test_writers_at_the_same_time_leave_one_whole_entry(self):
        data = os.urandom(1 << 20)
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda _: cached_bytes("t", ["key"], lambda: data), range(16)))
        assert results == [data] * 16
        assert len(list((cache_dir() / "t").iterdir())) == 1


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
