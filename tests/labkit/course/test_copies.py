"""Where labkit is installed, a student works in copies of the notebooks, and nothing writes over them."""

import os
import sys

import pytest
from typer.testing import CliRunner

from labkit import cli
from labkit.course.notebooks import catalog


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """The notebooks of an installed labkit; the current folder is an empty one."""
    shipped = tmp_path / "site-packages" / "labkit" / "notebooks"
    (shipped / "solutions").mkdir(parents=True)
    for name in ("01_one.ipynb", "02_two.ipynb"):
        (shipped / name).write_text(f"shipped {name}")
        (shipped / "solutions" / name).write_text("the solution")
    monkeypatch.setattr(catalog, "PACKAGE", shipped.parent)
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return shipped


def test_students_get_their_notebooks_and_no_solutions(installed):
    mine = cli.notebooks()
    assert mine.name == "labkit-notebooks"
    assert sorted(path.name for path in mine.rglob("*.ipynb")) == ["01_one.ipynb", "02_two.ipynb"]


def test_the_glossary_lies_beside_them_and_is_the_newest(installed, capsys):
    for text in ("a term", "a better term"):
        (installed / "glossary.md").write_text(text)
        assert (cli.notebooks() / "glossary.md").read_text() == text
    assert capsys.readouterr().err == ""


def test_their_work_stays(installed, capsys):
    (cli.notebooks() / "01_one.ipynb").write_text("my work")
    assert (cli.notebooks() / "01_one.ipynb").read_text() == "my work"
    assert capsys.readouterr().err == ""


def test_a_changed_notebook_is_told_and_theirs_stays(installed, capsys):
    mine = cli.notebooks()
    (mine / "01_one.ipynb").write_text("my work")
    for name in ("01_one.ipynb", "02_two.ipynb"):
        (installed / name).write_text(f"newer {name}")
    for _ in range(2):
        cli.notebooks()
        assert "has 01_one.ipynb, 02_two.ipynb changed" in capsys.readouterr().err
    assert (mine / "01_one.ipynb").read_text() == "my work"
    assert (mine / "02_two.ipynb").read_text() == "shipped 02_two.ipynb"


def test_a_new_notebook_comes_and_one_moved_away_comes_afresh(installed, capsys):
    mine = cli.notebooks()
    (installed / "01_one.ipynb").write_text("newer")
    (installed / "03_three.ipynb").write_text("the third")
    (mine / "01_one.ipynb").rename(mine.parent / "old.ipynb")
    cli.notebooks()
    assert (mine / "01_one.ipynb").read_text() == "newer"
    assert (mine / "03_three.ipynb").read_text() == "the third"
    assert capsys.readouterr().err == ""


def test_started_within_the_copies_it_takes_these(installed, monkeypatch):
    mine = cli.notebooks()
    monkeypatch.chdir(mine)
    assert cli.notebooks() == mine


@pytest.mark.parametrize("command", ["lab", "run"])
def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(installed, monkeypatch, tmp_path, command):
    folder = tmp_path / "home"
    if os.geteuid():
        folder.chmod(0o500)
    elif sys.platform == "linux":
        monkeypatch.chdir("/sys")  # root, too, makes no folder here
    else:
        pytest.skip("root may write everywhere")
    result = CliRunner().invoke(cli.app, [command])
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert "cannot be copied to" in result.output and "cd ~/cuda" in result.output


def test_a_file_in_its_place_is_named(installed):
    (installed.parents[2] / "home" / "labkit-notebooks").write_text("a file")
    result = CliRunner().invoke(cli.app, ["lab"])
    assert result.exit_code == 1 and "labkit-notebooks (" in result.output
