"""Submissions are read as JSON alone: whose they are, which cell answers what; nothing hostile gets in."""

import hashlib
import json
import os
import re
import socket
from pathlib import Path

import pytest
from handed_in_files import stub
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.intake import submissions
from grader.intake.submissions import Entry, NoSubmissions, found, labs_of_class, overlooked
from grader.model import Answer, Submission
from labkit.course import EXERCISES

RELEASED = ("02_naive_cuda.ipynb", "03_shared_memory_tiling.ipynb", "09_when_kernels_break.ipynb")
KERNEL = 'extern "C" __global__ void matmul() {}\n'


def code(source, exercise=None, role="answer"):
    metadata = {"labkit": {"exercise": exercise, "role": role}} if exercise else {}
    return {
        "cell_type": "code",
        "source": source,
        "metadata": metadata,
        "outputs": [],
        "execution_count": None,
    }


def notebook(*cells):
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def put(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook(*cells))
    return path


def read(path):
    return submissions.read(Entry("somebody", (path,)), EXERCISES, RELEASED)


def answer_of(tmp_path, *cells, exercise="02.1"):
    return read(put(tmp_path / "somebody" / "02_naive_cuda.ipynb", *cells)).answers[exercise]


class TestWhoseItIs:
    def students(self, folder):
        return {entry.student: entry for entry in found(folder)}

    def test_folders_and_notebooks_are_called_as_their_students(self, tmp_path):
        put(tmp_path / "jane" / "02" / "02_naive_cuda.ipynb")
        put(tmp_path / "john.ipynb")
        (tmp_path / "class.csv").write_text("jane\njohn\n")
        put(tmp_path / ".ipynb_checkpoints" / "x.ipynb")
        put(tmp_path / "__MACOSX" / "x.ipynb")
        assert list(self.students(tmp_path)) == ["jane", "john"]
        assert [file.name for file in overlooked(tmp_path)] == ["class.csv"]

    def test_files_of_one_student_from_canvas_belong_together(self, tmp_path):
        put(tmp_path / "doejane_12345_67890_02_naive_cuda-1.ipynb", code("%%cuda 02.1\n" + KERNEL))
        put(
            tmp_path / "doejane_LATE_12345_67891_03_shared_memory_tiling.ipynb",
            code("%%cuda 03.1\n" + KERNEL),
        )
        (tmp_path / "doejane_12345_67892_notes.pdf").write_bytes(b"%PDF")
        put(tmp_path / "müllerjörg_777_67893_02_naive_cuda.ipynb")
        students = self.students(tmp_path)
        assert list(students) == ["doejane", "müllerjörg"]
        assert students["doejane"].identity == {"ID": "12345"}
        jane = submissions.read(students["doejane"], EXERCISES, RELEASED)
        assert jane.labs == ("02", "03") and jane.answers["03.1"].source == "%%cuda 03.1\n" + KERNEL
        assert set(jane.files) == {"02_naive_cuda-1.ipynb", "03_shared_memory_tiling.ipynb"}
        assert jane.problems == ("notes.pdf is no notebook (.ipynb); it was not read.",)
        assert jane.identity == {"ID": "12345"}

    def test_anonymous_files_from_canvas(self, tmp_path):
        put(tmp_path / "anon_Xk3fP_67890_02_naive_cuda.ipynb")
        put(tmp_path / "LATE_anon_Xk3fP_67891_03_shared_memory_tiling.ipynb")
        (entry,) = found(tmp_path)
        assert entry.student == "anon_Xk3fP" and len(entry.paths) == 2

    @pytest.mark.parametrize("end", ["", "_"])
    def test_folders_from_moodle(self, tmp_path, end):
        put(tmp_path / f"Jane van der Doe_12345_assignsubmission_file{end}" / "02_naive_cuda.ipynb")
        (tmp_path / f"Jane van der Doe_12345_assignsubmission_onlinetext{end}").mkdir()
        (entry,) = found(tmp_path)
        assert (entry.student, entry.identity) == ("Jane van der Doe", {"Identifier": "Participant 12345"})
        assert submissions.read(entry, EXERCISES, RELEASED).labs == ("02",)

    def test_a_name_in_moodle_may_begin_like_a_hidden_file(self, tmp_path):
        put(tmp_path / ".Jane_12_assignsubmission_file" / "02_naive_cuda.ipynb")
        put(tmp_path / "._Jane_12_assignsubmission_file_02_naive_cuda.ipynb")
        (entry,) = found(tmp_path)
        assert entry.student == ".Jane" and len(entry.paths) == 1

    def test_files_from_moodle(self, tmp_path):
        put(tmp_path / "Jane Doe_12345_assignsubmission_file_02_naive_cuda.ipynb")
        put(tmp_path / "Participant_9_assignsubmission_file_02_naive_cuda.ipynb")
        students = self.students(tmp_path)
        assert list(students) == ["Jane Doe", "Participant 9"]
        assert list(submissions.read(students["Jane Doe"], EXERCISES, RELEASED).files) == [
            "02_naive_cuda.ipynb"
        ]

    @pytest.mark.parametrize(
        "hostile",
        [
            "Bob_222_assignsubmission_file_111_assignsubmission_file_",
            "x_222_assignsubmission_111_assignsubmission_file_",
            "Bob_222_assignsubmission_file__111_assignsubmission_file",
            "B_222_assignsubmission_onlinetext_y_111_assignsubmission_file_",
        ],
    )
    def test_a_name_that_holds_anothers_number_is_nobodys(self, tmp_path, hostile):
        put(tmp_path / "Bob_222_assignsubmission_file_" / "02_naive_cuda.ipynb")
        put(tmp_path / hostile / "02_naive_cuda.ipynb")
        bob, other = sorted(found(tmp_path), key=lambda entry: entry.student != "Bob")
        assert bob.identity == {"Identifier": "Participant 222"} and bob.problems == ()
        assert len(bob.paths) == 1 and other.problems[-1].startswith("Its name has the numbers of several")
        assert set(other.identity.values()) == {f"in doubt: {other.student}"}

    @pytest.mark.parametrize(
        "names",
        [
            ("doejane_11_1_a.ipynb", "roejohn_11_2_a.ipynb"),
            ("Jane_11_assignsubmission_file_", "John_11_assignsubmission_file_"),
        ],
    )
    def test_a_number_of_two_students_is_nobodys(self, tmp_path, names):
        for name in names:
            put(tmp_path / name / "a.ipynb" if name.endswith("_") else tmp_path / name)
        for entry in found(tmp_path):
            assert "2 submissions have the" in entry.problems[0]
            assert set(entry.identity.values()) == {f"in doubt: {entry.student}"}

    def test_years_in_names_of_files_do_not_mix_students_up(self, tmp_path):
        for name in ("jane", "john"):
            put(tmp_path / f"{name}_2026_11_02_naive_cuda.ipynb")
        assert list(self.students(tmp_path)) == ["jane", "john"]

    def test_equal_names_are_told_apart(self, tmp_path):
        put(tmp_path / "jane" / "a.ipynb")
        put(tmp_path / "jane.ipynb")
        put(tmp_path / "Jos\u00e9" / "a.ipynb")
        put(tmp_path / "Jose\u0301" / "a.ipynb")
        put(tmp_path / "wang_11_1_a.ipynb")
        put(tmp_path / "wang_12_2_a.ipynb")
        students = self.students(tmp_path)
        assert list(students) == ["José", "José (2)", "jane", "jane (2)", "wang (11)", "wang (12)"]
        assert len({entry.paths for entry in students.values()}) == 6
        assert students["jane (2)"].problems == ("2 submissions are called jane; this is jane.ipynb.",)
        assert students["wang (12)"].identity == {"ID": "12"}
        assert not students["wang (12)"].problems  # the number tells who it is

    def test_a_name_that_is_taken_is_not_given_again(self, tmp_path):
        for name in ("jane.ipynb", "jane (2).ipynb"):
            put(tmp_path / name)
        put(tmp_path / "jane" / "a.ipynb")
        assert list(self.students(tmp_path)) == ["jane", "jane (2)", "jane (3)"]

    def test_names_are_printable(self, tmp_path):
        names = [
            b"a\nb",
            b"-rf",
            b"=1+1",
            b"\xff\xfe",
            "李\u3000明".encode(),
            "\u202egnp".encode(),
            b" ",
            b"x" * 255,
        ]
        for name in names:
            put(tmp_path / os.fsdecode(name) / "02_naive_cuda.ipynb", code("%%cuda 02.1\n" + KERNEL))
        students = self.students(tmp_path)
        assert set(students) == {
            *("a\\nb", "-rf", "=1+1", "\\udcff\\udcfe", "李 明", "\\u202egnp", " ", "x" * 255)
        }
        for entry in students.values():
            assert submissions.read(entry, EXERCISES, RELEASED).answers["02.1"].source

    def test_a_folder_without_submissions_is_an_error(self, tmp_path):
        (tmp_path / "class.csv").touch()
        with pytest.raises(NoSubmissions, match="no submission in"):
            found(tmp_path)
        with pytest.raises(NoSubmissions, match="cannot be read: No such file"):
            found(tmp_path / "nowhere")
        with pytest.raises(NoSubmissions, match="cannot be read: Not a directory"):
            found(tmp_path / "class.csv")


