"""The students' image of a hub, and docs/jupyterhub.md: what it says is what is there.

What needs podman and the image is skipped where they are missing; the page says how to build it.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from traitlets.config import Config

import labkit
from labkit.doctor import machine
from labkit.paths import PACKAGES

ROOT = Path(__file__).parents[2]
HUB = ROOT / "containers" / "hub"
PAGE = (ROOT / "docs" / "jupyterhub.md").read_text()
CONTAINERFILE = (HUB / "Containerfile").read_text()
IMAGE = f"labkit-hub:{labkit.__version__}"
CONFIGS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def configuration(text: str) -> Config:
    """What a jupyterhub_config.py sets."""
    found = Config()
    exec(text, {"get_config": lambda: found})
    return found


class TestContainerfile:
    def test_its_packages_are_pyproject_s(self):
        """The names are extras; requirements.py, which has tests of its own, gives their bounds."""
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        (asked,) = re.findall(r"requirements\.py (.*) >", CONTAINERFILE)
        assert asked.split() == ["lab", "${GPU}"] and "lab" in extras
        assert set(re.findall(r"`(cuda\d+)`", PAGE)) <= set(extras)

    def test_what_it_copies_is_there_and_comes_through_the_ignore_file(self):
        ignored = (HUB / "Containerfile.dockerignore").read_text().splitlines()
        kept = [line[1:] for line in ignored if line.startswith("!")]
        assert all((ROOT / name).exists() for name in kept)
        copied = re.findall(r"^COPY (.*) \./$", CONTAINERFILE, re.MULTILINE)[0].split()
        assert {*copied, "containers/hub/start"} <= set(kept)
        assert "notebooks/solutions" in ignored

    def test_its_command_copies_the_notebooks_once_and_becomes_the_server(self, tmp_path):
        server = tmp_path / "bin" / "jupyterhub-singleuser"
        server.parent.mkdir()
        server.write_text('#!/bin/sh\necho "$PWD" "$@"\n')
        server.chmod(0o755)
        for package in PACKAGES:
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(package, tmp_path / "site" / package.name, ignore=left_out)
        shutil.copytree(ROOT / "notebooks", tmp_path / "site" / "labkit" / "notebooks", dirs_exist_ok=True)
        home = tmp_path / "home"
        home.mkdir()
        env = os.environ | {
            "HOME": str(home),
            "PYTHONPATH": str(tmp_path / "site"),
            "PATH": f"{server.parent}:{Path(sys.executable).parent}:/usr/bin:/bin",
        }
        command = [str(HUB / "start"), "--port", "7"]
        first = home / "labkit-notebooks" / "00_start_here.ipynb"
        for _ in range(2):
            done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
            assert done.stdout == f"{home} --port 7\n", done.stderr
            first.write_text(first.read_text() + "my work")
        assert first.read_text().endswith("my workmy work")
        assert not (first.parent / "solutions").exists()


class TestPage:
    @pytest.mark.parametrize("text", CONFIGS)
    def test_its_configurations_set_what_they_mean(self, text):
        found = configuration(text)
        assert {"JupyterHub", "Spawner", "Authenticator"} <= set(found)
        page = Path(found.Spawner.default_url)
        assert (
            page.parent == Path("/lab/tree/labkit-notebooks") and (ROOT / "notebooks" / page.name).is_file()
        )

    def test_the_names_are_those_of_the_image(self):
        trial, course = map(configuration, CONFIGS)
        assert course.DockerSpawner.image == IMAGE and PAGE.count("labkit-hub:") == PAGE.count(IMAGE)
        (command,) = re.findall(r'^CMD \["(.*)"\]$', CONTAINERFILE, re.MULTILINE)
        assert trial.Spawner.cmd == [command] and f"/usr/local/bin/{command}" in CONTAINERFILE
        (home,) = re.findall(r"^WORKDIR (/home/.*)$", CONTAINERFILE, re.MULTILINE)
        assert list(course.DockerSpawner.volumes.values()) == [home]

    def test_its_limit_of_memory_is_enough_for_the_doctor(self):
        limit = configuration(CONFIGS[1]).DockerSpawner.mem_limit
        assert int(limit.removesuffix("G")) * 2**30 > machine.FEW_BYTES

    def test_what_it_names_is_there(self):
        arguments = set(re.findall(r"^ARG (\w+)", CONTAINERFILE, re.MULTILINE))
        assert set(re.findall(r"^\| `([A-Z]+)`", PAGE, re.MULTILINE)) == arguments
        for name in re.findall(r"(?:containers|benchmarks|docs)/[\w/.]+\w", PAGE):
            assert (ROOT / name).exists(), name


@cache
def why_not() -> str:
    """Why the image cannot be tried here."""
    if not shutil.which("podman"):
        return "needs podman"
    found = subprocess.run(["podman", "image", "exists", f"localhost/{IMAGE}"]).returncode
    return f"needs the image {IMAGE}: docs/jupyterhub.md has the command" if found else ""


@pytest.mark.slow
class TestImage:
    @pytest.fixture(autouse=True)
    def image(self):
        if why_not():
            pytest.skip(why_not())

    def run(self, command: str) -> str:
        """What a shell prints in a container with the page's limit of memory, without a network."""
        limits = ["--memory=3g", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"]
        words = ["podman", "run", "--rm", *limits, f"localhost/{IMAGE}", "sh", "-c", command]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def test_a_student_cannot_change_labkit_and_finds_no_solutions(self):
        shown = self.run(
            "id -un; test -w /opt/labkit || echo read-only; find / -name solutions -path '*labkit*' 2>&-; :"
        )
        assert shown.split() == ["jovyan", "read-only"]

    def test_the_hub_s_server_is_there(self):
        assert re.fullmatch(r"5\.\d+\.\d+\n", self.run("jupyterhub-singleuser --version"))

    def test_a_notebook_runs(self):
        assert re.search(r"00_start_here .* ok ", self.run("labkit run 00"))
