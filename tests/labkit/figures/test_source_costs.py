"""What a profile says of the source: the worst line in a sentence, a table in a notebook and a terminal."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from small_kernels import small

import labkit
from labkit import kernels, problem
from labkit.figures.source_costs import Heat, show
from simt.common.occupancy import gpu
from simt.compiler.nvrtc import Resources
from simt.counters.profile import CONFLICTS, SECTORS, Counts, LaunchContext, Profile
from simt.launch.sample import Sample
from simt.ptx import Address, Guard, Instruction, Register, Symbol, Vector

SIGNATURE = 'extern "C" __global__ void f(const float* in, float *out, int rows, const int cols)'
SOURCE = ["// before", SIGNATURE, "{", "  a;", "  b;", "  c<&>;", "  d;", "}", "", "void after() {}"]


def memory(name, space, line, type_="f32", items=1):
    value = Vector((Register("%f1"),) * items) if items > 1 else Register("%f1")
    address = Address(Register("%rd1"))
    parts = (name, space, f"v{items}", type_) if items > 1 else (name, space, type_)
    return Instruction(parts, (address, value) if name == "st" else (value, address), None, line)


BRANCH = Instruction(("bra",), (Symbol("end"),), Guard(Register("%p1"), False), 5)


def add(line):
    return Instruction(("add", "f32"), (Register("%f1"), Register("%f2"), Register("%f3")), None, line)


def profiled(*sites, source=SOURCE, scalars=(None, None, 100, 300), sample=None):
    """A profile of instructions with their counts: ten executions with all lanes unless `site` says more."""
    names = ("executed", "active", "divergent", "requests", "threads", "sectors", "passes", "conflicts")
    rows = []
    for instruction, given in sites:
        is_memory = instruction.parts[0] in ("ld", "st", "red")
        row = dict.fromkeys(names, 0) | {"executed": 10, "active": 320}
        row |= {"requests": 10, "threads": 320} if is_memory else {}
        rows.append(row | {name: value for name, value in given.items() if name != "stride"})
    columns = {name: np.array([row[name] for row in rows], np.int64) for name in names}
    used = np.zeros(len(sites), np.int64)
    strides = [given.get("stride") for _, given in sites]
    counts = Counts(**columns, strides=strides, used_bytes=used, turns=used)
    launch = LaunchContext(
        (1, 1, 1), (320, 1, 1), 0, lambda arch: Resources(32, 0, 0, 0, 0), gpu("H200"), scalars
    )
    return Profile([instruction for instruction, _ in sites], lambda: counts, source, sample, launch)


def sentence(*sites, **options):
    (found,) = show(profiled(*sites, **options)).sentences
    return found


SHORT = {
    "SPR": "sectors per request",
    "NEAR": "neighbouring threads",
    "CONFLICT": "bank conflict: the threads of a warp",
}
FINE = (memory("ld", "global", 4), {"sectors": 40, "stride": 4})


@pytest.mark.parametrize(
    "instruction, counts, expected",
    [
        (
            memory("st", "global", 5),
            {"sectors": 320, "stride": 400},
            "5: 32 SPR, 4 would do; NEAR write rows = 100 floats apart.",
        ),
        (
            memory("ld", "global", 5, "f64"),
            {"sectors": 320, "stride": -2400},
            "5: 32 SPR, 8 would do; NEAR read cols = 300 doubles apart.",
        ),
        (
            memory("ld", "global", 5, "b16"),
            {"sectors": 40, "stride": 4},
            "5: 4 SPR, 2 would do; NEAR read 2 elements of 2 bytes apart.",
        ),
        (
            memory("ld", "global", 5, items=4),
            {"sectors": 320, "stride": 1600},
            "5: 32 SPR, 16 would do; NEAR read rows = 100 elements of 16 bytes apart.",
        ),
        (
            memory("ld", "global", 5),
            {"sectors": 80, "stride": 6},
            "5: 8 SPR, 4 would do; NEAR read 6 bytes apart.",
        ),
        (
            memory("red", "global", 5),
            {"sectors": 200, "stride": None},
            "5: 20 SPR, 4 would do; what NEAR update is not evenly spaced.",
        ),
        (  # a request has one sector at the least
            memory("ld", "global", 5),
            {"threads": 20, "sectors": 20, "stride": 4096},
            "5: 2 SPR, 1 would do; NEAR read 1,024 floats apart.",
        ),
        (
            memory("ld", "shared", 6),
            {"conflicts": 310, "stride": 128},
            "6: 32-way CONFLICT read words 32 apart, all in one bank; a row of "
            "33 instead of 32 would spread them.",
        ),
        (
            memory("st", "shared", 6),
            {"conflicts": 30, "stride": -16},
            "6: 4-way CONFLICT write words 4 apart, in 8 of the 32 banks; a row "
            "of 5 instead of 4 would spread them.",
        ),
        (  # 16 lanes each of two halves in the same pair of banks: 32 passes, where 2 would do
            memory("ld", "shared", 6, "f64"),
            {"conflicts": 300, "stride": 256},
            "6: 16-way CONFLICT read words 64 apart, in 2 of the 32 banks; a row of "
            "33 instead of 32 would spread them.",
        ),
        (
            memory("ld", "shared", 6),
            {"conflicts": 15, "stride": None},
            "6: 2.5-way CONFLICT read different words of the same bank.",
        ),
    ],
)
def test_the_worst_line_in_a_sentence(instruction, counts, expected):
    found = sentence(FINE, (instruction, counts))
    for short, long in SHORT.items():
        expected = expected.replace(short, long)
    assert found == f"line {expected}"


def test_the_dearest_line_is_the_worst_not_the_one_with_most_sectors_a_request():
    seldom = memory("ld", "global", 4), {"requests": 1, "threads": 32, "sectors": 32}
    often = memory("ld", "global", 6), {"sectors": 160, "stride": 16}
    assert sentence(seldom, often).startswith("line 6: 16 sectors per request, 4 would do;")


def test_a_number_that_two_arguments_have_goes_without_a_name():
    site = memory("ld", "global", 5), {"sectors": 320, "stride": 400}
    assert "threads read 100 floats apart" in sentence(site, scalars=(None, None, 100, 100))
    bounded = [line.replace("void f(", "void __launch_bounds__(256, 2) f(") for line in SOURCE]
    assert "threads read rows = 100 floats apart" in sentence(site, source=bounded)


@pytest.mark.parametrize(
    "active, share", [(160, "half"), (80, "three quarters"), (240, "a quarter"), (200, "38%")]
)
def test_a_branch_that_parts_warps(active, share):
    found = sentence(FINE, (BRANCH, {"divergent": 7}), (add(6), {"active": active}))
    assert found == f"line 5: {share} of the threads wait: the branch parts the warp, 7 of 10 times."


def test_lanes_that_are_idle_before_the_branch_do_not_wait_for_it():
    before = memory("ld", "global", 4), {"sectors": 40, "active": 32}
    found = sentence(before, (BRANCH, {"divergent": 7}), (add(6), {"active": 160}))
    assert found.startswith("line 5: half of the threads wait")


def test_a_branch_whose_sides_are_short_is_not_worth_a_word():
    long = add(7), {"executed": 1000, "active": 32000}
    assert sentence((BRANCH, {"divergent": 1}), (add(6), {"active": 160}), long).startswith(
        "No line stands out"
    )


def test_each_kind_of_trouble_gets_its_sentence():
    heat = show(
        profiled(
            (memory("ld", "global", 4), {"sectors": 320}),
            (memory("ld", "shared", 4), {"conflicts": 10}),
            (BRANCH, {"divergent": 10}),
            (add(6), {"active": 160}),
        )
    )
    assert [text.split(":")[0] for text in heat.sentences] == ["line 4", "line 4", "line 5"]


class Table(HTMLParser):
    """Texts of the tables' cells, row by row, their classes, items of lists, and what belongs to a line."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.kinds, self.items, self.style = [], [], [], False
        self.marked, self.tips, self.inside = [], {}, []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.style = self.style or tag == "style"
        self.inside.append((tag, dict(attrs)))
        mark = re.fullmatch(r"l(\d+)", dict(attrs).get("class") or "")
        if mark:
            assert dict(attrs)["tabindex"] == "0"
            self.marked.append((tag, int(mark[1])))
        if tag == "tr":
            self.rows.append([])
            self.kinds.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.kinds[-1].append(dict(attrs).get("class"))
        elif tag == "li":
            self.items.append("")

    def handle_endtag(self, tag):
        self.style = self.style and tag != "style"
        while self.inside.pop()[0] != tag:
            pass

    def handle_data(self, data):
        within = dict(self.inside)
        if "td" in within or "th" in within:
            self.rows[-1][-1] += data
        elif "li" in within:
            self.items[-1] += data
        elif "p" in within:
            self.tips[within["p"]["class"]] = data