class TestHostileFiles:
    def test_a_link_is_not_followed(self, tmp_path):
        secret = put(tmp_path / "solutions" / "02_naive_cuda.ipynb", code("%%cuda 02.1\n" + KERNEL))
        student = tmp_path / "class" / "eve"
        put(student / "real.ipynb")
        (student / "02_naive_cuda.ipynb").symlink_to(secret)
        (student / "more").symlink_to(secret.parent)
        (tmp_path / "class" / "mallory").symlink_to(secret.parent)
        (tmp_path / "class" / "oscar.ipynb").symlink_to(secret)
        for entry in found(tmp_path / "class"):
            submission = submissions.read(entry, EXERCISES, RELEASED)
            assert not submission.answers["02.1"].source
            assert any(
                "is a link to another place; it was not followed." in each for each in submission.problems
            )

    def test_a_link_that_takes_the_place_of_a_file_is_not_opened(self, tmp_path):
        put(tmp_path / "secret", code("%%cuda 02.1\n" + KERNEL))
        (tmp_path / "02_naive_cuda.ipynb").symlink_to(tmp_path / "secret")
        with pytest.raises(submissions._Unreadable, match="cannot be read"):
            submissions._bytes(tmp_path / "02_naive_cuda.ipynb", 2**20)

    def test_pipes_and_sockets_do_not_stop_the_reader(self, tmp_path):
        student = tmp_path / "eve"
        put(student / "03_shared_memory_tiling.ipynb", code("%%cuda 03.1\n" + KERNEL))
        os.mkfifo(student / "02_naive_cuda.ipynb")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.relpath(student / "09.ipynb"))
        submission = read(student)
        assert submission.answers["03.1"].source and submission.labs == ("02", "03", "09")
        assert "02_naive_cuda.ipynb is no plain file; it was not read." in submission.problems
        assert any(problem.startswith("09.ipynb cannot be read") for problem in submission.problems)

    def test_a_notebook_of_100_mb_is_not_read(self, tmp_path):
        path = tmp_path / "eve" / "02_naive_cuda.ipynb"
        put(path)
        with path.open("r+b") as file:
            file.truncate(100 * 2**20)
        submission = read(path.parent)
        assert submission.problems == ("02_naive_cuda.ipynb has 100 MiB, more than 64 MiB; it was not read.",)
        assert submission.files == {"02_naive_cuda.ipynb": ""} and submission.labs == ("02",)

    def test_a_submission_has_a_most_of_bytes(self, tmp_path):
        large = code("%%cuda 03.1\n" + KERNEL) | {"outputs": ["x" * 26 * 2**20]}
        for number in range(5):
            put(tmp_path / "eve" / f"a{number}.ipynb", large)
        submission = read(tmp_path / "eve")
        assert len([*filter(None, submission.files.values())]) == 4
        assert "the notebooks have more than 128 MiB together" in submission.problems[0]

    def test_of_many_notebooks_those_of_the_course_are_read(self, tmp_path):
        for number in range(60):
            put(tmp_path / "eve" / f"{number:02}" / "copy.ipynb")
        put(tmp_path / "eve" / "zz" / "02_naive_cuda.ipynb", code("%%cuda 02.1\n" + KERNEL))
        submission = read(tmp_path / "eve")
        assert submission.answers["02.1"].source and len([*filter(None, submission.files.values())]) == 50
        assert sum("more than 50 notebooks" in file.why for file in submission.found) == 11

    def test_a_folder_of_too_many_files_is_left(self, tmp_path, monkeypatch):
        monkeypatch.setattr(submissions, "MOST_FILES", 20)
        put(tmp_path / "eve" / "02_naive_cuda.ipynb", code("%%cuda 02.1\n" + KERNEL))
        (tmp_path / "eve" / "venv").mkdir()
        for number in range(30):
            (tmp_path / "eve" / "venv" / str(number)).touch()
        submission = read(tmp_path / "eve")
        assert submission.answers["02.1"].source
        assert submission.problems == ("eve has more than 20 files; not all were looked at.",)

    def test_deep_folders_come_to_an_end(self, tmp_path):
        deep = tmp_path / "eve" / "/".join("abcdefgh")
        put(deep / "02_naive_cuda.ipynb", code("%%cuda 02.1\n" + KERNEL))
        assert read(tmp_path / "eve").problems == ("a/b/c/d/e lies 5 folders deep; it was not looked into.",)

    def test_a_folder_that_may_not_be_read_is_told(self, tmp_path):
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        put(tmp_path / "eve" / "secret" / "a.ipynb")
        (tmp_path / "eve" / "secret").chmod(0)
        assert "secret cannot be read: Permission denied." in read(tmp_path / "eve").problems
        (tmp_path / "eve" / "secret").chmod(0o700)

    def test_files_that_are_kept_are_few(self, tmp_path):
        put(tmp_path / "eve" / "zz.ipynb", code("%%cuda 02.1\n" + KERNEL))
        for number in range(submissions.MOST_FOUND + 50):
            (tmp_path / "eve" / f"{number}.txt").touch()
        submission = read(tmp_path / "eve")
        assert len(submission.found) == submissions.MOST_FOUND + 1 and submission.answers["02.1"].source
        assert "51 more files" in submission.found[-1].why

    def test_problems_are_few(self, tmp_path):
        for number in range(60):
            (tmp_path / "eve").mkdir(exist_ok=True)
            (tmp_path / "eve" / f"{number}.ipynb").symlink_to(tmp_path)
        problems = read(tmp_path / "eve").problems
        assert len(problems) == 21 and problems[-1] == "There are 40 more such problems."


