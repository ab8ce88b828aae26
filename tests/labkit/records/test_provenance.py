"""The file beside a table: which parts it must have, and what is asked of a GPU's machine."""

import json
import sys
from datetime import date
from types import SimpleNamespace

import pytest

from labkit import doctor
from labkit.devices.select import NoGpu
from labkit.records import provenance, provenance_of

RUN = {"gpu": "NVIDIA H200", "driver": "580.1", "versions": "CuPy 14", "date": "2026-11-23", "command": "x"}
ON_A_CPU = {"processor": "Xeon", "versions": "gcc 13", "date": "2026-11-23", "command": "x"}


def beside(folder, run):
    """A table with this file beside it."""
    (folder / "bench.json").write_text(json.dumps(run), encoding="utf-8")
    return folder / "bench.csv"


@pytest.mark.parametrize("run", [RUN, ON_A_CPU, RUN | {"clock": "1980 MHz"}])
def test_what_the_file_says(tmp_path, run):
    assert provenance_of(beside(tmp_path, run)) == run


@pytest.mark.parametrize(
    ("run", "missing"),
    [
        *(({name: RUN[name] for name in RUN if name != left_out}, left_out) for left_out in RUN),
        *(
            ({n: ON_A_CPU[n] for n in ON_A_CPU if n != left_out}, left_out)
            for left_out in ("date", "command")
        ),
        ({}, "gpu, driver, versions, date, command"),
    ],
)
def test_a_part_that_is_missing_is_named(tmp_path, run, missing):
    with pytest.raises(ValueError, match=rf"bench\.json does not say: {missing}$"):
        provenance_of(beside(tmp_path, run))


def test_a_table_without_a_file_beside_it(tmp_path):
    told = r"^bench\.csv has no provenance: .*bench\.json is missing \(keys: gpu, driver, "
    with pytest.raises(ValueError, match=told):
        provenance_of(tmp_path / "bench.csv")


def test_without_a_gpu_there_is_nothing_to_say(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    with pytest.raises(NoGpu):
        provenance("labkit bench x")


@pytest.mark.parametrize("shown", [SimpleNamespace(driver="580.1"), None])
def test_on_a_gpus_machine(monkeypatch, shown):
    cuda = SimpleNamespace(
        runtime=SimpleNamespace(runtimeGetVersion=lambda: 13020),
        cublas=SimpleNamespace(getVersion=lambda handle: {7: 130100}[handle]),
        get_cublas_handle=lambda: 7,
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda, __version__="14.2.0"))
    select = sys.modules["labkit.devices.select"]  # labkit.devices.select itself is a function
    monkeypatch.setattr(select, "find_gpu", lambda: SimpleNamespace(name="NVIDIA H200"))
    monkeypatch.setattr(doctor, "find_gpu", lambda: shown)
    monkeypatch.setattr("platform.python_version", lambda: "3.12.3")
    assert provenance("labkit bench x", NVRTC="13.5") == {
        "gpu": "NVIDIA H200",
        "driver": shown.driver if shown else "not known",
        "versions": "CUDA runtime 13020, cuBLAS 130100, CuPy 14.2.0, NVRTC 13.5, Python 3.12.3",
        "date": date.today().isoformat(),
        "command": "labkit bench x",
    }
