"""Which hint fits what was seen: each kind of finding, each place of wrong results, each known mistake."""

import re
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

from labkit.course.criteria import hints
from labkit.course.criteria.hints import (
    Hints,
    is_untouched,
    known_mistake,
    missing_terms,
    of_places,
    of_terms,
    places,
)
from labkit.course.criteria.launches import Given, Launch, Wrong
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.transpose.family import Transpose
from simt import Finding
from simt.common.compare import Mismatch, unwritten

# Each hint says its own name.
NAMED = Hints(**{field.name: f"<{field.name}>" for field in fields(Hints) if isinstance(field.default, str)})
EDGED, WHOLE = Matmul(20, 32, 16), Matmul(16, 32, 16)  # in blocks of 16 x 16: 20 rows stick out


def named(*left_out, **changes):
    """The hints without some of them."""
    return replace(NAMED, **dict.fromkeys(left_out, ""), **changes)


def launch(task=EDGED, block=(16, 16), shared_mem=0):
    return Launch(task, (2, 2), block, shared_mem)


def finding(tool, message, kind="", block=(0, 0, 0), thread=(0, 0, 0)):
    return Finding(tool, kind, 7, block, thread, message)


NONE = "invalid shared read of 4 bytes: past the end of the block's 0 bytes of shared memory"
UNFILLED = "reads byte 4 of shared `s`, which nobody has written yet in this block"
OUT = "invalid global read of 4 bytes: past the end of `A`"
RACE, TWICE = "race (read after write)", "race (write after write)"
BY_PLACE = named(by_place=True)
FINDINGS = [
    # what is found, in which launch, with which hints, and the hint that fits
    (finding("memcheck", OUT), launch(), named(), "<guard>"),
    (finding("memcheck", OUT), launch(), named("guard"), "<out_of_bounds>"),
    (finding("memcheck", OUT), launch(WHOLE), named(), "<out_of_bounds>"),
    (finding("memcheck", OUT), launch(WHOLE), named(fits=32), "<guard>"),
    (finding("memcheck", OUT), launch(EDGED), named(fits=4), "<out_of_bounds>"),
    (finding("memcheck", OUT), launch(Matmul(16, 16, 20)), named(), "<guard>"),  # K sticks out
    (finding("memcheck", OUT, "misaligned"), launch(), named(), "<misaligned>"),
    *((finding("memcheck", "the kernel stopped", kind), launch(), named(), "") for kind in hints.STOPPED),
    # the thread has an element of C, or has none
    (finding("memcheck", OUT, "", (1, 1, 0), (15, 3, 0)), launch(), BY_PLACE, "<out_of_bounds>"),
    (finding("memcheck", OUT, "", (1, 1, 0), (15, 4, 0)), launch(), BY_PLACE, "<guard>"),
    (finding("memcheck", OUT, "", (2, 0, 0), (0, 0, 0)), launch(), BY_PLACE, "<guard>"),
    (finding("memcheck", OUT), launch(block=(256,)), BY_PLACE, "<guard>"),
    # shared memory that the launch does not give
    (finding("memcheck", NONE), launch(), named(), hints.NO_DYNAMIC),
    (
        finding("memcheck", NONE),
        launch(WHOLE, shared_mem=8),
        named(),
        "<out_of_bounds>",
    ),
    (finding("synccheck", "__syncthreads() inside a branch"), launch(), named(), "<sync>"),
    (finding("synccheck", "__syncthreads() inside a branch"), launch(), Hints(), hints.ARRIVE),
    (finding("racecheck", f"{RACE} on byte 0 of shared `s`: the thread"), launch(), named(), "<race>"),
    (finding("racecheck", f"{RACE} on `C[0, 0]`: the thread"), launch(), named(), "<owner>"),
    (finding("racecheck", f"{RACE} on `C[0, 0]`: the thread"), launch(), named("owner"), "<race>"),
    (finding("racecheck", f"{TWICE} on byte 0 of shared `s`: the thread"), launch(), named(), "<twice>"),
    (finding("racecheck", f"{TWICE} on `C[0, 0]`: the thread"), launch(), named(), "<owner>"),
    (finding("racecheck", f"{TWICE} on `C[0, 0]`: the thread"), launch(), named("owner"), "<race>"),
    (finding("racecheck", f"{TWICE} on `C[0, 0]`: the thread"), launch(), named("owner", "race"), "<twice>"),
    (finding("racecheck", f"{TWICE} on variable `sum`: the thread"), launch(), named(), "<twice>"),
    (finding("initcheck", "reads `C[0, 0]`, which nobody has written yet"), launch(), named(), "<unread>"),
    (finding("initcheck", "reads a local variable, which nobody"), launch(), named(), hints.OF_A_THREAD),
    (finding("initcheck", "uses a variable that was never set", "unset variable"), launch(), named(), ""),
    (finding("initcheck", UNFILLED), launch(), named(), "<unfilled>"),
    (finding("initcheck", UNFILLED), launch(), named("unfilled"), "<edges>"),
    (finding("initcheck", UNFILLED), launch(WHOLE), named("unfilled"), "<usual>"),
    (
        finding("initcheck", UNFILLED),
        launch(),
        named("unfilled", "edges"),
        "<usual>",
    ),
    (finding("timeout", "the kernel ran for more than 1 s"), launch(), named(), ""),
]  # fmt: skip


