"""`labkit doctor` names what is missing and the command that mends it; `labkit lab` starts JupyterLab."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from labkit import cli, doctor, mend
from labkit.course.notebooks import catalog
from labkit.doctor import MISSING, OPTIONAL, Row


def run(*arguments: str):
    return CliRunner().invoke(cli.app, list(arguments))


class TestDoctor:
    def test_python_m_labkit_is_labkit(self):
        done = subprocess.run([sys.executable, "-m", "labkit", "doctor"], capture_output=True, text=True)
        assert done.returncode == 0 and "NVRTC" in done.stdout

    def test_what_is_missing_fails_and_prints_the_command_on_one_line(self, monkeypatch):
        command = f"{'/long' * 30}/python -m pip install 'labkit[lab]'"
        monkeypatch.setattr(doctor, "report", lambda: [Row("Thing", MISSING, "no [thing]", command)])
        result = run("doctor")
        assert result.exit_code == 1
        assert "no [thing]" in result.output and f"    {command}\n" in result.output

    def test_what_is_optional_does_not_fail(self, monkeypatch):
        monkeypatch.setattr(doctor, "report", lambda: [Row("Thing", OPTIONAL, "absent", "install it")])
        assert run("doctor").exit_code == 0


class TestBench:
    def test_without_a_gpu_it_says_so(self, monkeypatch, tmp_path):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        result = run("bench", str(tmp_path / "out"), "--quick")
        assert result.exit_code == 1 and not (tmp_path / "out").exists()
        assert "CuPy" in result.output or "LABKIT_DEVICE is simt" in result.output

    def test_a_folder_that_cannot_be_written_is_named(self, monkeypatch, tmp_path):
        from labkit import records

        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        monkeypatch.setattr(records, "provenance", lambda command: {"command": command})
        (tmp_path / "out").write_text("a file")
        result = run("bench", str(tmp_path / "out"), "--quick")
        assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
        assert "File exists" in result.output and str(tmp_path / "out") in result.output

    def test_the_folder_is_told_whole(self, monkeypatch, tmp_path):
        """`recorded('h200')` would be ours."""
        from labkit import records
        from labkit.ladder import bench

        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        monkeypatch.setattr(records, "provenance", lambda command: {})
        monkeypatch.setattr(bench, "run", lambda cases, folder, origin: [])
        monkeypatch.chdir(tmp_path)
        assert f"labkit.records.recorded('{tmp_path / 'h200'}')" in run("bench", "h200").output

    def test_an_unknown_section_is_named(self, tmp_path):
        result = run("bench", str(tmp_path), "--only", "speed")
        assert result.exit_code == 1 and "there is no section 'speed'" in result.output

    @pytest.mark.gpu
    def test_a_section_is_measured_and_can_be_loaded(self, gpu, tmp_path):
        result = run("bench", str(tmp_path), "--quick", "--only", "shapes")
        assert result.exit_code == 0 and f"labkit.records.recorded('{tmp_path}')" in result.output
        assert (tmp_path / "bench.csv").is_file() and (tmp_path / "bench.json").is_file()


class TestLab:
    def test_passes_its_options_to_jupyterlab(self, monkeypatch):
        labapp = pytest.importorskip("jupyterlab.labapp")
        started = []
        monkeypatch.setattr(labapp.LabApp, "launch_instance", lambda argv: started.extend(argv))
        assert run("lab", "--no-browser", "--port", "8899").exit_code == 0
        assert started[0] == str(cli.notebooks()) and started[1:4] == ["--no-browser", "--port", "8899"]

    def test_without_jupyterlab_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
        result = run("lab")
        assert result.exit_code == 1 and mend.install("lab") in result.output

    def test_an_installed_package_gives_the_student_a_copy_and_keeps_it(self, monkeypatch, tmp_path):
        (tmp_path / "labkit" / "notebooks").mkdir(parents=True)
        (tmp_path / "labkit" / "notebooks" / "a.ipynb").write_text("original")
        monkeypatch.setattr(catalog, "PACKAGE", tmp_path / "labkit")
        monkeypatch.chdir(tmp_path)
        mine = cli.notebooks() / "a.ipynb"
        assert mine.read_text() == "original" and mine.parent == tmp_path / "labkit-notebooks"
        mine.write_text("my work")
        assert (cli.notebooks() / "a.ipynb").read_text() == "my work"
