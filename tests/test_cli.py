"""`labkit doctor` names what is missing and the command that mends it; `labkit lab` starts JupyterLab."""

import subprocess
import sys
import types

import pytest
from typer.testing import CliRunner

from labkit import cli, doctor
from labkit.course import catalog
from labkit.doctor import MISSING, OK, OPTIONAL, Gpu, Row

HOPPER = Gpu("NVIDIA H200", "580.95.05", (9, 0))


def run(*arguments: str):
    return CliRunner().invoke(cli.app, list(arguments))


def row(name: str) -> Row:
    return next(row for row in doctor.report() if row.name == name)


class TestDoctor:
    def test_the_course_can_run_here(self):
        assert {row.name: row.state for row in doctor.report() if row.state == MISSING} == {}
        assert run("doctor").exit_code == 0

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

    def test_a_broken_package_is_a_row_not_a_crash(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        packages = row("Packages")
        assert packages.state == MISSING and "matplotlib" in packages.detail and "pip install" in packages.fix

    def test_nvrtc_that_does_not_load_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "labkit.compile_cuda", None)
        assert row("NVRTC (CUDA C++ to PTX)").state == MISSING

    def test_without_a_c_compiler_it_names_the_extra(self, monkeypatch):
        monkeypatch.setattr(doctor, "find_compiler", lambda: None)
        compiler = row("C compiler")
        assert compiler.state == OPTIONAL and compiler.fix.endswith("-m pip install 'labkit[cc]'")

    def test_a_cache_that_cannot_be_written_is_told(self, monkeypatch, tmp_path):
        (tmp_path / "file").touch()
        monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "file" / "below"))
        assert row("Cache").state == OPTIONAL and "LABKIT_CACHE" in row("Cache").fix