@pytest.mark.parametrize(("found", "where", "of", "expected"), FINDINGS)
def test_the_hint_of_a_finding(found, where, of, expected):
    assert of.for_finding(found, where) == expected


@dataclass(frozen=True)
class Ints:
    """A task with an output of int32 that no known mistake is looked for in."""

    shape: tuple[int, ...]
    reads_output: bool = False
    seed: int = 0

    @property
    def sizes(self):
        return {f"size {at}": size for at, size in enumerate(self.shape)}


def spoilt(task, *where, value=1.0, untouched=False):
    """The wrong results of a product or an Ints, at these places: off by `value`, or never written."""
    if isinstance(task, Ints):
        out = np.zeros(task.shape, np.int32)
    else:
        a, b, c = task.inputs()
        c = np.nan_to_num(c) if task.beta else np.zeros_like(c)
        out = (task.alpha * a.astype(float) @ b + task.beta * c).astype(np.float32)
    is_wrong = np.zeros(out.shape, bool)
    for place in where or [...]:
        is_wrong[place] = True
    # Off by other amounts each, so that no known mistake fits.
    out[is_wrong] += (value * (1 + np.arange(is_wrong.sum()) % 7)).astype(out.dtype)
    if untouched:
        out[is_wrong] = unwritten((1,), out.dtype.name)[0]
    return as_wrong(task, out, is_wrong)


def as_wrong(task, out, is_wrong):
    index = tuple(int(each) for each in np.argwhere(is_wrong)[0])
    told = Mismatch("", index, 0, 0, int(is_wrong.sum()), is_wrong.size, is_wrong)
    return Wrong(told, task, out)


PART = "All wrong elements are in rows "
ROW_19 = "All wrong elements are in row 19 of 20 x 32."
RESULTS = [
    (spoilt(EDGED), launch(), named("edges"), "<usual>"),
    (spoilt(WHOLE), launch(WHOLE), named(), "<usual>"),
    (spoilt(EDGED, 19), launch(), named(), f"{ROW_19}\n<edges>"),
    (spoilt(EDGED, 16, 19), launch(), named(), f"{PART}16 to 19, every 3 of 20 x 32.\n<edges>"),
    (spoilt(EDGED, 15, 19), launch(), named(), f"{PART}15 to 19, every 4 of 20 x 32.\n<usual>"),
    (spoilt(EDGED, 19), launch(), named("edges"), f"{ROW_19}\n<usual>"),
    (spoilt(EDGED, 19), launch(), named(fits=4), f"{ROW_19}\n<usual>"),
    (spoilt(EDGED, 19, untouched=True), launch(), named(), f"{ROW_19}\n<untouched>"),
    (spoilt(EDGED, 19, untouched=True), launch(), named("untouched"), f"{ROW_19}\n<guard>"),
    (spoilt(EDGED, 19, untouched=True), launch(), named("untouched", "guard"), f"{ROW_19}\n<usual>"),
    (spoilt(EDGED, untouched=True), launch(), named("edges"), "<usual>"),
    # NaN that was worked out, not left over
    (spoilt(EDGED, 19, value=np.nan), launch(), named(), f"{ROW_19}\n<nan>"),
    (spoilt(EDGED, 19, value=np.nan), launch(), named("nan"), ROW_19),
    # K = 20: any element may lack a term
    (spoilt(Matmul(16, 16, 20)), launch(Matmul(16, 16, 20)), named(), "<edges>"),
    (spoilt(Matmul(16, 16, 20)), launch(Matmul(16, 16, 20)), named(fits=4), "<usual>"),
    (spoilt(Ints((20, 32))), launch(Ints((20, 32))), named(), "<usual>"),
    (
        spoilt(Ints((40,)), slice(32, 40)),
        launch(Ints((40,)), (16,)),
        named(),
        "All wrong elements are in elements 32 to 39 of 40.\n<edges>",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "where", "of", "expected"), RESULTS)
