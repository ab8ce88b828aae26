"""The repository's address stands in one place, and `labkit badges` writes it to all others."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from labkit import cli
from labkit.course.notebooks import badges, catalog

ROOT = Path(__file__).parents[2]
SOLVED = sorted((ROOT / "notebooks" / "solutions").glob("*.ipynb"))
NOTEBOOKS = [*SOLVED, *sorted((ROOT / "notebooks").glob("*.ipynb"))]
HERE = badges.repository(ROOT)


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def run(*arguments):
    return CliRunner().invoke(cli.app, ["badges", *arguments])


class TestThisRepository:
    def test_all_places_agree(self):
        stale = [page.path.name for page in badges.pages(ROOT, HERE) if page.state]
        assert not stale, f"run: labkit badges (stale: {', '.join(stale)})"

    def test_the_tag_is_that_of_the_version(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert HERE.tag == f"v{project['version']}"
        assert project["urls"]["Repository"] == f"https://github.com/{HERE.name}"

    @pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}-{path.stem}")
    def test_every_notebook_installs_what_is_missing_right_below_its_title(self, path):
        title, install, *others = cells(path)
        assert title["cell_type"] == "markdown" and title["source"][0].startswith("# ")
        assert (install["id"], install["metadata"]) == ("install", {"labkit": {"role": "install"}})
        assert "".join(install["source"]) == HERE.install_cell and not install["outputs"]
        assert not any(cell["id"] == "install" for cell in others)

    def test_nobody_is_told_to_install_another_project_of_the_name(self):
        assert re.search(r'%pip install .*"labkit @ git\+https://github\.com/', HERE.install_cell)
        for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
            assert not re.search(r"pip install '?\"?labkit(\[\w+\])?['\"]?(\s|$)", page.read_text("utf-8"))


class TestCommand:
    @pytest.fixture
    def clone(self, tmp_path, monkeypatch):
        """A clone with two of the notebooks."""
        root = tmp_path / "clone"
        (root / "notebooks" / "solutions").mkdir(parents=True)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, root)
        for path in SOLVED[:2]:
            shutil.copy(path, root / "notebooks" / "solutions")
        monkeypatch.setattr(catalog, "PACKAGE", root / "labkit")
        return root

    def test_writes_the_address_everywhere_once(self, clone):
        first = run("ada/matrices")
        assert first.exit_code == 0
        for name in ("pyproject.toml", "README.md", "notebooks/solutions/01_cpu", "notebooks/01_cpu"):
            assert f"written: {name}" in first.output
        assert badges.repository(clone).name == "ada/matrices"
        for path in [*clone.glob("notebooks/*.ipynb"), *clone.glob("notebooks/solutions/*.ipynb")]:
            (install,) = [cell for cell in cells(path) if cell["id"] == "install"]
            assert f"git+https://github.com/ada/matrices@{HERE.tag}" in "".join(install["source"])
        before = {path: path.stat().st_mtime_ns for path in clone.rglob("*.*")}
        for again in (run("ada/matrices"), run(), run("--check"), run("--tag", HERE.tag)):
            assert again.exit_code == 0 and f"All files name ada/matrices at {HERE.tag}." in again.output
        assert before == {path: path.stat().st_mtime_ns for path in clone.rglob("*.*")}

    def test_badges_open_the_students_notebooks_at_the_tag(self, clone):
        run("ada/matrices")
        readme = (clone / "README.md").read_text()
        colab = re.findall(r"\| (.+) \| \[!\[Open in Colab\]\(.+?\)\]\((.+)\) \|", readme)
        start = f"https://colab.research.google.com/github/ada/matrices/blob/{HERE.tag}/notebooks"
        assert [url for _, url in colab] == [f"{start}/{path.name}" for path in SOLVED[:2]]
        assert [title for title, _ in colab] == ["00 · Start here", "01 · The CPU baseline"]
        binder = f"https://mybinder.org/v2/gh/ada/matrices/{HERE.tag}?urlpath=lab/tree/notebooks/"
        assert f"({binder}00_start_here.ipynb)" in readme

    def test_another_address_leaves_all_else_as_it_was(self, clone):
        run("ada/matrices")
        texts = {path: path.read_text() for path in clone.rglob("*.*") if path.is_file()}
        run("c-3po/the_lab.v2")
        for path, text in texts.items():
            assert path.read_text() == text.replace("ada/matrices", "c-3po/the_lab.v2")

    def test_a_new_cell_counts_as_if_it_had_run(self, clone):
        path = clone / "notebooks" / "solutions" / SOLVED[0].name
        wanted = path.read_text()
        notebook = json.loads(wanted)
        del notebook["cells"][1]
        for cell in notebook["cells"]:
            for counted in [cell, *cell.get("outputs", [])]:
                if counted.get("execution_count"):
                    counted["execution_count"] -= 1
        path.write_text(json.dumps(notebook))
        assert run("--check").exit_code == 1 and run().exit_code == 0
        assert path.read_text() == wanted

    def test_check_writes_nothing(self, clone):
        run("ada/matrices")
        before = {path: path.stat().st_mtime_ns for path in clone.rglob("*.*")}
        result = run("grace/lab", "--check")
        assert result.exit_code == 1 and "stale: README.md" in result.output
        assert before == {path: path.stat().st_mtime_ns for path in clone.rglob("*.*")}

    @pytest.mark.parametrize(
        "name",
        [
            *(
                "",
                "ada",
                "ada/",
                "/lab",
                "a/b/c",
                "ada/lab.git",
                "-ada/lab",
                "ada-/lab",
                "a--b/lab",
                "ada/..",
                "a b/c",
            ),
            *("https://github.com/ada/lab", f"{'a' * 40}/lab", "ada/lab\n", 'ada/lab"', badges.PLACEHOLDER),
        ],
    )
    def test_a_name_that_github_does_not_take_is_told(self, clone, name):
        result = run("--", name)
        assert result.exit_code == 1 and "is no repository of GitHub. Write OWNER/REPO" in result.output
        assert badges.repository(clone).name == HERE.name

    @pytest.mark.parametrize("tag", ["v9.9.9", "0.1.0", "main", ""])
    def test_a_tag_of_another_version_is_told(self, clone, tag):
        result = run("ada/matrices", "--tag", tag)
        assert (
            result.exit_code == 1 and f"is not the tag of this version, which is {HERE.tag}" in result.output
        )
        assert badges.repository(clone).name == HERE.name

    def test_an_installed_labkit_is_no_clone(self, tmp_path, monkeypatch):
        monkeypatch.setattr(catalog, "PACKAGE", tmp_path / "labkit")
        (tmp_path / "labkit" / "notebooks").mkdir(parents=True)
        result = run("ada/matrices")
        assert result.exit_code == 1 and "badges belong into a clone" in result.output

    def test_a_place_that_is_not_there_is_told_before_anything_is_written(self, clone):
        project = (clone / "pyproject.toml").read_text()
        (clone / "README.md").write_text("# labkit\n")
        result = run("ada/matrices")
        assert result.exit_code == 1 and "README.md has no place for badges" in result.output
        assert (clone / "pyproject.toml").read_text() == project
        (clone / "pyproject.toml").write_text(project.replace("Repository =", "Home ="))
        result = run("ada/matrices")
        assert result.exit_code == 1 and "pyproject.toml has no line Repository" in result.output
