"""Predictions: the answers are those that the notebooks' cells compute, and nothing shows them too early."""

import json
import re
from collections import Counter
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

import labkit
from labkit import magic
from labkit.course import predictions, progress
from labkit.course.predictions import QUESTIONS, NotANumber, Verdict, guess, number, shown
from labkit.widgets.explorer import PAGE

SOLVED = sorted((Path(__file__).parents[3] / "notebooks" / "solutions").glob("*.ipynb"))

# What a cell below the prediction says, computed in the simulator or from records; nbval compares it, too.
# Groups are the answers.
SEEN = {
    "00.a": r"element 7: block (\d+) and thread (\d+)",
    "00.b": r"1024 threads, (\d+) of them",
    "00.c": r"has index (\d+)",
    "01.a": r"([\d,]+) times as long",
    "01.b": r"144 lines of B: (\d+) times",
    "01.c": r"(\d+) for every 100",
    "01.d": r"best at 2048: (\d+)",
    "01.e": r"([\d.]+) times as long",
    "01.f": r"loads in each step: ([\d.]+) per load",
    "02.b": r"line 19: (\d+) sectors per request",
    "02.c": r"with 32 x 32: ([\d.]+) times as long",
    "02.d": r"(\d+) of 64 elements differ",
    "02.e": r"kernel at N = 512: ([\d.]+) %",
    "03.a": r"requests .* (\d+) times fewer\nsectors .* (\d+) times fewer",
    "03.c": r"(\d+) of 64 elements are wrong",
    "03.d": r"\n1 +[\d.]+ +[\d.]+ +([\d.]+) ",
    "03.e": r"at the L2 ([\d.]+) times",
    "04.a": r"\nnaive +([\d.]+) GB/s",
    "04.b": r"stride +7: (\d+) sectors",
    "04.c": r"8 x 8 .*, (\d+) to write",
    "04.d": r"([\d.]+) times as fast",
    "05.g": r"padded +32×32(?: +[\d.]+){5} +([\d.]+)",
    "06.h": r"unrolled +[\d.]+ +[\d.]+ +([\d.]+)",
    "04.e": r"naive ([\d.]+), naive_write_coalesced ([\d.]+)",
    "05.c": r"(?s)padding 2: 0 .*?, (\d+) per load.*padding 8: 0 .*?, (\d+) per load",
    "05.d": r"(?s)float64 transpose/2_shared .*?: (\d+) per request.*float64 transpose/3_padded .*?: (\d+)",
    "05.e": r"TILE = 16  3_padded +(\d+) conflicts per store, (\d+) per load",
    "05.f": r"float32, N = 8192: estimate ([\d.]+)",
    "06.a": r"(\d+) of 1024 elements are right",
    "06.b": r"4 multiply-adds, ([\d.]+) per",
    "06.c": r"\n1024 .* ([\d.]+)\n",
    "06.d": r"unrolled +([\d.]+) PTX instructions",
    "06.e": r"DRAM +\d+ clocks, +(\d+) ns",
    "06.f": r"padded .*: ([\d.]+) times as long",
    "06.g": r"(\d+) bytes of local memory",
    "07.a": r"K = 680, 0.154 ms: ([\d,]+) GFLOP/s",
    "07.b": r"H200 .*: +([\d.]+) TFLOP/s",
    "07.d": r"naive +([\d.]+) FLOP",
    "07.e": r"naive +(\d+)",
    "07.f": r"N = 1024 .* at most +([\d.]+)%",
    "07.g": r"(\d+) of 64 warps",
    "07.h": r"register_tile .*, +(\d+) of 64 warps",
    "08.a": r"tiled +[\d.]+ +[\d.]+ +([\d.]+)",
    "08.b": r"tiled +([\d.]+)",
    "08.c": r"register_column +[\d.]+ +([\d.]+)",
    "08.d": r"N = 1024: .*, \+([\d.]+)%\nN = 4096: .*, \+([\d.]+)%",
    "08.f": r"(\d+) times as large",
    "09.e": r"(\d+) of the warp's 32 threads are elsewhere",
    "09.f": r"(\d+) of 4096 differ",
    "09.g": r"launch +[\d.]+ ms +([\d,.]+) TFLOP/s",
    **{
        f"09.{id}": rf"\n{kernel} +[\d.]+ +[\d.]+ +([\d.]+)"
        for id, kernel in zip("ijklmn", "ABCDEF", strict=True)
    },
    "10.b": r"multiply-adds per sector of global loads +([\d.]+)",
    "10.d": r"8 × 2: ([\d.]+) reads",
    "10.e": r"loads of a thread per multiply-add +([\d.]+)",
    "11.a": r"wgmma\S+ .* ([\d.]+) FLOP per byte",
    "11.b": r"C\[9, 5\] is a sum of lane (\d+)",
    "11.c": r"ldmatrix, .*: (\d+) passes",
    "11.d": r"(?s)\n +5 +1 +2 +(\d).*enough: (\d) stages",
    "11.e": r"line \d+: (.+)\nline \d+: (.+)\nline \d+: (.+)\n",
    "11.g": r"bfloat16: (\d+) times",
    "12.a": r"2\^24 additions, .*: predicted ([\d.]+) ms",
    "12.b": r"spread: (\d+) .*\nfirst threads: (\d+)",
    "12.c": r"tree: ([\d.]+) times as fast; grid_stride: (\d+) %",
    "12.d": r"equal: ([\d.]+) times as long",
    "12.e": r"s = (\d+); (\d+) % of the loads",
    "13.a": r"x\[7\] = (\d+)",
    "13.b": r"^(\d+) GB/s$",
    "13.c": r"^([\d.]+) ms$",
}
# Answers that have to be counted in the output.
COUNTED = {
    "02.a": lambda said: [len({thread // 16 for thread in range(32)})],
    "03.b": lambda said: [len(re.search(r"right: (.*)", said)[1].split(","))],
    "05.a": lambda said: [100 * float(re.search(r"shared .* ([\d.]+) of the copy", said)[1])],
    "07.c": lambda said: [100 * rate(r" peak +([\d.]+) GFLOP", said) / rate(r" ([\d.]+) GFLOP/s 2 ×", said)],
    "08.e": lambda said: [
        rate(r"tuned +(\d+) blocks", said),
        max(reversed(FASTEST.findall(said)), key=by_rate)[0],
    ],
    "05.b": lambda said: [max(Counter(32 * row % 32 for row in range(32)).values())],
    "09.a": lambda said: [sum(a == b for a, b in re.findall(r"(\d+) of (\d+) sums", said))],
    "09.b": lambda said: [sum(not 0 <= i - 1 <= i + 1 < 256 for i in range(256))],
    "09.c": lambda said: [said.count("right")],
    "09.d": lambda said: [float(n) for n in re.findall(r"(\d+) wrong", said)],
    "09.h": lambda said: [6 - said.count("nothing")],
    "10.a": lambda said: [prod(map(int, re.search(r"1000 x 33: grid \((.*?)\)", said)[1].split(",")))],
    "10.c": lambda said: [128 * 2 / 32],
    "11.f": lambda said: [
        max(CLIMB.findall(said), key=by_rate)[0],
        rate(r"wmma +[\d.]+ +[\d.]+ +([\d.]+)", said),
    ],
}
CLIMB = re.compile(r"(?!cublas)\b(\w+) +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)")
FASTEST = re.compile(r"(\w+) +\d+ blocks +([\d.]+) TFLOP/s")


def by_rate(found):
    return float(found[1])


def rate(pattern, said):
    return float(re.search(pattern, said)[1])


def predicted(path):
    """The predictions of a notebook, in order, each with its cell and the outputs of the cells below it."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for place, cell in enumerate(cells):
        if cell["metadata"].get("labkit", {}).get("role") == "prediction":
            below = [text_of(each) for each in cells[place + 1 :] if each["cell_type"] == "code"]
            yield re.fullmatch(r'labkit\.guess\("(.*)"\)', "".join(cell["source"]))[1], cell, below


def text_of(cell):
    return "".join(
        "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for output in cell["outputs"]
    )


BELOW = {id: below for path in SOLVED for id, _, below in predicted(path)}


def test_the_course_asks_each_prediction_once():
    asked = [id for path in SOLVED for id, _, _ in predicted(path)]
    assert sorted(asked) == sorted(QUESTIONS)


OWN = {"10.f"}  # the answer is the student's own kernel's


@pytest.mark.parametrize("id", [id for id in QUESTIONS if id not in OWN])
def test_the_answer_is_what_the_cells_below_compute(id):
    right = [each.right for each in QUESTIONS[id].inputs]
    rounded = 0.05
    if id in COUNTED:
        seen = COUNTED[id](BELOW[id][0])
    else:
        near = [*BELOW[id][:4], *BELOW[id][-2:]]  # 09 has a table of all gains at its end
        found = next(match for said in near if (match := re.search(SEEN[id], said)))
        seen = [
            number(group) if isinstance(each, (int, float)) else group
            for group, each in zip(found.groups(), right, strict=True)
        ]
        digits = max(len(group.partition(".")[2]) for group in found.groups())
        rounded = min(rounded, 0.5 / 10**digits)
    assert len(seen) == len(right)
    for mine, theirs in zip(right, seen, strict=True):
        if isinstance(mine, str):
            assert mine == theirs
        else:
            assert mine == pytest.approx(theirs, rel=0.02, abs=rounded)


@pytest.mark.parametrize("id", QUESTIONS)
def test_nothing_shows_the_answer_before_a_prediction_is_committed(id, fresh):
    asked, question = guess(id), QUESTIONS[id]
    state = asked.get_state()
    assert state["reveal"] == state["said"] == {}
    told = repr(asked) + json.dumps([state["title"], state["inputs"]])
    assert question.why not in told
    # A number of the label, such as "of 64", may be the answer by chance; nothing else may.
    words = " ".join(f"{each.label} {each.unit} {' '.join(each.choices)}" for each in question.inputs)
    inputs = () if id in OWN else question.inputs
    hidden = {shown(each.right) for each in inputs} - set(re.findall(r"[\w.,]+", f"{words} {id}"))
    assert not hidden & set(re.findall(r"[\w.,]+", told))
    stored = next(cell for path in SOLVED for name, cell, _ in predicted(path) if name == id)
    assert text_of(stored) == repr(asked)
    assert "application/vnd.jupyter.widget-view+json" not in stored["outputs"][0]["data"]


def test_the_answer_may_be_what_the_model_says_of_a_students_kernel(fresh, monkeypatch):
    model = SimpleNamespace(seconds=0.559e-3, limit="latency")
    monkeypatch.setattr(predictions, "_own", lambda: model)
    reveal = commit(guess("10.f"), "0.6", "issue slots")
    assert reveal["verdict"] == "Partly right" and reveal["source"] == "Predicted for an H200."
    assert "It is 0.559 ms (time of your kernel) and latency (its lowest limit)" in reveal["text"]


def test_without_a_kernel_there_is_nothing_to_hold_a_prediction_against(fresh, monkeypatch):
    monkeypatch.setattr(magic, "answers", {})
    asked = guess("10.f")
    assert "There is no CUDA kernel for 10.5 yet" in commit(asked, "0.6", "latency")["error"]


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A student's folder in which nothing has been committed."""
    (tmp_path / "02_naive_cuda.ipynb").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commit(asked, *values):
    asked.said = {"id": asked.said.get("id", 0) + 1, "values": list(values) or None}
    return asked.reveal


class TestCommitted:
    @pytest.mark.parametrize(
        ("id", "said", "verdict"),
        [
            ("02.a", ["2"], "Right"),
            ("02.a", ["2 "], "Right"),
            ("02.a", ["3"], "Close"),
            ("02.a", ["4"], "Wrong"),
            ("03.a", ["16", "8"], "Right"),
            ("03.a", ["16", "16"], "Partly right"),
            ("03.a", ["20", "16"], "Close"),
            ("03.a", ["2", "2"], "Wrong"),
            ("01.d", ["128"], "Right"),
            ("01.d", ["64"], "Wrong"),
            ("08.e", ["8", "tuned"], "Partly right"),
            ("03.c", ["0"], "Right"),
            ("03.c", ["1"], "Wrong"),
            ("06.c", ["0"], "Right"),
            ("06.c", ["1"], "Close"),
            ("06.c", ["30"], "Wrong"),
            ("01.a", ["19,000"], "Right"),
        ],
    )
    def test_is_right_close_or_wrong_in_words(self, id, said, verdict, fresh):
        reveal = commit(guess(id), *said)
        assert reveal["verdict"] == verdict and reveal["text"].startswith(("You said ", "It is "))

    def test_tells_what_was_said_what_it_is_and_why(self, fresh):
        assert commit(guess("02.a"), "4")["text"] == (
            "You said 4 rows. It is 2 rows: 32 threads are two lines of 16."
        )
        assert commit(guess("02.b"), "16")["text"].startswith("It is 16 sectors: ")
        assert commit(guess("05.c"), "0", "1")["text"].startswith(
            "You said 0 conflicts (padding 2) and 1 conflict (padding 8). "
            "It is 1 conflict (padding 2) and 7 conflicts (padding 8): "
        )

    def test_i_do_not_know_is_an_answer(self, fresh):
        reveal = commit(guess("02.a"))
        assert reveal["verdict"] == "" and reveal["text"].startswith("It is 2 rows: ")

    def test_a_measured_answer_says_where_it_is_from(self, fresh):
        assert commit(guess("01.a"), "1")["source"] == "As the report cpu-gpu-matmul printed it."
        assert commit(guess("08.f"), "1")["source"] == "Recorded on an NVIDIA H200."

    def test_survives_a_second_run_of_the_cell(self, fresh):
        before = commit(guess("02.a"), "4")
        again = guess("02.a")
        assert again.reveal["text"] == before["text"] and again.said["values"] == ["4"]
        assert repr(again) == f"Prediction 02.a: {before['text']}"
        commit(guess("02.b"))
        assert progress.committed() == {"02.a": ["4"], "02.b": None}
        assert guess("02.b").reveal["text"].startswith("It is 16 sectors")

    def test_is_kept_in_memory_where_there_is_no_folder_of_a_student(self, fresh):
        (fresh / "02_naive_cuda.ipynb").unlink()
        commit(guess("02.a"), "4")
        assert "You said 4" in guess("02.a").reveal["text"] and not (fresh / progress.FILE).exists()

    @pytest.mark.parametrize("said", ['["two"]', '["1", "2"]', "[2]", "3", "[]"])
    def test_a_line_that_does_not_fit_asks_again(self, said, fresh):
        (fresh / progress.FILE).write_text(f'{{"prediction": "02.a", "said": {said}}}\n')
        assert guess("02.a").reveal == {}
        commit(guess("02.a"), "2")
        assert guess("02.a").reveal["verdict"] == "Right" and progress.load().best == {}

    def test_what_is_no_number_is_told_and_may_be_mended(self, fresh):
        asked = guess("02.a")
        assert commit(asked, "two")["error"] == "“two” is no number. Enter one such as 16 or 0.5."
        assert guess("02.a").reveal == {}
        assert commit(asked, "2")["verdict"] == "Right"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("16", 16),
            (" 0.5 ", 0.5),
            ("0,5", 0.5),
            ("1,5", 1.5),
            ("18,977", 18977),
            ("1,234,567.5", 1234567.5),
        ),
        *(("1 000", 1000), ("2e3", 2000), ("33 %", 33), ("16x", 16), ("−1", -1), ("0,125", 0.125)),
    ],
)
def test_numbers_as_people_write_them(text, value):
    assert number(text) == value


@pytest.mark.parametrize("text", ["", "two", "1.2.3", "nan", "inf", "1,2,3"])
def test_what_is_no_number(text):
    with pytest.raises(NotANumber, match="is no number"):
        number(text)


def test_an_unknown_prediction_is_told():
    with pytest.raises(ValueError, match=r"no prediction '02\.z'\. There are 02\.a to 02\.e\."):
        labkit.guess("02.z")


def test_the_page_has_a_sign_for_each_verdict():
    signs = re.search(r"SIGNS = \{(.*?)\}", (PAGE / "prediction.js").read_text(encoding="utf-8"))[1]
    assert {name.strip('"') for name in re.findall(r'("[^"]+"|\w+):', signs)} == set(get_args(Verdict))