HEAT = (
    (memory("ld", "global", 4), {"sectors": 40}),
    (memory("st", "global", 4), {"sectors": 320}),
    (memory("ld", "shared", 6), {"conflicts": 310}),
    (add(7), {"active": 160}),
)


def test_the_table_has_a_row_a_line_of_the_kernel_and_values_as_text():
    heat = show(profiled(*HEAT))
    table = Table(heat._repr_html_())
    assert table.rows[0] == ["line", "sectors /\xa0request", "conflicts /\xa0request", "idle lanes", "source"]
    assert table.rows[1:8] == [
        ["2", "", "", "", SIGNATURE],
        ["3", "", "", "", "{"],
        ["4", "ld 4 · st 32 !", "", "0", "  a;"],
        ["5", "", "", "", "  b;"],
        ["6", "", "ld 31 !", "0", "  c<&>;"],
        ["7", "", "", "16 of 32 !", "  d;"],
        ["8", "", "", "", "}"],
    ]
    assert [kind for row in table.kinds for kind in row if kind] == ["much", "none", "much", "none", "much"]
    assert table.items == heat.sentences
    assert "c<&>" not in heat._repr_html_()


def test_a_line_shows_what_was_counted_there():
    tips = Table(show(profiled(*HEAT))._repr_html_()).tips
    assert tips == {
        "hint": "counted by the simulator. Point at a line to see what was counted.",
        "t4": "line 4: read: 10 requests, 40 sectors; write: 10 requests, 320 sectors; "
        "20 instructions of warps, at PTX level",
        "t6": "line 6: read: 10 requests, 310 conflicts; 10 instructions of warps, at PTX level",
        "t7": "line 7: 10 instructions of warps, at PTX level",
    }