class TestHostileJson:
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "it is empty"),
            (b"what?", "it is not JSON (Expecting value: line 1 column 1 (char 0))"),
            (b"\x80\x04K\x01.", "it is not JSON (byte 0 is not utf-8)"),
            (b'{"cells": [' + b"[" * 200_000, "it is not JSON (it nests too deep)"),
            (b'{"cells": [], "n": ' + b"9" * 5000 + b"}", "it is not JSON (Exceeds the limit (4300 digits)"),
            (b"[1, 2]", "it has no cells"),
            (b'{"worksheets": []}', "it is of the old format 3"),
            (b'{"cells": {"0": {}}}', "it has no cells"),
            (b"null", "it has no cells"),
        ],
    )
    def test_what_is_no_notebook_is_told(self, tmp_path, content, reason):
        path = tmp_path / "eve" / "02_naive_cuda.ipynb"
        path.parent.mkdir()
        path.write_bytes(content)
        submission = read(path.parent)
        (problem,) = submission.problems
        assert problem.startswith("02_naive_cuda.ipynb is not a notebook: ") and reason in problem
        assert len(problem) < 200 and submission.labs == ("02",)
        assert submission.files == {"02_naive_cuda.ipynb": hashlib.sha256(content).hexdigest()}
        answer = submission.answers["02.1"]
        assert not answer.source and answer.open

    def test_memory_that_json_takes_is_bounded(self, tmp_path):
        path = tmp_path / "02_naive_cuda.ipynb"
        path.write_bytes(b'{"cells": [' + b"{}," * 3_000_000 + b"{}]}")
        assert "more than 4,000,000 values" in read(path).problems[0]

    def test_other_encodings_and_numbers_that_are_none_are_read(self, tmp_path):
        text = notebook(code("%%cuda 02.1\n" + KERNEL)).replace("null", "NaN")
        path = tmp_path / "a.ipynb"
        for encoding in ("utf-8-sig", "utf-16", "utf-32"):
            path.write_bytes(text.encode(encoding))
            assert read(path).answers["02.1"].source == "%%cuda 02.1\n" + KERNEL

    def test_cells_that_are_none_cost_themselves_alone(self, tmp_path):
        right = code("%%cuda 02.1\n" + KERNEL)
        wrong = [None, 3, "%%cuda 02.2", [], {"cell_type": "code", "source": 7}, code([1, "%%cuda 02.3"])]
        odd = [{"cell_type": ["code"], "source": "%%cuda 02.4"}, code("x = 1") | {"metadata": "labkit"}]
        odd += [code("x = 1") | {"metadata": {"labkit": {"role": "answer", "exercise": [["02.2"]]}}}, {}]
        submission = read(put(tmp_path / "a.ipynb", *wrong, right, *odd))
        assert submission.problems == ("a.ipynb has 6 cells that are none; they were left out.",)
        assert {id for id, answer in submission.answers.items() if answer.source} == {"02.1"}

    def test_texts_have_neither_nul_nor_half_letters(self, tmp_path):
        answer = answer_of(tmp_path, code("%%cuda 02.1\r\n// \0 \ud800 \U0001f600 \rint i;"))
        assert answer.source == "%%cuda 02.1\n// \ufffd \ufffd \U0001f600 \nint i;"

    def test_an_answer_has_a_most_of_bytes(self, tmp_path):
        long = answer_of(tmp_path, code("%%cuda 02.1\n" + "é" * 2**17))
        why = "The cell of 02.1 is longer than 256 KiB and was not taken."
        assert long == Answer("02.1", "", why, why)
        assert answer_of(tmp_path, code("%%cuda 02.1\n" + "x" * (2**18 - 12))).source

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_no_json_is_raised_about(self, tmp_path, data):
        keys = st.sampled_from(
            ["cells", "cell_type", "source", "metadata", "labkit", "exercise", "role", "code", "answer"]
        )
        texts = st.sampled_from(["%%cuda 02.1", "%%answer 09.3\nx", "\n", "code", "answer", "02.1", "%%c"])
        leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | texts
        trees = st.recursive(
            leaves,
            lambda inner: st.lists(inner) | st.dictionaries(keys, inner),
            max_leaves=40,
        )
        path = tmp_path / "02_naive_cuda.ipynb"
        path.write_text(json.dumps(data.draw(trees | st.lists(trees).map(lambda cells: {"cells": cells}))))
        assert_sound(read(path))

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(content=st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "ignore")))
    def test_no_bytes_are_raised_about(self, tmp_path, content):
        path = tmp_path / "02_naive_cuda.ipynb"
        path.write_bytes(content)
        assert_sound(read(path))