def test_the_hint_of_wrong_results(wrong, where, of, expected):
    assert of.for_results(wrong, where) == expected


def test_a_kernel_that_reads_its_output_leaves_nothing_untouched():
    """Where out is 0 before, a 0 may be a result."""
    out = unwritten((4,), "float32")
    for starts_at_0 in (False, True):
        task = Given("", lambda rng: (np.ones(4, np.float32),), (4,), starts_at_0=starts_at_0)
        assert is_untouched(as_wrong(task, out, np.ones(4, bool))) is not starts_at_0


@pytest.mark.parametrize(
    ("shape", "where", "told"),
    [
        ((4, 6), np.s_[:, :], ""),
        ((4, 6), np.s_[2, :], "row 2 of 4 x 6"),
        ((4, 6), np.s_[:, 5], "column 5 of 4 x 6"),
        ((4, 6), np.s_[1:3, 5], "rows 1 to 2 and column 5 of 4 x 6"),
        ((4, 6), np.s_[1, 0:5:2], "row 1 and columns 0 to 4, every 2 of 4 x 6"),
        ((9,), np.s_[2:5], "elements 2 to 4 of 9"),
        ((2, 2, 2), np.s_[0], ""),
    ],
)
def test_where_all_wrong_elements_are(shape, where, told):
    is_wrong = np.zeros(shape, bool)
    is_wrong[where] = True
    assert places(is_wrong) == (f"All wrong elements are in {told}." if told else "")


def test_rows_without_a_pattern_are_not_told():
    is_wrong = np.zeros((8, 6), bool)
    is_wrong[[0, 1, 5], 2] = True
    assert places(is_wrong) == "All wrong elements are in column 2 of 8 x 6."


SCALED = Matmul(5, 7, 6, alpha=3, beta=-2)
SQUARE = Matmul(6, 6, 6)


def product(task, spoil):
    """The results of a kernel that `spoil` makes of A, B and C in float64, all wrong."""
    a, b, c = (np.nan_to_num(each).astype(float) for each in task.inputs())
    out = spoil(a, b, c).astype(np.float32)
    return as_wrong(task, out, np.ones(out.shape, bool))


@pytest.mark.parametrize(
    ("task", "mistakes", "spoil", "told"),
    [
        (SCALED, of_terms, lambda a, b, c: a @ b - 2 * c, hints.NO_ALPHA),
        (SCALED, of_terms, lambda a, b, c: 3 * (a @ b - 2 * c), hints.ALPHA_FOR_ALL),
        (SCALED, of_terms, lambda a, b, c: 3 * a @ b, hints.NO_OLD),
        (SCALED, of_terms, lambda a, b, c: 3 * a @ b + c, hints.NO_BETA),
        (SCALED, of_terms, lambda a, b, c: -6 * a @ b - 2 * c, hints.BETA_FOR_ALL),
        (SCALED, of_terms, lambda a, b, c: 3 * a[:, :5] @ b[:5] - 2 * c, missing_terms(1, 6, False)),
        (SCALED, of_terms, lambda a, b, c: -2 * c, hints.NO_TERM),
        (SQUARE, of_terms, lambda a, b, c: a[:, :2] @ b[:2], missing_terms(4, 6, False)),
        (SQUARE, of_terms, lambda a, b, c: a[:, 1:] @ b[1:], missing_terms(1, 6, True)),
        (SQUARE, of_terms, lambda a, b, c: a[:, 2:] @ b[2:], missing_terms(2, 6, True)),
        (SQUARE, of_terms, lambda a, b, c: 0 * a, hints.NO_TERM),
        (SQUARE, of_places, lambda a, b, c: a @ b.T, hints.COLUMNS_OF_B),
        (SQUARE, of_places, lambda a, b, c: a.T @ b, hints.COLUMNS_OF_A),
        (Matmul(3, 4, 5), of_places, lambda a, b, c: np.resize(a, (3, 4)) @ b[:4], ""),
        (SQUARE, of_terms, lambda a, b, c: a @ b + 1, ""),
        (SQUARE, of_places, lambda a, b, c: a @ b + 1, ""),
    ],
)  # fmt: skip
def test_a_known_mistake_is_recognised_by_its_results(task, mistakes, spoil, told):
    assert known_mistake(product(task, spoil), mistakes) == told


