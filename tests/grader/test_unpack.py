"""A zip handed to the grader is unpacked, or refused before anything of it is written."""

import stat
import tempfile
import unicodedata
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest
from handed_in_files import LAB_02, LAB_03, answer, notebook
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.intake import unpack
from grader.intake.entries import NoSubmissions, found
from grader.intake.unpack import NotUnpacked, opened

WORK = notebook(answer("02.1", "mine"))


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Where zips are unpacked to."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def zipped(path: Path, *members: str | ZipInfo, content: str = WORK) -> Path:
    """Write a zip of members, all with one content."""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(member, content)
    return path


def students(path: Path) -> list[str]:
    with opened(path) as folder:
        return [entry.student for entry in found(folder)]


def refused(path: Path, place: Path) -> str:
    """What is said of a zip of which nothing is written."""
    before = sorted(place.parent.rglob("*"))
    with pytest.raises(NotUnpacked) as error, opened(path):
        pass
    assert sorted(place.parent.rglob("*")) == before and not list(place.iterdir())
    assert str(path) in str(error.value)
    return str(error.value)


class TestADownload:
    @pytest.mark.parametrize(
        "members",
        [
            (f"doejane_12_100_{LAB_02}", f"roejohn_LATE_13_101_{LAB_02}"),
            (f"Jane Doe_12_assignsubmission_file/{LAB_02}", f"John Roe_13_assignsubmission_file/{LAB_02}"),
            (
                f"a folder/Jane_12_assignsubmission_file/{LAB_02}",
                f"a folder/John_13_assignsubmission_file/{LAB_02}",
            ),
            (
                "export/submission_metadata.yml",
                f"export/submission_1/{LAB_02}",
                f"export/submission_2/{LAB_02}",
            ),
            (f"lab-02-hubot/{LAB_02}", f"lab-02-octocat/{LAB_02}", f"__MACOSX/._{LAB_02}"),
            (f"lab 2/hubot/{LAB_02}", f"lab 2/octocat/{LAB_02}", "__MACOSX/lab 2/._hubot"),
            (f"jane/{LAB_02}", f"jane/{LAB_03}", f"john/{LAB_02}", "john/work.zip"),
        ],
    )
    def test_is_a_folder_of_students_for_a_while(self, tmp_path, place, members):
        assert len(students(zipped(tmp_path / "class.zip", *members))) == 2
        assert not list(place.iterdir())

    def test_of_one_student_is_one(self, tmp_path):
        assert students(zipped(tmp_path / "class.zip", f"jane/{LAB_02}")) == ["jane"]

    def test_a_folder_is_taken_as_it_is(self, tmp_path):
        with opened(tmp_path) as folder:
            assert folder == tmp_path

    def test_files_keep_their_bytes_and_times(self, tmp_path):
        info = ZipInfo(f"jane/{LAB_02}", (2026, 3, 4, 5, 6, 8))
        with opened(zipped(tmp_path / "class.zip", info, f"john/{LAB_02}")) as folder:
            path = folder / "jane" / LAB_02
            assert path.read_text() == WORK
            assert path.stat().st_mtime == unpack.datetime(2026, 3, 4, 5, 6, 8).timestamp()

    @pytest.mark.parametrize("form", ["NFC", "NFD"])
    def test_names_are_read_as_utf_8_where_macos_does_not_say_so(self, tmp_path, form):
        name = unicodedata.normalize(form, "Jörg Müller")
        path = zipped(tmp_path / "class.zip", f"{name}/{LAB_02}", f"john/{LAB_02}")
        assert students(path) == ["Jörg Müller", "john"]
        data = path.read_bytes()
        for sign, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            begin = data.index(sign) + at
            data = data[:begin] + b"\0\0" + data[begin + 2 :]
        path.write_bytes(data)
        assert students(path) == ["Jörg Müller", "john"]

    def test_backslashes_of_windows_are_folders(self, tmp_path):
        info = ZipInfo("x")
        info.filename, info.create_system = f"jane\\{LAB_02}", 0
        assert students(zipped(tmp_path / "class.zip", info, f"john/{LAB_02}")) == ["jane", "john"]

    def test_of_several_downloads_says_so(self, tmp_path, place):
        names = [f"{lab[:2]}/{student}/{lab}" for lab in (LAB_02, LAB_03) for student in ("jane", "john")]
        with pytest.raises(NoSubmissions, match=r"class\.zip has folders .* 02, 03\."):
            students(zipped(tmp_path / "class.zip", *names))
        assert not list(place.iterdir())

    def test_without_submissions_is_named_by_its_own_name(self, tmp_path):
        with pytest.raises(NoSubmissions) as error:
            students(zipped(tmp_path / "class.zip", "list.csv"))
        assert str(tmp_path / "class.zip") in str(error.value) and "labkit-submissions" not in str(
            error.value
        )