def test_sentences_rows_and_counters_of_a_line_are_marked_together():
    more = memory("ld", "global", 5), {"sectors": 120}
    heat = show(profiled(*HEAT, more, (BRANCH, {"divergent": 7})))
    html = heat._repr_html_()
    table = Table(html)
    assert table.rows[8:] == [
        ["counter", "total", "lines"],
        ["requests, global loads", "20", "line 4: 10 (50%) line 5: 10 (50%)"],
        ["sectors, global loads", "160", "line 5: 120 (75%) line 4: 40 (25%)"],
        ["requests, global stores", "10", "line 4: 10 (100%)"],
        ["sectors, global stores", "320", "line 4: 320 (100%)"],
        ["requests, shared loads", "10", "line 6: 10 (100%)"],
        ["bank conflicts, shared loads", "310", "line 6: 310 (100%)"],
        ["branches that part a warp", "7", "line 5: 7 (100%)"],
    ]
    for tag, lines in (("li", [4, 6, 5]), ("tr", [4, 5, 6, 7])):
        assert [line for found, line in table.marked if found == tag] == lines
    for line in (4, 5, 6, 7):
        assert f".labkit-heat:has(.l{line}:is(:hover, :focus)) .l{line} {{background:" in html
    sectors = {row[0]: row[1] for row in table.rows[9:]}
    assert sectors["sectors, global loads"] == f"{heat.metrics[SECTORS.format('ld')]:,}"
    assert sectors["bank conflicts, shared loads"] == f"{heat.metrics[CONFLICTS.format('ld')]:,}"


def test_a_terminal_gets_the_same():
    lines = repr(show(profiled(*HEAT))).splitlines()
    assert lines[0].startswith("line 4: 32 sectors per request")
    assert lines[-1] == "(counted by the simulator)"
    assert "   4  ████████ ld 4 · st 32 !                                0             a;" in lines
    assert "   6                           ████████ ld 31 !              0             c<&>;" in lines
    assert "   7                                                ████░░░░ 16 of 32 !    d;" in lines


def test_columns_that_a_kernel_does_not_need_are_left_out():
    assert Table(show(profiled(FINE))._repr_html_()).rows[0] == [
        *("line", "sectors /\xa0request", "idle lanes", "source")
    ]


def test_a_sample_says_so():
    heat = show(profiled(*HEAT, sample=Sample(np.array([0, 9]), 10)))
    assert "2 of 10 blocks, scaled" in heat.label
    assert heat.label in heat._repr_html_()
    assert heat.label in repr(heat)


def test_labkit_profile_is_shown_and_has_the_figures_of_the_profile():
    case = problem("transpose", 64, 64)
    heat = labkit.profile(kernels.load("transpose/1_naive"), case, 32)
    assert isinstance(heat, Heat)
    assert labkit.show(heat) is heat
    assert labkit.show(heat.profile).metrics is heat.metrics
    assert heat.lines is heat.profile.lines
    assert heat.ptx_lines is heat.profile.ptx_lines
    assert heat.ptx == heat.profile.ptx
    assert heat.occupancy.blocks == 2
    assert any(text.startswith("line 14: 32 sectors per request, 4 would do") for text in heat.sentences)
    assert "out[col * rows + row] = in[row * cols + col];" in heat._repr_html_()
    assert "[TILE]" not in heat._repr_html_()


# The later products are longer to compile, and no other text.
@pytest.mark.parametrize("name", [*kernels.names("matmul")[:7], *kernels.names("transpose")])
def test_the_kernels_of_the_course_can_be_shown(name):
    case = problem("matmul", 64, 64, 64) if name.startswith("matmul") else problem("transpose", 64, 64)
    kernel = kernels.load(name, **small(name))
    heat = labkit.show(kernel.profile(*kernels.launch(name, case, **small(name)), case.args(np)))
    shown = Table(heat._repr_html_())
    source = [row[-1] for row in shown.rows if row[0].isdecimal()]
    assert any(line.startswith('extern "C" __global__ void') for line in source)
    assert source[-1].startswith("}")
    assert repr(heat).count("\n") >= len(source)