@pytest.mark.parametrize(("matrix", "name"), [("A", "M"), ("A", "N"), ("B", "M"), ("B", "K")])
def test_rows_of_another_length(matrix, name):
    task = Matmul(3, 4, 5)
    length = task.sizes[name]

    def slanted(array):
        """The array whose row i is taken from index i * length on."""
        flat = list(array.ravel()) * 3
        rows, cols = array.shape
        return np.array([flat[row * length : row * length + cols] for row in range(rows)])

    wrong = product(task, lambda a, b, c: slanted(a) @ b if matrix == "A" else a @ slanted(b))
    told = known_mistake(wrong, of_places)
    row = {"A": hints.WRONG_ROWS_OF_A, "B": hints.WRONG_ROWS_OF_B}[matrix]
    assert told == row.format(name)


def test_a_known_mistake_is_told_before_a_place_and_without_a_hint():
    """The sum of column 0 alone ends early: a hint on columns would lead elsewhere."""
    a, b = (each.astype(float) for each in SQUARE.inputs()[:2])
    out, is_wrong = (a @ b).astype(np.float32), np.zeros((6, 6), bool)
    out[:, 0], is_wrong[:, 0] = (a[:, :5] @ b[:5])[:, 0], True
    told = named().for_results(as_wrong(SQUARE, out, is_wrong), launch(SQUARE))
    assert told == missing_terms(1, 6, False)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_no_mistake_is_looked_for_in_integers_or_in_what_is_not_finite(dtype):
    task = Matmul(6, 6, 6, dtype=dtype)
    out = np.zeros((6, 6), dtype) if dtype == "int32" else np.full((6, 6), np.inf, np.float32)
    assert known_mistake(as_wrong(task, out, np.ones((6, 6), bool)), of_terms) == ""


def test_no_mistake_of_a_product_is_looked_for_in_a_transpose():
    task = Transpose(4, 4)
    assert known_mistake(as_wrong(task, np.zeros((4, 4), np.float32), np.ones((4, 4), bool)), of_terms) == ""


@pytest.mark.parametrize(("off", "is_known"), [(0.9, True), (1.1, False)])
def test_how_near_the_results_of_a_known_mistake_must_be(off, is_known):
    """To within DIFFERENT times the tolerance."""
    allowed = hints.DIFFERENT * SQUARE.tolerance()
    wrong = product(SQUARE, lambda a, b, c: a @ b.T + off * allowed)
    assert bool(known_mistake(wrong, of_places)) is is_known


@pytest.mark.parametrize(
    ("count", "is_late", "numbers"), [(1, False, []), (2, False, ["2", "9"]), (8, True, ["8", "9"])]
)
def test_how_many_terms_are_missing(count, is_late, numbers):
    told = missing_terms(count, 9, is_late)
    assert re.findall(r"\d+", told) == numbers
    assert ("first" in told, "last" in told) == (is_late, not is_late)


