"""The pages of students and of the class: what they say, and that nothing in a submission becomes markup."""

import re
import time
from collections import Counter
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest
from made_up_class import SOLVED, cells, exercises, made_up, result

from grader.intake.labs import labs, number, worth
from grader.model import GRADED, Answer, Graded, Result, Submission
from grader.pages import chart, overview, student
from grader.pages.listing import listing, named_lines
from grader.pages.tasks import tasks
from grader.report import write_all
from grader.results.manifest import Grading
from grader.results.scores import Scores
from grader.results.store import Store
from grader.sandbox.limits import LIMITS
from grader.text import block, clean, one_line, slug
from labkit.course import EXERCISES
from labkit.course.feedback import NEEDS_GPU
from labkit.course.notebooks.release import solution

MARKUP = (
    "</pre></textarea><script>alert(1)</script><img src=//evil/x onerror=alert(1)>{{ 7 * 7 }}{% raw %}&lt;"
)
TERMINAL = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x00\x08\x9b\u202egnp.exe\ud800"
HOSTILE = f"{MARKUP} {TERMINAL}"
RUN = Grading(1234, f"labkit grade {MARKUP}", SOLVED, LIMITS)
ASKED = exercises("02", "03")
OF_02 = sum(exercise.points for exercise in exercises("02"))
SOURCE = solution(cells()["02.1"])