SANDBOX = "Sandbox (labkit grade)"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading takes Linux")
class TestSandbox:
    def test_a_sandbox_that_works_has_its_version(self):
        from labkit.grading import sandbox

        if sandbox.best() != sandbox.BUBBLEWRAP:
            pytest.skip("needs bubblewrap")
        assert row(SANDBOX).state == OK and row(SANDBOX).detail.startswith("bubblewrap ")

    @pytest.mark.parametrize(
        ("manager", "fix"), [("apt", "sudo apt install bubblewrap"), ("dnf", "sudo dnf install bubblewrap")]
    )
    def test_without_bubblewrap_it_says_what_to_install(self, monkeypatch, tmp_path, manager, fix):
        (tmp_path / manager).touch(mode=0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        found = row(SANDBOX)
        assert (found.state, found.fix) == (OPTIONAL, fix) and "not installed" in found.detail

    def test_without_what_grades_it_names_the_extra(self, monkeypatch, tmp_path):
        (tmp_path / "bwrap").touch(mode=0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setitem(sys.modules, "msgpack", None)
        for name in [name for name in sys.modules if name.startswith("labkit.grading")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr("labkit.grading", raising=False)
        found = row(SANDBOX)
        assert (found.state, found.detail[:7]) == (OPTIONAL, "msgpack")
        assert found.fix.endswith("-m pip install 'labkit[grade]'")

    @pytest.mark.parametrize(
        ("settings", "fix"),
        [
            ({"apparmor_restrict_unprivileged_userns": "1"}, "extra-profiles/bwrap-userns-restrict"),
            (
                {"apparmor_restrict_unprivileged_userns": "0", "unprivileged_userns_clone": "0"},
                "sudo sysctl ",
            ),
            ({}, ""),
        ],
    )
    def test_where_bubblewrap_may_not_make_namespaces_it_says_what_lets_it(self, monkeypatch, settings, fix):
        from labkit.grading import sandbox

        def refuse(tier):
            raise sandbox.NoSandbox("setting up uid map: Permission denied")

        monkeypatch.setattr(sandbox, "require", refuse)
        monkeypatch.setattr(doctor, "_setting", lambda name: settings.get(name, ""))
        monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
        found = row(SANDBOX)
        assert found.state == OPTIONAL and "uid map" in found.detail and fix in found.fix
        assert bool(fix) == bool(found.fix)


class TestGpu:
    @pytest.mark.parametrize(
        ("driver", "capability", "extra"),
        [
            ("580.65.06", (9, 0), "cuda13"),
            ("580.65.06", (7, 5), "cuda13"),
            ("580.65.06", (7, 0), "cuda12"),  # CUDA 13 dropped Volta
            ("575.57.08", (9, 0), "cuda12"),
            ("525.60.13", (8, 0), "cuda12"),
            ("470.82.01", (8, 0), None),
        ],
    )
    def test_extra_by_driver_and_architecture(self, driver, capability, extra):
        assert Gpu("GPU", driver, capability).extra == extra

    @pytest.mark.parametrize(
        ("answer", "gpu"),
        [
            ("NVIDIA H200, 580.95.05, 9.0\nNVIDIA H200, 580.95.05, 9.0\n", HOPPER),
            ("", None),
            ("No devices were found\n", None),
            ("NVIDIA H200, 580.95.05, [N/A]\n", None),
        ],
    )
    def test_reads_nvidia_smi(self, monkeypatch, answer, gpu):
        monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **__: types.SimpleNamespace(stdout=answer))
        assert doctor.find_gpu() == gpu

    def test_none_without_nvidia_smi(self, monkeypatch):
        monkeypatch.setenv("PATH", "/nonexistent")
        assert doctor.find_gpu() is None

    def test_extras_for_a_gpu_and_no_compiler(self, monkeypatch):
        monkeypatch.setattr(doctor, "find_gpu", lambda: HOPPER)
        monkeypatch.setattr(doctor, "find_compiler", lambda: None)
        assert doctor.suggested_extras() == ["cuda13", "cc"]

    def test_a_gpu_without_cupy_asks_for_the_extra(self, monkeypatch):
        monkeypatch.setattr(doctor, "find_gpu", lambda: HOPPER)
        monkeypatch.setattr(doctor, "distributions", list)
        assert row("CuPy").state == OPTIONAL and row("CuPy").fix.endswith("install 'labkit[cuda13]'")

    def test_two_cupy_wheels_are_told(self, monkeypatch):
        wheels = [types.SimpleNamespace(name=name) for name in ("cupy-cuda13x", "cupy-cuda12x")]
        monkeypatch.setattr(doctor, "find_gpu", lambda: HOPPER)
        monkeypatch.setattr(doctor, "distributions", lambda: wheels)
        assert "cupy-cuda12x and cupy-cuda13x overwrite each other" in row("CuPy").detail
        assert "uninstall --yes cupy-cuda12x cupy-cuda13x && " in row("CuPy").fix

    def test_cupy_that_does_not_fit_the_driver_is_told(self, monkeypatch):
        def refuse(**_):
            raise RuntimeError("CUDA driver version is insufficient\nmore")

        monkeypatch.setattr(doctor, "find_gpu", lambda: HOPPER)
        monkeypatch.setattr(doctor, "distributions", lambda: [types.SimpleNamespace(name="cupy-cuda13x")])
        monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(RawModule=refuse))
        assert row("CuPy").detail.endswith("with driver 580.95.05: CUDA driver version is insufficient")

    @pytest.mark.gpu
    def test_a_real_gpu_is_found(self):
        assert row("GPU").state == OK


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
        "`recorded('h200')` would be ours."
        from labkit import bench, records

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
        assert result.exit_code == 1 and "pip install 'labkit[lab]'" in result.output

    def test_an_installed_package_gives_the_student_a_copy_and_keeps_it(self, monkeypatch, tmp_path):
        (tmp_path / "labkit" / "notebooks").mkdir(parents=True)
        (tmp_path / "labkit" / "notebooks" / "a.ipynb").write_text("original")
        monkeypatch.setattr(catalog, "PACKAGE", tmp_path / "labkit")
        monkeypatch.chdir(tmp_path)
        mine = cli.notebooks() / "a.ipynb"
        assert mine.read_text() == "original" and mine.parent == tmp_path / "labkit-notebooks"
        mine.write_text("my work")
        assert (cli.notebooks() / "a.ipynb").read_text() == "my work"