def assert_sound(submission):
    """What the rest of grading relies on."""
    assert set(submission.answers) == set(EXERCISES) and set(submission.labs) <= {"02", "09"}
    for id, answer in submission.answers.items():
        assert answer.exercise == id and (answer.source or answer.note)
        assert not answer.source or re.match(r"%%(cuda|c|answer) .*\n", answer.source)
        answer.source.encode()
    assert all(problem.endswith(".") for problem in submission.problems)


class TestWhichCellAnswers:
    def test_that_with_its_magic_line_whatever_the_metadata_say(self, tmp_path):
        assert answer_of(tmp_path, code(["%%cuda 02.1 -D TILE=16\n", KERNEL])) == Answer(
            "02.1", "%%cuda 02.1 -D TILE=16\n" + KERNEL
        )
        cells = [code("%%cuda 02.2\nfirst", "02.1"), code("%%cuda 02.1\nsecond", "02.2")]
        assert answer_of(tmp_path, *cells).source == "%%cuda 02.1\nsecond"
        assert answer_of(tmp_path, *cells, exercise="02.2").source == "%%cuda 02.2\nfirst"

    def test_the_magic_of_another_language_is_left_to_the_judge(self, tmp_path):
        assert answer_of(tmp_path, code("%%c 02.1\nvoid f() {}", "02.1")) == Answer(
            "02.1", "%%c 02.1\nvoid f() {}"
        )
        assert (
            answer_of(tmp_path, code("%%answer 02.1\nimport numpy")).source == "%%answer 02.1\nimport numpy"
        )

    @pytest.mark.parametrize(
        ("above", "indent"),
        [("", ""), ("\n  \n", ""), ("%%time\n", ""), ("// mine\n# mine\n\n", ""), ("", "    "), ("\n", "\t")],
    )
    def test_lines_above_the_magic_and_its_indentation_are_dropped(self, tmp_path, above, indent):
        cell = code(f"{above}{indent}%%answer 09.3\n{indent}def f():\n{indent}    return 1")
        assert answer_of(tmp_path, cell, exercise="09.3").source == "%%answer 09.3\ndef f():\n    return 1"

    @pytest.mark.parametrize(
        ("was", "becomes"),
        [
            ("%%cuda mine -D TILE=16", "%%cuda 02.1 -D TILE=16"),
            ("%%cuda -D TILE=16 mine --fmad=false", "%%cuda 02.1 -D TILE=16 --fmad=false"),
            ("%%cuda", "%%cuda 02.1"),
            ("%%cuda 2.1", "%%cuda 02.1"),
            ("%%c exercise1", "%%c 02.1"),
        ],
    )
    def test_a_renamed_cell_is_known_by_its_metadata(self, tmp_path, was, becomes):
        answer = answer_of(tmp_path, code(f"{was}\n{KERNEL}", "02.1"))
        assert answer.source == f"{becomes}\n{KERNEL}"
        assert answer.note == f"The cell of 02.1 was renamed: it began with {was}."

    @pytest.mark.parametrize("above", ["", "%%writefile x.cu\n", "\n%%gpu 02.1\n"])
    def test_a_magic_line_that_is_missing_is_added(self, tmp_path, above):
        answer = answer_of(tmp_path, code(above + KERNEL, "02.1"))
        assert answer.source == "%%cuda 02.1\n" + KERNEL
        assert answer.note == "The magic line %%cuda 02.1 was missing; it was added."
        answer = answer_of(tmp_path, code("def f(): pass", "09.3"), exercise="09.3")
        assert answer.source == "%%answer 09.3\ndef f(): pass"

    def test_neither_is_no_answer(self, tmp_path):
        cells = [
            *(
                code("%%cuda mine\n" + KERNEL),
                code(KERNEL, "99.1"),
                code('labkit.check("02.1")', "02.1", "check"),
            ),
            code("x = '''\n%%cuda 02.1\n'''"),
            code("%%cuda 02.2\n" + KERNEL),
        ]
        assert answer_of(tmp_path, *cells) == Answer("02.1", "", "There is no cell that answers 02.1.")

    def test_an_empty_cell_is_told(self, tmp_path):
        assert answer_of(tmp_path, code(" \n", "02.1")) == Answer("02.1", "", "The cell of 02.1 is empty.")