class Parsed(HTMLParser):
    """Tags, attributes and text of a page, as a browser takes them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ("meta", "link", "br", "img", "input", "hr", "rect", "line"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "line", "br"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def scores_of(*submissions: Graded, asked=ASKED) -> Scores:
    scores = Scores(labs(asked, SOLVED))
    for graded in submissions:
        scores.add(graded)
    return scores


def handed_in(*results: Result, name: str = "bob", **told) -> Graded:
    return Graded(Submission(name, {}, ("02",), **told), results, "bubblewrap", 1.0)


def page_of(graded: Graded, *others: Graded) -> str:
    return student.page(graded, scores_of(graded, *others), tasks(SOLVED, [each.id for each in ASKED]))


def hostile(name: str) -> Graded:
    """A submission all of whose texts are hostile."""
    made = result(EXERCISES["02.1"], 1, f"%%cuda 02.1\n{HOSTILE}", HOSTILE, HOSTILE)
    lines = tuple(replace(line, text=HOSTILE) for line in made.lines)
    broken = replace(result(EXERCISES["02.2"], -1, HOSTILE), failure=HOSTILE)
    answers = {"02.1": Answer("02.1", HOSTILE, HOSTILE)}
    return handed_in(replace(made, lines=lines), broken, name=name, answers=answers, problems=(HOSTILE,) * 30)


@pytest.fixture(scope="module")
def some():
    return list(made_up(60))


@pytest.fixture(scope="module")
def pages(tmp_path_factory, some):
    """The folder of a class of 60 and one that is hostile throughout."""
    out = tmp_path_factory.mktemp("grades")
    kept, everyone = Store(out, 1234, ASKED), [*some, hostile(HOSTILE)]
    for graded in everyone:
        kept.put(graded)
    write_all(kept, RUN, [graded.submission.student for graded in everyone])
    return out


def read(path) -> str:
    return path.read_text(encoding="utf-8")


class TestSafety:
    def test_pages_fetch_nothing_and_run_nothing(self, pages):
        found = [*(pages / "feedback").glob("*.html"), pages / "overview.html"]
        assert len(found) == 62
        for path in found:
            parsed = Parsed(read(path))
            assert not parsed.open
            assert not {"script", "img", "iframe", "object", "embed", "link", "base", "form"} & set(
                parsed.tags
            )
            for tag, name, value in parsed.attributes:
                assert not name.startswith("on"), (path, tag, name, value)
                if name in ("src", "href", "xlink:href", "action", "srcset"):
                    assert value.startswith("#") or (pages / value).is_file(), value
            policy = next(value for _, name, value in parsed.attributes if name == "content")
            assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

    def test_what_a_student_wrote_is_shown_as_text(self, pages):
        text = Parsed(read(pages / "feedback" / f"{slug(HOSTILE)}.html")).text
        assert text.count("<script>alert(1)</script>") >= 5 and "{{ 7 * 7 }}" in text and "&lt;" in text
        assert "<script>alert(1)</script>" in Parsed(read(pages / "overview.html")).text

    def test_no_control_character_is_left(self, pages):
        for path in (pages / "feedback" / f"{slug(HOSTILE)}.html", pages / "overview.html"):
            html = read(path)
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", html)
            assert "red" in html and "[31m" not in html and "title" in html

    def test_megabytes_are_cut_and_the_page_says_so(self):
        made = replace(
            result(EXERCISES["02.1"], 0, "%%cuda 02.1\n" + "x" * 3_000_000, "y\n" * 1_000_000),
            note="z" * 10**6,
        )
        html = page_of(handed_in(made, name="n" * 10**6, problems=("p" * 10**6,) * 1000))
        assert len(html) < 200_000
        assert "Cut here: the whole text has 3,000,012 characters." in html and "and 980 more" in html
        assert "Cut here: the whole text has 1,999,999 characters." in html

    @pytest.mark.parametrize(
        "unit", ["a::", "int a(", "@a.", 'R"(', "a b ", "f{", '"""', "/*", "\\", "#if 0"]
    )
    def test_no_source_takes_long_to_colour(self, unit):
        start = time.perf_counter()
        for magic in ("cuda", "c", "answer", "program"):
            listing(f"%%{magic} 02.1\n" + (unit * (199 // len(unit)) + "\n") * 500, magic)
        assert time.perf_counter() - start < 10


class TestText:
    def test_a_terminals_commands_go(self):
        assert (
            clean("\x1b[1;31mred\x1b[0m\x1b]8;;http://x\x1b\\link\x1b(B")
            == "redlink\N{REPLACEMENT CHARACTER}(B"
        )

    def test_lines_are_counted_as_compilers_do(self):
        assert block("a\r\nb\x0cc\u2028d\ne", 10)[0].count("\n") == 2

    def test_a_line_is_cut_to_its_length(self):
        assert one_line("abc " * 100, 10) == "abc abc a…" and one_line("abc", 3) == "abc"

    def test_a_block_says_how_much_there_is(self):
        assert block("a\nb\nc", 2) == ("a\nb", "Cut here: the whole text has 5 characters.")
        assert block("abcdef", 2, 4) == ("abc…", "Cut here: the whole text has 6 characters.")
        assert block("a\n\nb", 3) == ("a\n\nb", "")


class TestStudent:
    def test_shows_points_of_labs_and_exercises(self):
        made = [
            result(EXERCISES[f"02.{place}"], met, SOURCE, "why") for place, met in ((1, 3), (2, 1), (3, 0))
        ]
        text = Parsed(page_of(handed_in(*made))).text
        partial = sum(worth(EXERCISES["02.2"])[:1])
        assert f"02 The naive kernel {number(2 + partial)} of {OF_02} points" in text
        assert (
            "02.1 The naive product 2 of 2 points" in text
            and "02.3 Scale and add, as BLAS does 0 of 2" in text
        )
        assert "Not handed in: 03 Tiles in shared memory." in text

    def test_shows_what_was_asked_without_hints_and_solution(self):
        html = page_of(handed_in(result(EXERCISES["02.3"], 1, "%%cuda 02.3", "why")))
        text = Parsed(html).text
        assert "BLAS, the standard collection of matrix routines" in text and "Find out what happens" in text
        assert "A product with 0 is not enough" not in text and "Hint" not in text and "STUB" not in text
        assert html.count("<math") >= 2 and "$" not in Parsed(html).text

    def test_shows_each_criterion_with_its_mark_and_points(self):
        made = result(EXERCISES["02.2"], 1, "%%cuda 02.2", "why it is not")
        carried = [
            f"{number(points)} point" if points else "no points" for points in worth(EXERCISES["02.2"])
        ]
        text = Parsed(page_of(handed_in(made))).text
        for mark, criterion, points in zip("✓✗·", EXERCISES["02.2"].criteria, carried, strict=True):
            assert f"{mark} {criterion.text} {points}" in text
        assert "Why ✗ is not met why it is not" in text

    def test_what_the_released_cell_meets_carries_no_points(self):
        exercise = replace(EXERCISES["02.2"], given=2)
        made = result(exercise, 2, "%%cuda 02.2", "why")
        assert made.points == 0.0 and worth(exercise) == [0, 0, 2]
        asked = [exercise, *(each for each in ASKED if each.id != exercise.id)]
        text = Parsed(student.page(handed_in(made), scores_of(handed_in(made), asked=asked), {})).text
        told = "no points: the cell as you got it meets this"
        assert text.count(told) == 2 and f"✗ {exercise.criteria[2].text} 2 points" in text

    def test_a_criterion_left_to_a_gpu_is_told(self):
        made = result(EXERCISES["02.2"], 3, "%%cuda 02.2")
        lines = (*made.lines[:2], replace(made.lines[2], state=NEEDS_GPU))
        text = Parsed(page_of(handed_in(replace(made, state="regrade", points=None, lines=lines)))).text
        assert "○" in text and "(not judged here: needs a GPU)" in text and "will be graded again" in text

    def test_lines_have_the_numbers_of_messages(self):
        html, left_out = listing(SOURCE, "cuda", {7})
        text = unescape(re.sub("<[^>]+>", "", html)).rstrip("\n")
        numbered = [re.match(r" *(\d+)(.*)", line).groups() for line in text.splitlines()]
        assert [(int(place), line) for place, line in numbered] == [*enumerate(SOURCE.splitlines(), 1)]
        assert numbered[0] == ("1", "%%cuda 02.1") and not left_out

    def test_the_line_that_a_message_names_is_marked(self):
        failure = "memcheck finds: line 7: write of 4 bytes\n       7 |     float sum = 0;"
        html = page_of(handed_in(result(EXERCISES["02.1"], 0, SOURCE, failure)))
        (marked,) = re.findall(r'<span class="hll">(.*?)\n</span>', html, re.DOTALL)
        assert unescape(re.sub("<[^>]+>", "", marked)).split() == ["7", *SOURCE.splitlines()[6].split()]

    @pytest.mark.parametrize(
        ("failure", "lines"),
        [
            ("line 7: write of 4 bytes\n    by thread (3, 0, 0)\n       7 | x", {7}),
            ("race\n    on line 12\n      14 | y = x;", {12, 14}),
            ("lines 3 and 5 differ", {3, 5}),
            ("C[0, 16] is 12.5; it should be -3.25. 17 of 561 elements are wrong.", set()),
            ("outline 7 and line 99999999", set()),
        ],
    )
    def test_messages_name_lines(self, failure, lines):
        assert named_lines(failure) == lines

    def test_a_line_that_is_not_there_marks_nothing(self):
        assert "hll" not in listing(SOURCE, "cuda", {0, 4000})[0]

    @pytest.mark.parametrize(
        ("magic", "source", "token"), [("c", "int x;", "kt"), ("answer", "def f(): pass", "k")]
    )
    def test_sources_are_coloured_in_their_language(self, magic, source, token):
        assert f'class="{token}"' in listing(f"%%{magic} 01.1\n{source}", magic)[0]

    def test_notes_and_missing_answers_are_told(self):
        odd = result(EXERCISES["02.1"], 3, SOURCE, note="two cells have it")
        missing = Result("02.2", GRADED, 0.0, 2, failure="There is no cell.", note="There is no cell.")
        text = Parsed(page_of(handed_in(odd, missing))).text
        assert "two cells have it" in text
        assert text.count("There is no cell.") == 1 and "There is no answer." in text

    def test_what_is_graded_again_has_no_points_yet(self):
        text = Parsed(page_of(handed_in(result(EXERCISES["02.1"], -1, SOURCE)))).text
        assert "not final" in text and "02.1 The naive product will be graded again" in text
        assert "the kernel did not start within 60 s" in text and "no fault of yours" in text

    def test_nothing_handed_in_is_no_error(self):
        graded = Graded(Submission("x", problems=("02.ipynb is not a notebook",)), (), "bubblewrap", 0.0)
        text = Parsed(page_of(graded)).text
        assert "There is no answer to any exercise" in text and "02.ipynb is not a notebook" in text


class TestChart:
    def test_says_where_the_student_stands_in_the_class(self):
        def points(*met):
            return handed_in(*(result(EXERCISES[f"02.{i}"], n, SOURCE) for i, n in enumerate(met, 1)))

        own, others = points(3, 0, 0), [points(3, 3, 0), points(0, 3, 0), points(3, 3, 1)]
        html = page_of(own, *others)
        assert "At or above the class&#39;s median in 2 of 3 exercises" in html
        assert "02.2: 0 of 2 points; the class&#39;s median is 2" in html
        assert ">points</text>" in html and html.count('class="median"') == 3 + 1  # and the key

    def test_two_students_do_not_see_each_others_points(self):
        own, other = (handed_in(result(EXERCISES["02.1"], met, SOURCE)) for met in (3, 0))
        html = page_of(own, other)
        assert "median" not in Parsed(html).text and "All points in 1 of 1 exercise" in html

    def test_bars_are_as_long_as_points(self):
        svg = chart.points([chart.Bar("02.1", 1.0, None, 2), chart.Bar("02.2", 4.0, 2.0, 4)], "x")
        widths = [float(width) for width in re.findall(r'class="bar"[^>]* width="([\d.]+)"', svg)]
        tracks = [float(width) for width in re.findall(r'class="track"[^>]* width="([\d.]+)"', svg)]
        assert widths[1] == pytest.approx(4 * widths[0], abs=0.2)
        assert tracks[0] == pytest.approx(2 * widths[0], abs=0.2) and tracks[1] == widths[1]

    def test_a_distribution_counts_every_student_once(self):
        totals = Counter({0.0: 2, 2.66666666: 3, 3.0: 1, 9.0: 4, 8.9999999999: 1})
        svg = chart.distribution(totals, 9, "x")
        told = dict(re.findall(r"<title>(\d+) points: (\d+) students?</title>", svg))
        assert told == {"0": "2", "2": "3", "3": "1", "9": "5"}
        assert ">students</text>" in svg and ">points of 9, rounded down</text>" in svg


class TestTasks:
    def test_every_exercise_of_the_course_has_one(self):
        found = tasks(SOLVED, list(EXERCISES))
        assert sorted(found) == sorted(EXERCISES)
        for id, html in found.items():
            text = Parsed(html).text
            assert len(text) > 80, id
            assert "Hint" not in text and "Exercise 0" not in text and "<details" not in html
            assert ".ipynb" not in html and "SOLUTION" not in html


class TestOverview:
    def test_tells_of_each_exercise_what_was_judged(self, pages, some):
        scores = scores_of(*some)
        text = Parsed(overview.page(scores, RUN, {})).text
        for exercise in ASKED:
            own = [
                (each, graded)
                for graded in some
                for each in graded.results
                if each.exercise == exercise.id and each.points is not None
            ]
            failed = Counter(
                next(line.text for line in each.lines if line.state == "failed")
                for each, _ in own
                if each.source and each.points < each.most - 1e-9
            )
            most = max(failed.values())
            worst = min(text for text, count in failed.items() if count == most)
            mean = sum(each.points for each, _ in own) / len(own) / exercise.points
            full = sum(each.points > each.most - 1e-9 for each, _ in own) / len(own)
            missing = sum(not each.source for each, _ in own) / len(own)
            shares = " ".join(f"{100 * share:.0f} %" for share in (mean, full, missing))
            commonest = f"{worst} ({most}, {100 * most / len(own):.0f} %)"
            assert f"{exercise.id} {exercise.title} {len(own)} {shares} {commonest}" in text

    def test_tells_seed_isolation_and_what_is_to_be_regraded(self, pages):
        text = Parsed(read(pages / "overview.html")).text
        assert "isolation bubblewrap seed 1234" in text and "To be graded again" in text
        assert "61 submissions" in text and "the kernel did not start within 60 s" in text

    def test_has_nobodys_code(self, pages):
        html = read(pages / "overview.html")
        assert "__global__" not in html and "blockIdx" not in html and 'class="highlight"' not in html

    def test_a_distribution_states_its_finding(self):
        class_of = [handed_in(result(EXERCISES["02.1"], met, SOURCE)) for met in (3, 3, 0)]
        text = Parsed(overview.page(scores_of(*class_of), RUN, {})).text
        assert f"02 The naive kernel The median of 3 is 2 of {OF_02} points; 0 have all" in text
        assert "03 Tiles in shared memory Nobody has points in it" in text

    def test_thousands_of_notes_are_cut(self):
        odd = [
            handed_in(result(EXERCISES["02.1"], 3, SOURCE, note="n" * 5000), name=f"{place}")
            for place in range(700)
        ]
        html = overview.page(scores_of(*odd), RUN, {})
        assert "The first 500 of 700" in html and len(html) < 400_000

    def test_an_empty_class_is_no_error(self, tmp_path):
        summary = write_all(Store(tmp_path, 7, ASKED), RUN, [])
        assert summary.submissions == 0 and "0 submissions" in read(summary.overview)


def test_a_page_takes_milliseconds(tmp_path, some):
    kept = Store(tmp_path, 7, ASKED)
    for graded in some:
        kept.put(graded)
    tasks(SOLVED, ["02.1"])  # what is loaded once
    start = time.perf_counter()
    write_all(kept, RUN, [graded.submission.student for graded in some])
    assert time.perf_counter() - start < 60 * 0.1  # 500 in well under a minute
