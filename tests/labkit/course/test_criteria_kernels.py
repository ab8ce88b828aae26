"""Criteria for kernels on small launches: counts are made by hand, and goals are met or missed by one."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import simt
from labkit.course import fresh_inputs
from labkit.course.criteria import kernels
from labkit.course.criteria.hints import Hints
from labkit.course.criteria.kernels import Shares
from labkit.course.criteria.launches import Given, Launch, Wrong, in_blocks, of_vector, tiled
from labkit.course.exercise import Criterion, Unmet
from labkit.kernels.matmul.family import Matmul
from simt import Finding
from simt.common.compare import Mismatch
from simt.common.errors import InvalidAccess, SimtError

HEAD = 'extern "C" __global__ void copy(const float* in, float* out, int n)\n{\n'
INDEX = "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
COPY = "    if (i < n)\n        out[i] = in[i];\n"
TWICE = (
    COPY + "    if (i < n && n > 128 && in[n - 1 - i] < 0)\n        out[i] = 0;\n"
)  # 0 to n - 1 are never < 0


def kernel(body=COPY, top="", index=INDEX):
    return simt.RawModule(code=f"{top}{HEAD}{index}{body}}}").get_function("copy")


def copied(rng, n=100):
    x = np.arange(n, dtype=np.float32)
    return x, x


def vector(n=128, threads=32):
    """A launch that copies n elements, one by each thread."""
    return of_vector(partial(copied, n=n), threads, n)


def refused(criterion, answer):
    """The message with which a criterion refuses an answer."""
    with pytest.raises(Unmet) as unmet:
        (criterion.test if isinstance(criterion, Criterion) else criterion)(answer)
    return str(unmet.value)


def shares(launch=None, **asked):
    return Shares(lambda _: launch or vector(), **asked)


ONCE, BESIDE = "<once>", "<beside>"
ALONE = """    if (blockIdx.x || threadIdx.x)
        return;
    for (i = 0; i < n; ++i)
        out[i] = in[i];