class TestSeveralCells:
    def test_equal_ones_are_one(self, tmp_path):
        cell = code("%%cuda 02.1\n" + KERNEL, "02.1")
        assert answer_of(tmp_path, cell, cell) == Answer("02.1", "%%cuda 02.1\n" + KERNEL)
        assert not answer_of(tmp_path, cell, code(KERNEL, "02.1")).note

    def test_the_last_with_a_magic_line_counts(self, tmp_path):
        cells = [code(f"%%cuda 02.1\n{number}") for number in range(3)]
        answer = answer_of(tmp_path, *cells)
        assert answer == Answer("02.1", "%%cuda 02.1\n2", "3 cells answer 02.1; the last one counts.")

    def test_of_a_split_cell_the_part_with_the_magic_line_counts(self, tmp_path):
        answer = answer_of(tmp_path, code("%%cuda 02.1\nfirst half", "02.1"), code("second half", "02.1"))
        assert answer.source == "%%cuda 02.1\nfirst half"
        assert (
            answer.note
            == "02.1 is split into several cells; only what stands with its magic line was judged."
        )

    def test_without_any_magic_line_the_last_counts(self, tmp_path):
        answer = answer_of(tmp_path, code("first", "02.1"), code("second", "02.1"), code("", "02.1"))
        assert answer.source == "%%cuda 02.1\nsecond"
        assert "was missing; it was added. 2 cells answer 02.1; the last one counts." in answer.note

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(order=st.permutations(range(8)), doubled=st.lists(st.integers(0, 7)))
    def test_whatever_the_order_of_exercises_each_gets_its_own(self, tmp_path, order, doubled):
        ids = sorted(EXERCISES)[5:13]
        cells = [
            code(f"%%{EXERCISES[ids[at]].magic} {ids[at]}\ntext of {ids[at]}") for at in [*order, *doubled]
        ]
        answers = read(put(tmp_path / "a.ipynb", *cells)).answers
        for id in ids:
            assert answers[id] == Answer(id, f"%%{EXERCISES[id].magic} {id}\ntext of {id}")