class TestBlocksThatAreNoSquares:
    """Sides along x are for columns, and those along y for rows."""

    task = Matmul(18, 40, 16)  # in blocks of 16 x 4: 2 rows and 8 columns stick out

    @pytest.mark.parametrize(
        ("where", "is_at_edge"),
        [(17, True), (16, True), (15, False), (np.s_[:, 32], True), (np.s_[:, 31], False)],
    )
    def test_the_edges(self, where, is_at_edge):
        told = named().for_results(spoilt(self.task, where), launch(self.task, (16, 4)))
        assert told.endswith("<edges>" if is_at_edge else "<usual>")

    @pytest.mark.parametrize(("block", "sticks_out"), [((16, 8), True), ((8, 16), False)])
    def test_tiles_along_k_are_as_wide_as_the_block(self, block, sticks_out):
        task = Matmul(16, 16, 24)
        told = named().for_results(spoilt(task), launch(task, block))
        assert told == ("<edges>" if sticks_out else "<usual>")

    def test_any_side_makes_an_edge(self):
        for block, hint in (((4, 16), "<guard>"), ((16, 4), "<guard>"), ((2, 2), "<out_of_bounds>")):
            task = Matmul(18, 18, 16)
            assert named().for_finding(finding("memcheck", OUT), launch(task, block)) == hint

    def test_the_place_of_a_thread(self):
        """Thread (7, 3) of block (2, 4): column 2 * 16 + 7, row 4 * 4 + 3, one behind the last."""
        found = finding("memcheck", OUT, "", (2, 4, 0), (7, 3, 0))
        rows = [Matmul(rows, 40, 16) for rows in (19, 20)]
        assert [BY_PLACE.for_finding(found, launch(task, (16, 4))) for task in rows] == [
            "<guard>", "<out_of_bounds>",
        ]  # fmt: skip
        cols = [Matmul(21, cols, 16) for cols in (39, 40)]
        assert [BY_PLACE.for_finding(found, launch(task, (16, 4))) for task in cols] == [
            "<guard>", "<out_of_bounds>",
        ]  # fmt: skip

    def test_a_vector_has_no_rows_and_columns(self):
        vector = Given("", lambda rng: (np.ones(20, np.float32),), (20,))
        assert BY_PLACE.for_finding(finding("memcheck", OUT), launch(vector)) == "<guard>"


def test_how_far_a_known_mistake_may_be():
    """Four times the tolerance."""
    for times, is_known in ((3.9, True), (4.1, False)):
        wrong = product(SQUARE, lambda a, b, c, times=times: a @ b.T + times * SQUARE.tolerance())
        assert bool(known_mistake(wrong, of_places)) is is_known


def test_a_beta_of_0_keeps_nothing_of_the_old_elements():
    """C holds NaN before, which counts for nothing: the sums alone are compared."""
    for task in (Matmul(5, 7, 6, alpha=3), Matmul(5, 7, 6, alpha=3, beta=1)):
        assert known_mistake(product(task, lambda a, b, c, t=task: a @ b + t.beta * c), of_terms) == (
            hints.NO_ALPHA
        )


def test_alpha_of_1_is_not_missed():
    """With alpha = 1 and beta = 2 the old elements are forgotten, or not scaled."""
    task = Matmul(5, 7, 6, beta=2)
    assert known_mistake(product(task, lambda a, b, c: a @ b), of_terms) == hints.NO_OLD
    assert known_mistake(product(task, lambda a, b, c: a @ b + c), of_terms) == hints.NO_BETA
    assert known_mistake(product(task, lambda a, b, c: 2 * a @ b + 2 * c), of_terms) == hints.BETA_FOR_ALL


@pytest.mark.parametrize("index", [(0, 0), (3, 2)])
def test_terms_are_counted_in_any_wrong_element(index):
    """One element alone lacks two terms of six."""
    a, b = (each.astype(float) for each in SQUARE.inputs()[:2])
    out, is_wrong = (a @ b).astype(np.float32), np.zeros((6, 6), bool)
    out[index], is_wrong[index] = (a[:, 2:] @ b[2:])[index], True
    assert known_mistake(as_wrong(SQUARE, out, is_wrong), of_terms) == missing_terms(2, 6, True)


def test_all_wrong_elements_must_fit():
    wrong = product(SQUARE, lambda a, b, c: a @ b.T)
    wrong.output[5, 5] += 1
    assert known_mistake(wrong, of_places) == ""
    wrong.where[5, 5] = False  # it is right, so that it does not matter
    assert known_mistake(wrong, of_places) == hints.COLUMNS_OF_B


def test_one_row_or_column_of_all_is_told_by_its_number():
    for shape, where, told in (((1, 5), np.s_[0, 1], "column 1 of 1 x 5"), ((1,), np.s_[0], "")):
        is_wrong = np.zeros(shape, bool)
        is_wrong[where] = True
        assert places(is_wrong) == (f"All wrong elements are in {told}." if told else "")
