"""Accesses against the C sources' loops written out, the cache against a list, counts against formulas."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.cpu.cache_lines import (
    LINE,
    VERSIONS,
    Cache,
    Loops,
    Reuse,
    contents,
    count_misses,
    folded,
    missed,
    reuse,
)
from labkit.figures.cache_lines import cache_picture
from labkit.figures.svg import RED
from labkit.widgets import cache_view, explorer

SIZES = [(16, 8), (16, 16), (17, 8), (24, 16), (33, 24), (33, 40)]  # N, BLOCK
ALL_LOOPS = [Loops(version, N, block) for version in VERSIONS for N, block in SIZES]


# The accesses.


def walk(version, N, block):
    """Each access as (matrix, row, column), from the loops of kernels/matmul/cpu_*.c one by one."""
    if version == "three loops":
        for i in range(N):
            for j in range(N):
                for k in range(N):
                    yield from (("A", i, k), ("B", k, j))
                yield ("C", i, j)
    elif version == "loop order":
        for i in range(N):
            yield from (("C", i, j) for j in range(N))
            for k in range(N):
                yield ("A", i, k)
                for j in range(N):
                    yield from (("B", k, j), ("C", i, j))
    elif version == "simd":
        for i in range(N):
            yield from in_vectors(i, 0, N, 0, N, False)
    else:
        for i0 in range(0, N, block):
            for j0 in range(0, N, block):
                for k0 in range(0, N, block):
                    for i in range(i0, min(i0 + block, N)):
                        ends = min(j0 + block, N), min(k0 + block, N)
                        yield from in_vectors(i, j0, ends[0], k0, ends[1], "transposed" in version)


def in_vectors(i, j0, j1, k0, k1, transposed):
    j = j0
    while j < j1:
        width = 8 if j + 8 <= j1 else 1
        columns = range(j, j + width)
        if k0:
            yield from (("C", i, column) for column in columns)
        for k in range(k0, k1):
            yield ("A", i, k)
            yield from (("BT", column, k) if transposed else ("B", k, column) for column in columns)
        yield from (("C", i, column) for column in columns)
        j += width


@pytest.mark.parametrize("loops", ALL_LOOPS, ids=str)
def test_the_accesses_are_those_of_the_c_source(loops):
    lines = -(-(loops.N**2) // 16)
    begin = {"A": 0, "B": 16 * lines, "BT": 16 * lines, "C": 32 * lines}
    expected = [
        begin[name] + row * loops.N + col for name, row, col in walk(loops.version, loops.N, loops.block)
    ]
    assert loops.accesses().tolist() == expected


@pytest.mark.parametrize("loops", ALL_LOOPS, ids=str)
def test_the_accesses_make_the_product(loops):
    """Each B[k,j] meets the A[i,k] read last; each (i,j,k) comes once; and C is written after its
    last sum.
    """
    N, accesses = loops.N, loops.accesses()
    matrix, element = np.divmod(accesses, loops.lines_each * LINE)
    row, col = np.divmod(element, N)
    place = np.arange(len(accesses))
    last_a = np.maximum.accumulate(np.where(matrix == 0, place, 0))
    b = np.flatnonzero(matrix == 1)
    k, j = (col[b], row[b]) if loops.matrices[1] == "BT" else (row[b], col[b])
    i = row[last_a[b]]
    assert (col[last_a[b]] == k).all()
    A, B = np.random.default_rng(0).integers(-9, 9, (2, N, N))
    C = np.zeros((N, N), int)
    np.add.at(C, (i, j), A[i, k] * B[k, j])
    assert (A @ B == C).all() and len(np.unique((i * N + j) * N + k)) == len(b) == N**3
    last_sum, last_write = np.zeros((2, N, N), int)
    np.maximum.at(last_sum, (i, j), b)
    c = matrix == 2
    np.maximum.at(last_write, (row[c], col[c]), place[c])
    assert (last_write > last_sum).all()


@pytest.mark.parametrize("loops", ALL_LOOPS, ids=str)
def test_position_is_where_the_loops_are(loops):
    accesses, written = loops.accesses(), list(walk(loops.version, loops.N, loops.block))
    for part in (len(written) // 3, len(written)):
        latest = {name: place for name, *place in written[:part]}
        (i, k), b = latest["A"], latest[loops.matrices[1]]
        assert loops.position(accesses[:part]) == (i, b[0] if loops.matrices[1] == "BT" else b[1], k)


# The cache.

CACHES = [Cache(lines, ways) for lines in (1, 2, 4, 8) for ways in (1, 2, 4, 8) if ways <= lines]


def listed(lines, cache):
    """Misses and contents with a list for each set, the latest used at its end."""
    sets, misses = [[] for _ in range(cache.sets)], []
    for line in lines:
        held = sets[line % cache.sets]
        misses.append(line not in held)
        if line in held:
            held.remove(line)
        held.append(line)
        del held[: -cache.ways]
    return misses, {line for held in sets for line in held}


@given(lines=st.lists(st.integers(0, 20), min_size=1, max_size=200), cache=st.sampled_from(CACHES))
def test_the_cache_replaces_the_least_recently_used_line(lines, cache):
    misses, held = listed(lines, cache)
    assert missed(np.array(lines), cache).tolist() == misses
    now = contents(np.array(lines), cache).tolist()
    assert set(now) == held and len(now) == len(held)


@given(
    parts=st.lists(
        st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(1, 5)), min_size=3
    ),
    period=st.integers(1, 6),
    cache=st.sampled_from(CACHES),
)
def test_folded_accesses_stand_for_all(parts, period, cache):
    lines = np.array([line for part, times in parts for line in part * times])
    misses, _ = listed(lines, cache)
    shorter, times = folded(lines, period)
    assert times.sum() == len(lines) and (times > 0).all()
    now = missed(shorter, cache)
    counts = np.bincount(shorter[now], times[now], 10), np.bincount(lines[misses], minlength=10)
    assert (counts[0] == counts[1]).all()


def test_folding_leaves_two_of_a_repeated_stretch():
    shorter, times = folded(np.array([7, *[1, 2, 3] * 5, 1, 8]), 3)
    assert shorter.tolist() == [7, 1, 2, 3, 1, 2, 3, 1, 8]
    assert times.tolist() == [1, 1, 1, 1, 4, 4, 4, 1, 1]


@pytest.mark.parametrize("loops", [Loops(version, 17, 8) for version in VERSIONS], ids=str)
@pytest.mark.parametrize("cache", [Cache(8, 8), Cache(16, 4), Cache(32, 1)], ids=str)
def test_counts_are_those_of_the_listed_cache(loops, cache):
    lines = loops.accesses() // 16
    misses, _ = listed(lines.tolist(), cache)
    expected = np.zeros((3, loops.lines_each), int)
    np.add.at(expected, tuple(np.divmod(lines[misses], loops.lines_each)), 1)
    counted = count_misses(loops, cache)
    assert (counted.fetched == expected).all()
    assert counted.misses == sum(misses) and counted.per_multiply_add == sum(misses) / 17**3


@pytest.mark.parametrize("loops", ALL_LOOPS, ids=str)
def test_a_cache_that_holds_everything_fetches_each_line_once(loops):
    assert (count_misses(loops, Cache(512, 512)).fetched == 1).all()
    assert loops.compulsory == 3 * -(-(loops.N**2) // 16)


def misses_of(version, N, block, cache):
    return count_misses(Loops(version, N, block), cache).fetched.sum(axis=1).tolist()


def test_a_cache_of_one_line_misses_at_each_change_of_the_line():
    one = Cache(1, 1)
    # N = 16: a row is a line. A and B take turns, and C comes between two sums.
    assert misses_of("three loops", 16, 8, one) == [16**3, 16**3, 16**2]
    # A[i,k], then B and C take turns; before, each row of C is set to 0.
    assert misses_of("loop order", 16, 8, one) == [16**2, 16**3, 16 + 16**3]
    # Vectors: 8 columns of B are one change.
    assert misses_of("simd", 16, 8, one) == [16 * 2 * 16, 16 * 2 * 16, 16 * 2]


@pytest.mark.parametrize("N", [32, 48, 64])
def test_three_loops_fetch_b_at_each_step_where_a_column_does_not_fit(N):
    lines = N * N // 16
    column = N + N // 16 + 1  # lines of a column of B, a row of A and an element of C
    small = 16 if N == 32 else 32
    assert misses_of("three loops", N, 8, Cache(small, small)) == [N * lines, N**3, N * N]
    # Where a column fits, 16 neighbouring columns use its lines; the next row of C fetches all of B again.
    assert misses_of("three loops", N, 8, Cache(column, column)) == [lines, N * lines, lines]


@pytest.mark.parametrize("N", [48, 64])
def test_loop_order_fetches_b_once_a_row_of_c(N):
    lines = N * N // 16
    assert misses_of("loop order", N, 8, Cache(64, 64)) == [lines, N * lines, lines]


@pytest.mark.parametrize("N, block, cache", [(48, 16, 32), (64, 16, 32), (64, 32, 128)])
@pytest.mark.parametrize("version", ["blocked", "blocked, B transposed"])
def test_blocks_that_fit_fetch_each_matrix_once_a_block_column(version, N, block, cache):
    """B by each block row of C, A by each block column, C by each block of K, but for what stays."""
    most = N * N // 16 * N // block
    fetched = misses_of(version, N, block, Cache(cache, cache))
    assert all(most / 2 <= each <= most for each in fetched)
    if (N, block, cache) == (48, 16, 32):  # no block is left from the one before
        assert fetched == [most] * 3


def test_few_ways_make_conflicts_where_rows_are_a_power_of_two_apart():
    """Rows of 64 floats are 4 lines apart: 16 rows of a block fill 4 of 16 sets, and A and C want
    these, too.
    """
    assert sum(misses_of("blocked", 64, 16, Cache(64, 4))) > 5 * sum(
        misses_of("blocked", 64, 16, Cache(64, 64))
    )


def test_reuse_tells_what_the_next_round_still_finds():
    # A column of B (48), a row of A (3), an element of C (1). 51 lines lose those of B and C just before they
    # are needed; those of A are used 16 times in a row, so that only 36 others come in between.
    for lines, kept in ((36, 0), (51, 3), (52, 52)):
        assert reuse(Loops("three loops", 48, 16), Cache(lines, lines)) == Reuse("element of C", 52, 52, kept)
    # 16 lines of B, one of A and one of C. Between two uses of a line of B come the other 15, the line of C,
    # the next row's line of A and the old one too, save for the last line of B, which comes after that.
    for lines, kept in ((17, 0), (18, 1), (19, 16)):
        again = reuse(Loops("blocked", 48, 16), Cache(lines, lines))
        assert (again.name, again.touched, again.again, again.kept) == ("row of a block", 18, 16, kept)
    again = reuse(Loops("loop order", 48, 16), Cache(256, 256))
    assert (again.name, again.touched, again.again, again.kept) == ("row of C", 144 + 6, 144, 144)
    again = reuse(Loops("simd", 48, 16), Cache(32, 32))
    assert (again.name, again.touched, again.again) == ("vector of 8 elements of C", 52, 52)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Cache(32, 3), "32 lines do not make sets of 3"),
        (lambda: Cache(0, 1), "0 lines"),
        (lambda: Loops("fast", 32, 8), "no version 'fast'. Choose one of three loops; loop order"),
        (lambda: Loops("simd", 65, 8), "N=65 cannot be drawn line by line. Choose 16 to 64"),
        (lambda: Loops("blocked", 32, 12), "BLOCK=12: a block holds whole vectors. Choose 8, 16, 24"),
        (lambda: cache_picture(Loops("simd", 16, 8), Cache(8, 8), 0), "moment 0"),
    ],
)
def test_what_does_not_exist_is_refused(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


# The picture and the explorer.

PLACES = [
    ("three loops", 48, 16, 32, 32, 40),
    ("loop order", 64, 16, 64, 4, 100),
    ("simd", 16, 8, 8, 1, 1),
    ("blocked", 33, 24, 128, 128, 77),
    ("blocked, B transposed", 64, 64, 8, 1, 100),
]


def drawn(picture):
    """Return all elements of a picture, and the texts."""
    found = list(ElementTree.fromstring(str(picture)).iter())
    return found, [each.text for each in found if each.tag.endswith("}text")]


def boxes(path):
    """Return the corners and widths of a path's boxes."""
    found = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", path)
    return [tuple(map(float, each)) for each in found]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_picture_says_and_shows_the_counts(place):
    version, N, block, lines, ways, moment = place
    loops, cache = Loops(version, N, block), Cache(lines, ways)
    picture, counted = cache_picture(loops, cache, moment), count_misses(loops, cache)
    assert picture.alt.startswith(f"{version}: ") and f" {counted.misses:,} misses" in picture.alt
    found, texts = drawn(picture)
    accesses = loops.accesses()
    _, held = listed((accesses[: -(-len(accesses) * moment // 100)] // 16).tolist(), cache)
    paths = [each for each in found if each.tag.endswith("}path")]
    frames = [each.get("d") for each in paths if each.get("stroke") == RED]
    for number, name in enumerate(loops.matrices):
        fetched = counted.fetched[number].tolist()
        assert any(text.startswith(f"{name}: {sum(fetched):,} misses") for text in texts)
        tip = rf"Line (\d+) of {name}: fetched (?:(once)|([\d,]+) times)\."
        told = [(re.fullmatch(tip, each.get("data-tip") or ""), each) for each in paths]
        own = [(match, each) for match, each in told if match]
        assert [int(match[1]) for match, _ in own] == list(range(len(fetched)))
        assert [1 if match[2] else int(match[3].replace(",", "")) for match, _ in own] == fetched
        shades = [each.get("fill") for _, each in own]
        assert all(
            (shades[0] == shade) == (fetched[0] == count)
            for shade, count in zip(shades, fetched, strict=True)
        )
        area = sum((width + 1) / (224 / N) for _, each in own for *_, width in boxes(each.get("d")))
        assert area == pytest.approx(N * N, rel=1e-3)
        present = {line for line in range(len(fetched)) if line + number * loops.lines_each in held}
        assert boxes(frames[number]) == [
            box for match, each in own if int(match[1]) in present for box in boxes(each.get("d"))
        ]


def test_every_version_stands_beside_the_chosen_one():
    found, texts = drawn(cache_picture(Loops("simd", 32, 16), Cache(32, 32)))
    shown = [each.get("aria-label") for each in found if each.get("role") == "button"]
    counts = [count_misses(Loops(each, 32, 16), Cache(32, 32)).per_multiply_add for each in VERSIONS]
    assert shown == [
        f"{version}: {count:.2g} misses per multiply-add."
        for version, count in zip(VERSIONS, counts, strict=True)
    ]
    assert {f"{count:.2g}" for count in counts} <= set(texts)


def text_of(*place):
    return cache_view.cache_view(*place).text


def test_the_text_says_the_figures_and_what_would_mend_them():
    text = text_of("three loops", 48, 16, 32, 32, 40)
    assert "119,808 misses; 432 is the least possible, each line once." in text
    assert "first element of C touches 52 lines, the second 52 of these again" in text
    assert "holds 32 lines and still has none of the 52" in text
    assert "loop order" in text.splitlines()[-1] and "7,200 misses" in text
    # Columns 0 to 29 of a row of A are in 2 lines, C[i, j - 1] in 1; the other 29 are the latest rows of B.
    assert (
        "After 40 % of the accesses, at i = 19, j = 9, k = 29, it holds 2 of A, 29 of B and 1 of C." in text
    )
    assert "Best is BLOCK = 16: 1,296 misses." in text_of("loop order", 48, 16, 32, 32, 40)
    assert "holds 32 lines and still has all of the 16" in text_of("blocked", 48, 16, 32, 32, 40)
    assert "does not stay in the cache. Best is BLOCK = 16" in text_of("blocked", 48, 40, 32, 32, 40)
    assert "A larger block is used more often" in text_of("blocked", 48, 8, 32, 32, 40)
    assert "Nothing is left to mend" in text_of("simd", 16, 8, 64, 64, 40)
    assert "8 numbers from 8 rows of BT" in text_of("blocked, B transposed", 32, 8, 64, 64, 40)
    few = text_of("blocked", 64, 16, 64, 4, 40)
    fewer = sum(misses_of("blocked", 64, 16, Cache(64, 64)))
    assert f"has 4 possible places in this cache. With free choice of the place there are {fewer:,}" in few


@pytest.mark.parametrize("N, lines", [(33, 32), (48, 64)])
def test_no_block_beats_the_one_that_the_text_names(N, lines):
    best = int(re.search(r"BLOCK = (\d+): ([\d,]+) misses", text_of("simd", N, 8, lines, lines, 40))[1])
    misses = {block: sum(misses_of("blocked", N, block, Cache(lines, lines))) for block in range(8, N + 8, 8)}
    assert misses[best] == min(misses.values())


def test_the_explorer_offers_what_goes_together():
    shown = cache_view.cache()
    assert "119,808 misses" in shown.current().conclusion
    assert re.search('aria-label="three loops: [^"]* 119,808 misses', shown.shown["pictures"][0])
    for name, value, expected in (
        ("version", "blocked", "1,296 misses"),
        ("block", 48, "BLOCK = 48"),
        ("N", 33, "BLOCK = 40"),
        ("lines", 8, "The cache holds 8 lines"),
        ("ways", 2, "2 possible places"),
        ("moment", 60, "misses"),
    ):
        before = shown.shown["pictures"]
        assert expected in shown.set(**{name: value}).text and shown.shown["pictures"] != before
    shown.set(ways=8)
    shown.set(lines=256)
    assert shown.values["ways"] == 256  # "all" stays "all"


def test_an_error_is_shown_as_a_sentence():
    shown = explorer.drawn(
        cache_view.cache_view, "simt", version="simd", N=16, block=9, lines=8, ways=8, moment=9
    )
    assert "BLOCK=9: a block holds whole vectors" in shown