class TestSeveralNotebooks:
    def test_that_with_the_released_name_counts(self, tmp_path):
        put(tmp_path / "jane" / "02_naive_cuda.ipynb", code("%%cuda 02.1\nreleased"))
        put(tmp_path / "jane" / "Copy of 02_naive_cuda.ipynb", code("%%cuda 02.1\ncopy"))
        put(tmp_path / "jane" / "zz" / "03_shared_memory_tiling.ipynb", code("%%cuda 02.1\nscratch"))
        answer = read(tmp_path / "jane").answers["02.1"]
        assert answer.source == "%%cuda 02.1\nreleased"
        assert answer.note == "3 notebooks answer 02.1 in different ways; 02_naive_cuda.ipynb counts."

    def test_else_the_last_by_name(self, tmp_path):
        for number in (2, 10):
            put(tmp_path / "jane" / f"lab ({number}).ipynb", code(f"%%cuda 02.1\n{number}"))
        assert read(tmp_path / "jane").answers["02.1"].source == "%%cuda 02.1\n10"

    def test_equal_answers_need_no_words(self, tmp_path):
        for number in range(2):
            put(tmp_path / "jane" / f"{number}.ipynb", code("%%cuda 02.1\nsame"))
        assert read(tmp_path / "jane").answers["02.1"] == Answer("02.1", "%%cuda 02.1\nsame")

    def test_one_without_an_answer_does_not_hide_another(self, tmp_path):
        put(tmp_path / "jane" / "02_naive_cuda.ipynb", code("", "02.1"))
        put(tmp_path / "jane" / "mine.ipynb", code("%%cuda 02.1\nmine"))
        assert read(tmp_path / "jane").answers["02.1"].source == "%%cuda 02.1\nmine"

    def test_a_broken_one_does_not_hide_another(self, tmp_path):
        put(tmp_path / "jane" / "02_naive_cuda.ipynb", code("%%cuda 02.1\nmine"))
        (tmp_path / "jane" / "03_shared_memory_tiling.ipynb").write_text("{")
        submission = read(tmp_path / "jane")
        assert submission.answers["02.1"].source and submission.labs == ("02", "03")

    def test_names_that_look_alike_are_told_apart(self, tmp_path):
        for name in ("Jos\u00e9.ipynb", "Jose\u0301.ipynb"):
            put(tmp_path / "jane" / name, code(f"%%cuda 02.1\n{len(name)}"))
        assert set(read(tmp_path / "jane").files) == {"José.ipynb", "José.ipynb (2)"}


