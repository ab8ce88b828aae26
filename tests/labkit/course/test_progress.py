"""What is earned is kept beside the notebooks: the best of each exercise, whatever happens to the file."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
from labkit import magic
from labkit.course import EXERCISES, progress
from labkit.course.progress import FILE, Best

RIGHT = """
extern "C" __global__ void matmul(const float* A, const float* B, float* C,
                                  int M, int N, int K, float alpha, float beta)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < K; ++k)
        sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A student's folder, with a notebook of the course in it."""
    (tmp_path / "02_naive_cuda.ipynb").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_unkept", {})
    return tmp_path


def test_the_best_result_counts_and_never_falls(folder):
    for share, solved in ((0.5, False), (0.25, False), (1.0, True), (0.0, False)):
        progress.record("02.1", Best(share, solved))
    assert progress.load().best == {"02.1": Best(1.0, True)} and progress.load().last == "02.1"
    assert len((folder / FILE).read_text().splitlines()) == 2  # what is not better is not written


def test_solved_without_a_gpu_beats_more_points_unsolved(folder):
    progress.record("10.5", Best(0.8, True))
    progress.record("10.5", Best(0.9, False))
    assert progress.load().best["10.5"] == Best(0.8, True)


results = st.tuples(
    st.sampled_from(sorted(EXERCISES)), st.builds(Best, st.floats(0.01, 1).map(float), st.booleans())
)


@settings(deadline=None)  # it writes files
@given(st.lists(st.lists(results, max_size=6), min_size=2, max_size=4))
def test_notebooks_that_write_at_once_lose_nothing(tmp_path_factory, writers):
    folder = tmp_path_factory.mktemp("class")
    (folder / "00_start_here.ipynb").touch()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(writers)) as pool:
        patch.chdir(folder)
        patch.setattr(progress, "_unkept", {})
        list(pool.map(lambda own: [progress.record(*each) for each in own], writers))
        found = progress.load().best
    wanted = {}
    for exercise, result in (each for own in writers for each in own):
        before = wanted.get(exercise, Best(0, False))
        wanted[exercise] = max(before, result, key=lambda each: (each.solved, each.share))
    assert found == wanted


@settings(deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_a_damaged_file_costs_no_other_line(tmp_path_factory, junk, cut):
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "00_start_here.ipynb").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(progress, "_unkept", {})
        progress.record("00.1", Best(0.5, False))
        with (folder / FILE).open("ab") as file:
            file.write(junk if cut else junk + b"\n")
        progress.record("00.2", Best(1.0, True))
        best = progress.load().best
    assert best["00.1"].share >= 0.5 and best["00.2"] == Best(1.0, True)


@pytest.mark.parametrize(
    "text", ["null", "[]", '{"exercise": 1}', '{"exercise": "02.1", "share": "all", "solved": 1}']
)
def test_lines_of_another_kind_are_passed_over(folder, text):
    (folder / FILE).write_text(text + "\n")
    assert progress.load().best == {}
    progress.record("02.1", Best(1, True))
    assert progress.load().best == {"02.1": Best(1, True)}


@pytest.mark.parametrize("place", ["no notebooks", "solutions", "read only"])
def test_where_nothing_may_be_written_it_is_kept_for_the_session(folder, monkeypatch, place):
    there = folder / place
    there.mkdir()
    monkeypatch.chdir(there)
    if place != "no notebooks":
        (there / "02_naive_cuda.ipynb").touch()
    if place == "read only":
        (there / FILE).mkdir()  # root may write anywhere else
    progress.record("02.1", Best(1, True))
    assert progress.load().best == {"02.1": Best(1, True)}
    assert not (there / FILE).is_file()


def test_a_check_keeps_and_tells_what_is_earned(folder, monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    monkeypatch.setattr(magic, "answers", {"02.1": magic.compile_cell(RIGHT, [], [], "02.1")})
    feedback = labkit.check("02.1")
    assert str(feedback).endswith("\n2 of 2 points · next: 02.2 Any shape")
    assert json.loads((folder / FILE).read_text()) == {"exercise": "02.1", "share": 1.0, "solved": True}
    magic.answers.clear()
    assert str(labkit.check("02.1")).endswith("\n0 of 2 points (your best: 2)")
    assert progress.load().best["02.1"].solved


def test_a_kernel_that_is_handed_over_is_not_the_students(folder, monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    feedback = labkit.check("02.1", magic.compile_cell(RIGHT, [], [], "02.1"))
    assert feedback.ok and feedback.score is None and not (folder / FILE).exists()


def test_the_notebook_worked_in_last_is_kept(folder):
    progress.opened("03")
    progress.record("02.1", Best(0.5, False))
    assert progress.load().last == "02.1"
    progress.opened("03")
    progress.opened("03")
    assert progress.load().last == "03" and progress.load().best == {"02.1": Best(0.5, False)}
    assert len((folder / FILE).read_text().splitlines()) == 3