class TestRefused:
    @pytest.mark.parametrize(
        "name",
        ["/etc/cron.d/x", "../x", f"jane/../../{LAB_02}", "C:/x", "a/" * 70 + "x", "x" * 300, "//x/y"],
    )
    def test_a_name_that_leads_elsewhere(self, tmp_path, place, name):
        assert "not unpacked" in refused(zipped(tmp_path / "class.zip", f"jane/{LAB_02}", name), place)

    def test_a_name_with_backslashes_that_leads_elsewhere(self, tmp_path, place):
        info = ZipInfo("x")
        info.filename, info.create_system = "..\\x", 0
        refused(zipped(tmp_path / "class.zip", f"jane/{LAB_02}", info), place)

    @pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
    def test_a_link_or_a_device(self, tmp_path, place, kind):
        info = ZipInfo(f"jane/{LAB_02}")
        info.create_system, info.external_attr = 3, (kind | 0o777) << 16
        told = refused(zipped(tmp_path / "class.zip", info, content="/etc/passwd"), place)
        assert LAB_02 in told

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_a_name_that_stands_twice(self, tmp_path, place):
        assert "twice" in refused(zipped(tmp_path / "class.zip", f"jane/{LAB_02}", f"jane/{LAB_02}"), place)
        refused(zipped(tmp_path / "other.zip", "jane", f"jane/{LAB_02}"), place)

    def test_more_than_a_class_hands_in(self, tmp_path, place, monkeypatch):
        path = zipped(tmp_path / "class.zip", f"jane/{LAB_02}", content="0" * 2**20)
        assert students(path) == ["jane"]
        monkeypatch.setattr(unpack, "FEW_BYTES", 2**19)
        refused(path, place)  # it grows by more than MOST_GROWTH
        monkeypatch.setattr(unpack, "FEW_BYTES", 2**21)
        with pytest.raises(NotUnpacked):
            unpack.unpack(path, place, 2**19)
        monkeypatch.setattr(unpack, "MOST_FILES", 0)
        refused(path, place)

    def test_more_than_there_is_room_for(self, tmp_path, place, monkeypatch):
        monkeypatch.setattr(unpack.shutil, "disk_usage", lambda folder: Usage())
        assert "TMPDIR" in refused(zipped(tmp_path / "class.zip", f"jane/{LAB_02}"), place)

    def test_a_file_that_is_larger_than_the_zip_says(self, tmp_path, place):
        path = zipped(tmp_path / "class.zip", f"jane/{LAB_02}", content="0" * 2**20)
        data = path.read_bytes()
        path.write_bytes(data.replace((2**20).to_bytes(4, "little"), (100).to_bytes(4, "little")))
        refused(path, place)

    def test_one_with_a_password(self, tmp_path, place):
        path = zipped(tmp_path / "class.zip", f"jane/{LAB_02}")
        data = bytearray(path.read_bytes())
        for sign, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            data[data.index(sign) + at] |= 1
        path.write_bytes(data)
        assert "encrypted" in refused(path, place)

    def test_half_a_download(self, tmp_path, place):
        path = zipped(tmp_path / "class.zip", f"jane/{LAB_02}", f"john/{LAB_02}")
        data = path.read_bytes()
        for content in (data[: len(data) // 2], b"", data[:60] + b"!!!!" + data[64:]):
            path.write_bytes(content)
            assert "damaged" in refused(path, place)

    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_nothing_else_is_raised_about_a_damaged_one(self, tmp_path, data):
        whole = zipped(tmp_path / "whole.zip", f"jane/{LAB_02}", "müller/a.txt").read_bytes()
        at = data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=8))
        changed = bytearray(whole)
        for place, byte in at:
            changed[place] = byte
        path = tmp_path / "class.zip"
        path.write_bytes(changed)
        with suppress(NotUnpacked), tempfile.TemporaryDirectory() as folder:
            unpack.unpack(BytesIO(bytes(changed)), Path(folder))
        try:
            with opened(path) as folder:
                assert all(each.resolve().is_relative_to(folder) for each in folder.rglob("*"))
        except (NotUnpacked, NoSubmissions) as error:
            assert str(path) in str(error)


class Usage:
    """A disk that is full."""

    free = 10