class TestLabs:
    @pytest.mark.parametrize(
        ("name", "labs"),
        [
            ("02_naive_cuda.ipynb", ("02",)),
            ("02-mine.ipynb", ("02",)),
            ("02.ipynb", ("02",)),
            ("Copy of Copy of 02_naive_cuda.ipynb", ("02",)),
            ("2_naive_cuda.ipynb", ()),
            ("99_other.ipynb", ()),
            ("mine_02.ipynb", ()),
        ],
    )
    def test_are_known_by_the_name(self, tmp_path, name, labs):
        assert read(put(tmp_path / name)).labs == labs

    def test_of_a_class_are_those_that_half_of_it_answers(self):
        def of(*ids):
            return Submission("x", answers={id: Answer(id, f"%%cuda {id}\nwork") for id in ids})

        unreadable = [Submission(f"broken {at}", labs=("09",)) for at in range(9)]
        class_of = labs_of_class(
            [*unreadable, of("02.1", "02.2"), of("02.1", "03.1"), of("03.4", "09.3"), of("02.1")]
        )
        assert (class_of.of_half, class_of.answering) == (("02", "03"), 4)
        assert class_of.counts == {"02": 3, "03": 2, "09": 1}
        assert labs_of_class([]).of_half == ()

    def test_of_a_class_do_not_have_those_that_are_as_handed_out(self):
        untouched = {id: Answer(id, "".join(stub(id)["source"])) for id in ("02.1", "03.1")}
        worked = untouched | {"02.1": Answer("02.1", "%%cuda 02.1\nwork")}
        class_of = [Submission("x", answers=worked), Submission("y", answers=worked)]
        assert labs_of_class(class_of).of_half == ("02",)
        assert labs_of_class([Submission("x", answers=untouched)]).of_half == ("02", "03")