"""
BY_LAST_BLOCK = """    if (blockIdx.x + 1 < gridDim.x)
        return;
    for (i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = in[i];
"""
WARP_0 = """    if (threadIdx.x >= 32)
        return;
    for (int k = 0; k < blockDim.x / 32; ++k) {
        i = blockIdx.x * blockDim.x + 32 * k + threadIdx.x;
        if (i < n)
            out[i] = in[i];
    }
"""
APART = "    i = (i % 16) * 8 + i / 16;\n" + COPY  # lanes 0 to 15 are 8 floats, a sector, apart


class TestShares:
    def test_one_element_per_thread_passes_all(self):
        shares(once=ONCE, beside=BESIDE, loads=128, elements=1).ask(kernel())

    def test_other_ways_of_fair_shares_pass(self):
        strided = "    for (; i < n; i += gridDim.x * blockDim.x)\n        out[i] = in[i];\n"
        shares(vector(256, 64), once=ONCE, beside=BESIDE, loads=256).ask(kernel(strided))

    def test_one_thread_of_all(self):
        """One of 32 lanes is active."""
        told = refused(shares().ask, kernel(ALONE))
        assert "of 32 lanes are active, and 128 elements" in told and told.endswith(kernels.OWN)

    @pytest.mark.parametrize(("lanes", "is_fair"), [(8, True), (7, False)])
    def test_a_quarter_of_the_lanes_is_enough(self, lanes, is_fair):
        """Each of these lanes has many elements; the others end at once, and their instructions are few."""
        some = f"""    if (threadIdx.x % 32 >= {lanes})
        return;
    for (i = blockIdx.x * 32 + threadIdx.x; i < blockIdx.x * 32 + 32; i += {lanes})
        for (volatile int k = 0; k < 300; ++k)
            out[i] = in[i];
"""
        ask = shares(factor=4).ask
        if is_fair:
            ask(kernel(some))
        else:
            assert "of 32 lanes are active" in refused(ask, kernel(some))

    @pytest.mark.parametrize(("elements", "is_fair"), [(4, True), (3, False)])
    def test_the_elements_of_a_thread(self, elements, is_fair):
        """32 threads write 128 elements."""
        launch = Launch(Given("n=128", copied_128, (128,)), (1,), (32,))
        ask = shares(launch, elements=elements).ask
        strided = kernel("    for (; i < n; i += 32)\n        out[i] = in[i];\n")
        assert ask(strided) is None if is_fair else "128 elements are written" in refused(ask, strided)

    def test_one_warp_of_each_block(self):
        told = refused(shares(vector(512, 128)).ask, kernel(WARP_0))
        assert "warp 0 of a block runs" in told and told.endswith(kernels.OWN)

    def test_one_block_of_all(self):
        told = refused(shares().ask, kernel(BY_LAST_BLOCK))
        assert "\n32 threads write 128 of the 128 elements" in told

    @pytest.mark.parametrize(("factor", "is_fair"), [(2, True), (1.9, False)])
    def test_the_factor_by_which_a_block_may_write_more(self, factor, is_fair):
        """Blocks 0 and 1 write half of the elements each, which is twice their share."""
        half = """    if (blockIdx.x > 1)
        return;
    for (i = 64 * blockIdx.x + threadIdx.x; i < 64 * blockIdx.x + 64; i += 32)
        out[i] = in[i];
"""
        ask = shares(factor=factor).ask
        assert (
            ask(kernel(half)) is None
            if is_fair
            else "32 threads write 64 of the 128" in refused(ask, kernel(half))
        )

    def test_elements_that_are_written_twice(self):
        twice = kernel(
            "    if (i < n) {\n        ((volatile float*)out)[i] = 0;\n        out[i] = in[i];\n    }\n"
        )
        shares().ask(twice)
        assert f"\n128 elements are written 256 times.\n{ONCE}" in refused(shares(once=ONCE).ask, twice)

    @pytest.mark.parametrize(("most", "is_met"), [(256, True), (255, False)])
    def test_elements_that_are_loaded(self, most, is_met):
        double = kernel(
            "    if (i < n)\n        out[i] = in[i] + 0 * ((volatile const float*)in)[n - 1 - i];\n"
        )
        ask = shares(loads=most).ask
        assert ask(double) is None if is_met else "load 256 elements; 255 are plenty" in refused(ask, double)

    def test_lanes_that_write_apart(self):
        """16 lanes write elements that are 8 apart, each in its own sector; the other 16 their neighbours."""
        shares().ask(kernel(APART))
        assert f"takes 16 sectors.\n{BESIDE}" in refused(shares(beside=BESIDE).ask, kernel(APART))

    def test_eight_sectors_are_not_too_many(self):
        apart = "    i = (i % 64) * 2 + i / 64;\n" + COPY  # 32 lanes, two floats apart: 8 sectors
        shares(beside=BESIDE).ask(kernel(apart))

    def test_together_with_another_criterion(self):
        def right(answer):
            if answer == "wrong":
                raise Unmet("wrong first")

        both = kernels.shared_out(Criterion("text", right), shares())
        assert both.text == "text" and refused(both, "wrong") == "wrong first"
        both.test(kernel())
        assert "lanes are active" in refused(both, kernel(ALONE))


class MadeUp:
    """A launch of 24 blocks of 64 threads, whose parts write as many elements as is said."""

    def __init__(self, output=1536, parts=(128,) * 12, threads=64, blocks=24):
        self.grid, self.block, self.parts, self.asked = (blocks,), (threads,), parts, []
        self.task = Given("", partial(copied, n=output), ())

    def written_by_part(self, kernel, most):
        self.asked.append(most)
        return list(self.parts)

    def __str__(self):
        return "made up"


class TestSharesOfMadeUpCounts:
    @pytest.fixture
    def ask(self, monkeypatch):
        """Ask for shares of a launch, with the counts of its profile."""

        def ask(launch, by_warp=(10, 10), active=32, stored=1536, loaded=1536, sectors=4.0, **asked):
            lines = pd.DataFrame(
                {
                    "op": ["ld", "st", "ld"],
                    "space": ["global", "global", "shared"],
                    "useful_bytes": [4 * loaded, 4 * stored, 4000],
                    "sectors_per_request": [99, sectors, 99],
                }
            )
            ptx = pd.DataFrame({"active": [active, active], "instructions": [1, 1], "line": [1, 2]})
            counted = SimpleNamespace(lines=lines, ptx_lines=ptx, by_warp=list(by_warp))
            monkeypatch.setattr(kernels, "profiled", lambda *_: counted)
            try:
                shares(launch, **asked).ask(None)
            except Unmet as unmet:
                return str(unmet)
            return ""

        return ask

    def test_fair_shares(self, ask):
        launch = MadeUp()
        assert ask(launch, once=ONCE, beside=BESIDE, loads=1536) == "" and launch.asked == [12]

    @pytest.mark.parametrize(("by_warp", "told"), [
        ((30, 10, 10, 10), ""),
        ((10, 10, 31, 10), "warp 2 of a block runs 31 instructions; on average a warp runs 15:"),
        ((10,), ""),
    ])  # fmt: skip
    def test_no_warp_runs_more_than_twice_the_average(self, ask, by_warp, told):
        found = ask(MadeUp(), by_warp=by_warp)
        assert told in found and bool(told) == bool(found)

    @pytest.mark.parametrize(("threads", "lanes", "is_fair"), [
        (64, 8, True), (64, 7.9, False), (16, 4, True), (16, 3.9, False), (32, 8, True), (32, 7.9, False),
    ])  # fmt: skip
    def test_a_quarter_of_the_lanes_that_a_warp_has(self, ask, threads, lanes, is_fair):
        found = ask(MadeUp(threads=threads), active=lanes)
        assert found == "" if is_fair else f" of {min(32, threads)} lanes are active" in found

    @pytest.mark.parametrize(("more", "is_fair"), [(0, True), (1, False)])
    def test_256_elements_for_each_thread(self, ask, more, is_fair):
        """Of 2 blocks of 2 threads."""
        launch = MadeUp(1024 + more, (512, 512), threads=2, blocks=2)
        found = ask(launch, active=2)
        assert found == "" if is_fair else "1025 elements are written" in found

    @pytest.mark.parametrize(("written", "told"), [(256, ""), (257, "128 threads write 257 of the 1536")])
    def test_a_part_writes_at_most_twice_its_share(self, ask, written, told):
        """Each of 12 parts has two of the 24 blocks: 128 elements are fair."""
        found = ask(MadeUp(parts=(0, 128, written)))
        assert told in found and bool(told) == bool(found)

    def test_the_last_part_may_have_fewer_blocks(self, ask):
        """Of 13 blocks of 64 elements the first part has two: it may write four times 64, others twice."""
        assert ask(MadeUp(832, (256, 128), blocks=13)) == ""
        assert "128 threads write 257" in ask(MadeUp(832, (257, 128), blocks=13))
        assert "\n64 threads write 129" in ask(MadeUp(832, (256, 129), blocks=13))

    @pytest.mark.parametrize(("counts", "asked", "told"), [
        ({"sectors": 8.0}, {"beside": BESIDE}, ""),
        ({"sectors": 8.1}, {"beside": BESIDE}, f"takes 8.1 sectors.\n{BESIDE}"),
        ({"sectors": 8.1}, {}, ""),
        ({"stored": 1537}, {"once": ONCE}, f"1536 elements are written 1537 times.\n{ONCE}"),
        ({"stored": 1537}, {}, ""),
        ({"stored": 100}, {"once": ONCE}, ""),
        ({"loaded": 7}, {"loads": 7}, ""),
        ({"loaded": 8}, {"loads": 7}, "load 8 elements; 7 are plenty"),
        ({"loaded": 1}, {"loads": 0}, "load 1 elements; 0 are plenty"),
        ({"loaded": 9999}, {}, ""),
    ])  # fmt: skip
    def test_what_is_asked_besides(self, ask, counts, asked, told):
        found = ask(MadeUp(), **counts, **asked)
        assert told in found and bool(told) == bool(found)


def copied_128(rng):
    return copied(rng, 128)


class TestOtherBlocks:
    asked = kernels.other_blocks(Criterion("text", lambda _: None), in_blocks(Matmul(20, 20, 8), 8, 4))
    body = """{ int col = blockIdx.x * %s + threadIdx.x, row = blockIdx.y * %s + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum; }"""

    def product(self, x, y, comment=""):
        head = "(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta)"
        code = f'{comment}extern "C" __global__ void matmul{head}\n{self.body % (x, y)}'
        return simt.RawModule(code=code).get_function("matmul")

    def test_a_kernel_that_asks_for_its_block_takes_any(self):
        self.asked.test(self.product("blockDim.x", "blockDim.y"))

    def test_the_two_sides_exchanged(self):
        assert kernels.BLOCKS in refused(self.asked, self.product("blockDim.y", "blockDim.x"))

    @pytest.mark.parametrize("comment", ["", "// blockDim\n", "/* blockDim.x */\n", "/* of blockDim\n*/"])
    def test_a_kernel_for_one_block_is_not_tried(self, comment):
        self.asked.test(self.product(16, 16, comment))

    def test_the_first_criterion_comes_first(self):
        def no(_):
            raise Unmet("first")

        assert refused(kernels.other_blocks(Criterion("", no)), None) == "first"


def test_a_block_of_other_sides_covers_the_output():
    launch = in_blocks(Matmul(20, 30, 8), 8, 4)
    assert (launch.grid, launch.block) == ((4, 5), (8, 4))


RACY = "    __shared__ float s[32];\n    s[threadIdx.x] = in[i];\n    out[i] = s[31 - threadIdx.x];\n"
HINTS = Hints("<usual>", "<out_of_bounds>", "<race>", edges="<edges>", guard="<guard>")


class TestRight:
    @pytest.mark.parametrize("make", [kernels.right_in, kernels.no_finding_in])
    def test_right_results_pass(self, make):
        make("text", lambda _: [vector(), vector(100)], HINTS).test(kernel())

    @pytest.mark.parametrize("make", [kernels.right_in, kernels.no_finding_in])
    def test_every_launch_is_tried(self, make):
        asked = make("text", lambda _: [vector(), vector(100)], HINTS)
        told = refused(asked, kernel("    if (i < n - (n == 100))\n        out[i] = in[i];\n"))
        assert told.startswith("n=100, grid 4, block 32\nout[99] is") and "99. 1 of 100" in told
        assert told.endswith("<guard>")

    def test_wrong_results_have_the_hint_that_fits(self):
        asked = kernels.right_in("text", lambda _: [vector()], HINTS)
        assert refused(asked, kernel("    out[i] = 2 * in[i];\n")).endswith("<usual>")

    def test_an_error_has_the_hint_that_fits(self):
        asked = kernels.right_in("text", lambda _: [vector(128)], HINTS)
        told = refused(asked, kernel("    out[i] = in[i + (1 << 24)];\n"))
        assert "line 4: invalid global read of 4 bytes" in told and told.endswith("<out_of_bounds>")

    def test_wrong_results_are_told_with_the_race_that_makes_them(self):
        asked = kernels.right_in("text", lambda _: [vector(64, 64)], HINTS)
        told = refused(asked, kernel(RACY.replace("[32]", "[64]").replace("31", "63")))
        assert "should be" in told and "racecheck finds: line 5: race (write after read)" in told
        assert told.endswith("<race>")

    def test_no_finding_sees_a_race_whose_results_are_right(self):
        zeros = "    __shared__ float s[64];\n    s[threadIdx.x] = 0;\n"
        stored = kernel(f"{zeros}    out[i] = in[i] + s[63 - threadIdx.x];\n")
        told = refused(kernels.no_finding_in("text", lambda _: [vector(64, 64)], HINTS), stored)
        assert "racecheck finds" in told and told.endswith("<race>")

    def test_a_race_is_told_with_both_lines(self):
        found = Finding("racecheck", "race", 3, (0, 0, 0), (1, 0, 0), "race", "x = s[0];", other_line=2)
        assert kernels.both_sides(found, kernel()).endswith("\n       2 | {")
        for alone in (0, 3):
            same = Finding("racecheck", "race", 3, (0, 0, 0), (1, 0, 0), "race", "x", other_line=alone)
            assert kernels.both_sides(same, kernel()) == str(same)


class TestAtMost:
    """APART: 16 sectors per request, in the loads of line 6 and in its stores."""

    def asked(self, most, what="sectors_per_request"):
        return kernels.at_most(most, what, "text", vector, hint="<hint>")

    def test_the_goal_is_met(self):
        self.asked(16).test(kernel(APART))
        self.asked(4).test(kernel())

    def test_the_goal_is_missed(self):
        told = refused(self.asked(15), kernel(APART))
        assert "\nline 6 has 16 sectors per request; the goal is at most 15\n    6 | " in told
        assert told.endswith("\n<hint>")

    def test_the_worst_line_is_told(self):
        both = "    float x = in[i];\n    out[i] = x;\n    i = (i % 16) * 8 + i / 16;\n    out[i] = in[i];\n"
        assert "line 7 has" in refused(self.asked(3), kernel(both))

    def test_conflicts(self):
        """Lanes 32 words apart: each of 32 lanes waits for the 31 before it."""
        column = (
            "    __shared__ float s[32 * {pad}];\n    s[threadIdx.x * {pad}] = in[i];\n    __syncthreads();\n"
        )
        column += "    out[i] = s[threadIdx.x * {pad}];\n"
        self.asked(0, "conflicts").test(kernel(column.format(pad=33)))
        assert "31 conflicts" in refused(
            kernels.at_most(30, "conflicts", "", lambda: vector(32), hint=""), kernel(column.format(pad=32))
        )


class TestLoads:
    """Four warps load an element per lane."""

    def asked(self, most, launch=None, **more):
        return kernels.loads_in(most, "text", lambda _: launch or vector(), (128,), hint="<hint>", **more)

    def test_the_goal_is_met_and_missed(self):
        self.asked(4).test(kernel())
        told = refused(self.asked(3), kernel())
        assert told.startswith("n=128, grid 4, block 32\n4 requests to load; the goal is at most 3\n")
        assert "4 requests\n" in told and told.endswith("<hint>")

    def test_the_memories_that_count(self):
        self.asked(0, spaces=("shared",)).test(kernel())
        assert "4 requests" in refused(self.asked(0, spaces=("global",)), kernel())

    def test_atomics_count_for_each_lane(self):
        added = kernel("    out[i] = atomicAdd((float*)&in[i], 0.0f);\n")
        self.asked(128).test(added)
        assert "128 requests to load; the goal is at most 127\n" in (told := refused(self.asked(127), added))
        assert told.endswith(f"{kernels.ATOMIC}<hint>")

    def test_a_launch_of_another_size(self):
        """The goal is for the first size, and grows."""
        sizes = "text", vector, (128,), (256,)
        kernels.loads_in(4, *sizes, hint="").test(kernel())
        told = refused(kernels.loads_in(4, *sizes, hint=""), kernel(TWICE))
        assert "16 requests to load; the goal is at most 8" in told


class TestSectors:
    """128 floats are 16 sectors; APART touches 16 per warp."""

    def test_the_goal_is_met_and_missed(self):
        kernels.few_sectors(kernel(), vector(), 16, "told", "<hint>")
        told = refused(lambda k: kernels.few_sectors(k, vector(), 15, "told", "<hint>"), kernel())
        assert told.startswith("told: 16 sectors; the goal is at most 15\n") and told.endswith("\n<hint>")

    def test_who_asks_apart_is_told_so(self):
        """64 sectors of which each lane wants a word: 512 bytes, no more than 16 sectors hold."""
        told = refused(lambda k: kernels.few_sectors(k, vector(), 63, "told", "<hint>"), kernel(APART))
        assert told.startswith("told: 64 sectors; ") and told.endswith(kernels.APART)
        kernels.few_sectors(kernel(APART), vector(), 64, "told", "<hint>")


class TestProfiled:
    def test_the_result_must_be_right(self):
        told = refused(lambda k: kernels.profiled(k, vector(), "<hint>"), kernel("    out[i] = 1;\n"))
        assert "out[0] is 1; it should be 0" in told and told.endswith("<hint>")

    def test_an_error_is_told_with_the_launch(self):
        told = refused(lambda k: kernels.profiled(k, vector()), kernel("    out[i + (1 << 24)] = 1;\n"))
        assert told.startswith("n=128, grid 4, block 32\nline 4: invalid global write")


class TestWords:
    lines = pd.DataFrame({"line": [7, 12], "source": ["a = x;", "b = y;"]})

    def test_lines_with_their_costs(self):
        assert kernels.listed(self.lines, ["3 loads", "1 load"]) == (
            "    7 | a = x;    3 loads\n   12 | b = y;    1 load"
        )

    def test_a_goal_that_is_missed(self):
        unmet = kernels.missed("9 loads", "at most 8", self.lines[:1], ["9 loads"], "<hint>")
        assert str(unmet) == "9 loads; the goal is at most 8\n    7 | a = x;    9 loads\n<hint>"

    def test_the_launch_that_failed(self):
        for error in (SimtError("stopped"), InvalidAccess("outside")):
            with pytest.raises(Unmet) as unmet, kernels.case("launch", "<hint>"):
                raise error
            hint = "\n<hint>" * isinstance(error, InvalidAccess)
            assert str(unmet.value) == f"launch\n{error}{hint}" and unmet.value.why is error
        with kernels.case("launch"):
            pass

    def test_an_error_without_a_finding_has_no_hint(self):
        assert (
            str(kernels.failed_launch(vector(), SimtError("stopped"), HINTS))
            == "n=128, grid 4, block 32\nstopped"
        )


def test_a_kernel_compiled_again_with_other_macros():
    code = HEAD + "    out[threadIdx.x] = SIDE + MORE;\n}"
    module = simt.RawModule(code=code, options=("-DSIDE=2", "-DMORE=10"))
    again = kernels.recompiled(module.get_function("copy"), SIDE=5)
    out = np.zeros(1, np.float32)
    again(1, 1, (out, out, np.int32(1)))
    assert out[0] == 15 and sorted(again.module.options) == ["-DMORE=10", "-DSIDE=5"]


class TestLaunch:
    def test_parts_of_a_grid_alone(self):
        """Of blocks 0 to 3 with 32 elements, part 0 has blocks 0 and 3; 100 elements leave 4 to the last."""
        assert vector(128).written_by_part(kernel(), 3) == [64, 32, 32]
        assert vector(100).written_by_part(kernel(), 12) == [32, 32, 32, 4]

    def test_what_a_block_loads_alone(self):
        assert vector(100).loaded_by_block(kernel()) == [32, 32, 32, 4]

    def test_each_launch_of_a_row_shares_the_variables(self):
        count = "    if (n == 1)\n        out[0] = ++calls;\n"
        twice = Launch(
            Given("twice", lambda rng: (np.full(1, 2, np.float32),) * 2, (1,)), (1,), (1,), times=2
        )
        twice.run(kernel(count, "__device__ int calls;\n"))
        assert str(twice) == "twice, grid 1, block 1, launch 2 of 2 in a row"

    def test_a_checked_launch_says_what_a_plain_one_gives(self):
        """An output that is never written is NaN in both."""
        found, wrong = vector(64).check(kernel("    if (i < 60)\n        out[i] = in[i];\n"))
        assert found == [] and isinstance(wrong, Wrong) and (wrong.wrong, wrong.index) == (4, (60,))
        assert wrong.where.sum() == 4 and "4 elements have not changed" in str(wrong)

    def test_shown(self):
        launch = Launch(Matmul(2, 3, 4), (2, 3), (16, 8), shared_mem=64)
        assert str(launch).endswith("grid (2, 3), block (16, 8), 64 bytes of dynamic shared memory")
        assert str(tiled(Matmul(20, 40, 8), 16)).endswith("grid (3, 2), block (16, 16)")


class TestGiven:
    def test_arguments_are_fresh_and_the_output_unwritten(self):
        given = Given("told", partial(copied, n=4), (4,), unit=0.5)
        x, out, n = given.args()
        x[:] = 9
        assert given.args()[0].tolist() == [0, 1, 2, 3] and n == 4 and np.isnan(out).all()
        assert given.output((x, out, n)) is out and str(given) == "told" and not given.reads_output

    @pytest.mark.parametrize(("got", "is_right"), [(3.0, True), (1.0, True), (3.01, False), (0.99, False)])
    def test_an_element_may_be_off_by_its_unit(self, got, is_right):
        """2 may be off by half of itself."""
        given = Given("", lambda rng: (np.full(1, 2, np.float32),), (1,), unit=0.5)
        if is_right:
            given.verify(np.full(1, got, np.float32))
        else:
            with pytest.raises(AssertionError, match="it should be 2"):
                given.verify(np.full(1, got, np.float32))

    def test_a_kernel_that_adds_starts_at_0(self):
        given = Given("", lambda rng: (np.ones(3, np.int32),), (3,), starts_at_0=True)
        assert given.args()[0].tolist() == [0, 0, 0] and given.reads_output


class Found:
    """A launch in which a check finds what is said, and results may be wrong."""

    task, block, shared_mem = Matmul(16, 16, 16), (16, 16), 0

    def __init__(self, *kinds, wrong=None):
        self.kinds, self.wrong = kinds, wrong

    def check(self, kernel):
        zero = (0, 0, 0)
        return [Finding("racecheck", kind, 1, zero, zero, f"a {kind}") for kind in self.kinds], self.wrong

    def __str__(self):
        return "made up"


class TestFindings:
    def asked(self, *kinds, **more):
        return kernels.no_finding_in("text", lambda _: [Found(*kinds, **more)], Hints(ignores=("a", "b")))

    def test_some_kinds_do_not_count(self):
        self.asked("a", "b", "a").test(kernel())

    @pytest.mark.parametrize("kinds", [("c",), ("a", "c"), ("c", "a"), ("c", "d"), ("b", "a", "c", "d")])
    def test_the_first_of_another_kind_is_told(self, kinds):
        told = refused(self.asked(*kinds), kernel())
        assert told.startswith("made up\nracecheck finds: ") and "a c" in told and "a d" not in told

    def test_wrong_results_are_told_where_nothing_else_is(self):
        out = np.zeros((16, 16), np.float32)
        wrong = Wrong(Mismatch("C is wrong", (0, 0), 0, 1, 256, 256, out == 0), Found.task, out)
        assert refused(self.asked("a", wrong=wrong), kernel()).startswith("made up\nC is wrong")
        assert "a c" in refused(self.asked("c", wrong=wrong), kernel())


def test_how_problems_are_launched(monkeypatch):
    """In blocks of 16 x 16 where nothing is said; findings are looked for along longer sides, too."""
    asked = []
    monkeypatch.setattr(fresh_inputs, "problems", lambda *given: asked.append(given) or given[0])
    launches = []
    monkeypatch.setattr(kernels, "tiled", lambda *given: launches.append(given[1:]) or vector())
    kernels.right_on("text", 1, 2).test(kernel())
    kernels.right_on("text", 1, tile=8, rows=2).test(kernel())
    kernels.no_finding(3, tile=32).test(kernel())
    kernels.no_finding(4, rows=8).test(kernel())
    assert asked == [((1, 2), 16, False), ((1,), 8, False), ((3,), 32, True), ((4,), 16, True)]
    assert launches == [(16, None), (16, None), (8, 2), (32, None), (16, 8)]


def test_texts_of_criteria_on_findings():
    assert kernels.no_finding().text == kernels.SOUND
    assert "kernel.check finds nothing" in kernels.clean_in(lambda _: []).text


class TestCountsThatAreMadeUp:
    lines = pd.DataFrame(
        {
            "line": [3, 7, 8],
            "op": ["ld", "ld", "ld"],
            "space": ["global", "global", "shared"],
            "sectors": [10, 7, 99],
            "requests": [5, 2, 3],
            "threads": [150, 60, 90],
            "useful_bytes": [256, 256, 9999],
            "source": ["a", "b", "c"],
        }
    )

    @pytest.fixture
    def counted(self, monkeypatch):
        def counted(**columns):
            lines = self.lines.assign(**columns)
            monkeypatch.setattr(kernels, "profiled", lambda *_: SimpleNamespace(lines=lines))

        return counted

    def test_each_element_comes_no_more_often_than_it_may(self, counted):
        """16 sectors hold 512 bytes: who asks for a byte more asks for something twice."""
        for more, end in ((0, kernels.APART), (4, "<hint>")):
            counted(useful_bytes=[256, 256 + more, 9999])
            told = refused(lambda k: kernels.few_sectors(k, None, 16, "told", "<hint>"), None)
            assert told.startswith("told: 17 sectors; the goal is at most 16\n") and told.endswith(end)
            assert "    3 | a    10 sectors\n    7 | b    7 sectors\n" in told
        kernels.few_sectors(None, None, 17, "told", "<hint>")

    def test_loads_of_all_memories_count_unless_some_are_named(self, counted):
        counted()

        def asked(most, **more):
            return kernels.loads_in(most, "", lambda n: n, (4,), hint="<hint>", **more)

        for right, most in (
            (asked(10), 9),
            (asked(7, spaces=["global"]), 6),
            (asked(3, spaces=["shared"]), 2),
        ):
            right.test(None)
            spaces = {9: kernels.LOADS, 6: ["global"], 2: ["shared"]}[most]
            told = refused(asked(most, spaces=spaces), None)
            assert f"{most + 1} requests to load; the goal is at most {most}\n" in told
            assert told.endswith("requests\n<hint>")

    def test_atomics_count_for_each_lane_and_others_do_not(self, counted):
        counted(op=["ld", "red", "atom"])

        def asked(most):
            return kernels.loads_in(most, "", lambda n: n, (4,), hint="<hint>")

        asked(5 + 60 + 90).test(None)
        assert refused(asked(5 + 60 + 89), None).endswith(f"{kernels.ATOMIC}<hint>")

    def test_a_goal_for_another_size_is_rounded_down(self, counted, monkeypatch):
        """5 for 2 x 4 elements are 7 for 3 x 4, and 10 requests are too many."""
        counted()
        asked = []
        monkeypatch.setattr(fresh_inputs, "instead", lambda *given: asked.append(given) or [(3, 4)])
        criterion = kernels.loads_in(5, "", lambda *size: size, (2, 4), (6, 8), whole=2, hint="")
        assert refused(criterion, None).startswith("(3, 4)\n10 requests to load; the goal is at most 7\n")
        refused(kernels.loads_in(5, "", lambda *size: size, (2, 4), hint=""), None)
        assert asked == [([(2, 4), (6, 8)], 2), ([(2, 4)], 1)]

    def test_the_worst_line_is_told_and_a_goal_may_be_met_exactly(self, counted):
        counted()
        told = refused(kernels.at_most(6, "sectors", "", lambda: "launch", hint="<hint>"), None)
        assert told == ("launch\nline 8 has 99 sectors; the goal is at most 6\n    8 | c\n<hint>")
        kernels.at_most(99, "sectors", "", lambda: "launch", hint="<hint>").test(None)
