"""Build small programs of the tests' own, and run them without a GPU."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from simt.programs import toolkit

ROOT = Path(__file__).parents[3]
SECONDS = 100  # that a run may take on a busy machine


@dataclass(frozen=True)
class Program:
    """A built program."""

    path: Path

    def start(self, *arguments, **environment):
        """Start it, with variables added to the environment."""
        return subprocess.Popen(
            [self.path, *arguments],
            env=os.environ | {"LABKIT_DEVICE": "simt"} | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.path.parent,
        )

    def run(self, *arguments, **environment):
        """Run it; return its output, its messages and its exit code."""
        process = self.start(*arguments, **environment)
        out, told = process.communicate(timeout=SECONDS)
        return out, told, process.returncode


@pytest.fixture(scope="module")
def nvcc(tmp_path_factory):
    """Return a function that runs `labkit nvcc` in a folder of files; skip where nothing builds."""
    try:
        toolkit.toolkit()
        toolkit.host_compiler()
    except toolkit.NoCompiler as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("program")

    def run(*arguments, **files):
        for name, text in files.items():
            (folder / name.replace("_", ".")).write_text(text)
        call = [sys.executable, "-m", "labkit", "nvcc", *arguments]
        done = subprocess.run(
            call, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
        assert not done.returncode, done.stdout + done.stderr
        return folder

    return run


@pytest.fixture
def program_at():
    """Return what makes a Program of a path."""
    return Program


@pytest.fixture(scope="module")
def built(nvcc):
    """Return a function that builds one source and returns the Program."""

    def build(source, *options):
        return Program(nvcc(*options, "main.cu", "-o", "main", main_cu=source) / "main")

    return build