def test_the_solved_notebooks_are_a_submission_that_answers_everything():
    folder = Path(__file__).parents[2] / "notebooks" / "solutions"
    submission = submissions.read(Entry("teacher", (folder,)), EXERCISES, RELEASED)
    assert submission.problems == () and len(submission.labs) == 15
    for id, answer in submission.answers.items():
        assert answer.source.startswith(f"%%{EXERCISES[id].magic} {id}") and not answer.note


class TestLabsOfNotebooks:
    """A lab's exercises may stand in several notebooks, and have stood in others."""

    def test_two_notebooks_of_a_lab_are_both_read(self, tmp_path):
        put(tmp_path / "05b_when_kernels_break.ipynb", code("%%cuda 09.1\nint a;", "09.1"))
        put(tmp_path / "09_name_the_limit.ipynb", code("%%answer 09.8\nb = 1", "09.8"))
        submission = submissions.read(Entry("jane", (tmp_path,)), EXERCISES, RELEASED)
        assert submission.labs == ("09",) and not submission.problems
        assert all(submission.answers[exercise].source for exercise in ("09.1", "09.8"))

    def test_a_notebook_of_an_earlier_edition_is_of_its_lab(self, tmp_path):
        put(tmp_path / "13_whole_program.ipynb", code("%%program 13.1\nint main() {}", "13.1"))
        submission = submissions.read(Entry("jane", (tmp_path,)), EXERCISES, RELEASED)
        assert submission.labs == ("13",) and submission.answers["13.1"].source

    def test_an_unreadable_notebook_opens_the_lab_whose_exercises_it_has(self, tmp_path):
        put(tmp_path / "05_bank_conflicts.ipynb", code("%%cuda 05.1\nint a;", "05.1"))
        (tmp_path / "05b_when_kernels_break.ipynb").write_text("half a file")
        submission = submissions.read(Entry("jane", (tmp_path,)), EXERCISES, RELEASED)
        assert submission.answers["09.1"].open and not submission.answers["05.2"].open
        assert submission.labs == ("05", "09")
