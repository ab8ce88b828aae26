"""Criteria on what a kernel costs, with made-up figures: each goal is met exactly, and missed by a little."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import simt
from labkit.course import fresh_inputs
from labkit.course.criteria import occupancy, predicted, products
from labkit.course.criteria.undisturbed import alone, refuse_if_busy, taking_turns
from labkit.course.exercise import Unmet
from labkit.kernels.matmul.family import Matmul
from labkit.model.sampled import Contents, Tried
from simt.common.errors import SimtError
from simt.timing.prediction import NoPrediction

PROBLEM = Matmul(100, 10, 10)  # 10,000 multiply-adds
LINES = pd.DataFrame(
    {
        "line": [3, 7, 9],
        "op": ["ld", "ld", "st"],
        "space": ["global", "shared", "global"],
        "sectors": [500, 0, 300],
        "useful_bytes": [4000, 20000, 4000],
        "threads": [1000, 5000, 1000],
        "conflicts": [0, 10, 0],
        "passes": [0, 100, 0],
        "source": ["a = A[i];", "b = tile[k];", "C[i] = c;"],
    }
)


def refused(criterion, answer=None):
    return refused_by(lambda: criterion.test(answer))


def refused_by(call):
    """The message of the goal that a call says is missed."""
    with pytest.raises(Unmet) as unmet:
        call()
    return str(unmet.value)


@pytest.fixture
def counted(monkeypatch):
    """Make up the figures of a kernel."""
    held = SimpleNamespace(launch__registers_per_thread=80, __str__=lambda self: "held")

    def figures(**given):
        profile = SimpleNamespace(lines=given.pop("lines", LINES), occupancy=held)
        figure = {"problem": PROBLEM, "profile": profile, "multiply_adds": 10_000, **given}
        monkeypatch.setattr(products, "_figures", lambda kernel: SimpleNamespace(**figure))

    return figures


class TestProducts:
    @pytest.mark.parametrize(
        ("criterion", "figure", "met", "missed", "told"),
        [
            (products.reuse(64), "reuse", 64, 63.9, ["63.9", "64", "500 sectors", products.SQUARE]),
            (products.shared(0.5), "shared", 0.5, 0.51, ["0.51", "0.5", "0.5 per", products.REGISTERS]),
            (products.loads(0.5), "loads", 0.5, 0.51, ["0.51", "0.5", "0.1 per", products.WIDE]),
            (products.few_conflicts(10), "conflicts", 0.1, 0.102, ["10.2", "10 conflicts", products.PADDING]),
            (products.warps(32), "warps", 32, 31, ["32 warps", "80 registers"]),
            (products.in_registers(), "local_bytes", 0, 8, ["8 bytes", products.SPILLED]),
        ],
    )  # fmt: skip
    def test_a_goal_is_met_exactly_and_missed(self, counted, criterion, figure, met, missed, told):
        counted(**{figure: met})
        criterion.test(None)
        counted(**{figure: missed})
        message = refused(criterion)
        assert [each for each in told if each not in message] == [] and str(PROBLEM) in message

    def test_an_array_in_local_memory_is_told_from_registers_that_spill(self, counted):
        counted(local_bytes=8, lines=LINES.assign(space="local"))
        assert products.UNROLLED in refused(products.in_registers())

    def test_the_costliest_line_comes_first(self, counted):
        counted(loads=0.6)
        message = refused(products.loads(0.5))
        assert message.index("    7 | b") < message.index("    3 | a") and "    9 |" not in message

    @pytest.mark.parametrize(
        ("load", "store", "line"), [(16, 9.6, None), (15.9, 9.6, 3), (16, 9.5, 9), (15, 9, 3)]
    )
    def test_sectors_of_loads_and_of_stores(self, counted, load, store, line):
        accesses = pd.DataFrame(
            {"line": [3, 9], "op": ["ld", "st"], "sectors": [16, 9.6], "source": ["a", "b"]}
        )
        counted(accesses=accesses)
        criterion = products.coalesced(load, store)
        if line:
            assert f"line {line} takes " in (told := refused(criterion)) and told.endswith(products.TOGETHER)
        else:
            criterion.test(None)

    def test_atomics_have_the_lower_goal_of_both(self, counted):
        counted(accesses=pd.DataFrame({"line": [3], "op": ["atom"], "sectors": [9], "source": ["a"]}))
        products.coalesced(9, 16).test(None)
        assert "\nline 3 takes 9 " in refused(products.coalesced(8, 16))

    @pytest.mark.parametrize(("theirs", "is_met"), [(2, True), (1.99, False)])
    def test_a_speed_beside_that_of_a_rung(self, monkeypatch, theirs, is_met):
        ms = pd.DataFrame({"kernel": [products.own_product.NAME, "tiled"], "value": [1.0, theirs]})
        monkeypatch.setattr(products, "find_gpu", lambda: None)
        monkeypatch.setattr(products.own_product, "measured", lambda *_: (ms, None))
        criterion = products.faster("tiled", 2)
        if is_met:
            criterion.test(None)
        else:
            assert "tiled 1.99 ms: it is 1.99 times" in refused(criterion)
        monkeypatch.setattr(products.own_product, "measured", lambda *_: (ms, "C[0, 0] is 1"))
        assert refused(criterion).endswith("\nC[0, 0] is 1")


def prediction(ms, **limits):
    seconds = pd.DataFrame({"seconds": limits or {"DRAM": 2e-6, "FP32": 1e-6}}).sort_values("seconds")[::-1]
    seconds["count"] = 0
    return SimpleNamespace(seconds=ms / 1e3, limit=seconds.index[0], limits=seconds)


@pytest.fixture
def says(monkeypatch):
    """Make up the predicted time of a launch, and what its blocks write: by default half, by one of two."""

    def says(found, places=range(32), values=1, blocks=(1,)):
        def tried(*_):
            if isinstance(found, Exception):
                raise found
            written = np.full(len(places), values, np.float32)
            return Tried(found, blocks, np.array(places), written)

        monkeypatch.setattr(predicted, "tried", tried)

    return says


def large(times=1):
    """A launch of 2 blocks and 64 elements, which should be 1."""
    return predicted.Large(
        f"n={round(64 * times)}",
        (2,),
        (32,),
        (Contents((64,), 0), Contents((64,))),
        lambda places: (np.ones(len(places)), 0),
    )


class TestPredicted:
    def test_the_lowest_limit(self, says):
        criterion = predicted.limited_by("text", "DRAM", large, "<hint>")
        says(prediction(1))
        criterion.test(None)
        says(prediction(1, latency=3e-6, DRAM=2e-6, FP32=1e-6, L2=5e-7))
        told = refused(criterion)
        assert told.endswith("\n<hint>") and "latency 3 µs, DRAM 2 µs, FP32 1 µs" in told and "L2" not in told

    @pytest.mark.parametrize(("moved", "is_met"), [(563, True), (564, False)])
    def test_bytes_that_are_moved_in_vain(self, says, moved, is_met):
        """Of 128 floats that are read and written once, and a tenth more."""
        found = prediction(1)
        found.limits["count"] = [moved, 0]
        says(found)
        criterion = predicted.limited_by("text", "DRAM", large, "<hint>")
        assert criterion.test(None) is None if is_met else "512 are enough" in refused(criterion)

    def test_what_cannot_be_predicted(self, says):
        says(NoPrediction("numbers decide"))
        for criterion in (
            predicted.limited_by("text", "DRAM", large, "<hint>"),
            predicted.within(2, large, "<hint>"),
        ):
            assert refused(criterion).endswith("numbers decide\n<hint>")

    @pytest.mark.parametrize(("ms", "is_met"), [(0.5, True), (0.51, False)])
    def test_quicker_than_a_rung(self, says, monkeypatch, ms, is_met):
        monkeypatch.setattr(predicted, "product", lambda kernel, problem: large())
        monkeypatch.setattr(predicted.predicted, "predict", lambda rung, problem: prediction(1))
        criterion = predicted.quicker(2, "tiled", PROBLEM, "here", "<hint>")
        says(prediction(ms))
        if is_met:
            criterion.test(None)
        else:
            assert "tiled takes 1 ms: yours is 1.96 times" in (told := refused(criterion))
            assert told.endswith("<hint>")

    def test_a_product_of_another_size_has_some_slack(self, says, monkeypatch):
        """95 % of twice as fast are asked of a product that is drawn."""
        asked = []
        monkeypatch.setattr(predicted, "product", lambda kernel, problem: asked.append(problem) or large())
        monkeypatch.setattr(predicted.predicted, "predict", lambda rung, problem: prediction(1.91))
        criterion = predicted.quicker(2, "tiled", PROBLEM, "here", "<hint>", others=(9, 11))
        says(prediction(1))
        assert "1.91 times" in refused(criterion)
        with fresh_inputs.drawn(1, "08.5"):
            criterion.test(None)
        assert asked[0] == PROBLEM and (asked[1].K in (9, 11) and asked[1].N == 10)

    @pytest.mark.parametrize(("ms", "told"), [(2, ""), (2.01, "2.01 ms")])
    def test_within(self, says, ms, told):
        says(prediction(ms))
        criterion = predicted.within(2, large, "<hint>")
        assert told in refused(criterion) if told else criterion.test(None) is None

    def test_more_work_may_take_more_time(self, says):
        """With a sixteenth more of work, a sixteenth more of time, and then 1 / 0.95 of it."""
        asked = []
        criterion = predicted.within(2, lambda times: asked.append(times) or large(times), "<hint>")
        says(prediction(2 * 1.0625 / 0.951))
        assert "the goal is at most 2 ms" in refused(criterion)
        for seed in range(8):
            with fresh_inputs.drawn(seed, "09.9"):
                criterion.test(None)
        assert asked[0] == 1 and len(set(asked[1:])) > 1 and set(asked[1:]) <= set(predicted.MORE_WORK)


class TestVerified:
    """One of two blocks has run; its fair share of the output is 32 of 64 elements."""

    def test_what_is_right_has_its_time(self, says):
        says(found := prediction(1))
        assert predicted.verified(None, large()) is found

    def test_a_wrong_element_has_no_time(self, says):
        says(prediction(1), places=range(5, 37), values=2)
        told = refused_by(lambda: predicted.verified(None, large()))
        assert "[5] of the output is 2; it should be 1." in told and "32 are wrong" in told

    @pytest.mark.parametrize(("written", "is_enough"), [(29, True), (28, False)])
    def test_nine_tenths_of_the_fair_share(self, says, written, is_enough):
        says(prediction(1), places=range(written))
        if is_enough:
            predicted.verified(None, large())
        else:
            assert "28 elements of the output; their fair share is 32" in refused_by(
                lambda: predicted.verified(None, large())
            )

    def test_a_launch_that_fails(self, says):
        says(SimtError("out[64] is outside"))
        assert refused_by(lambda: predicted.verified(None, large())).endswith("out[64] is outside")

    def test_blocks_are_drawn_at_both_ends_and_in_between(self):
        seen = set()
        for seed in range(40):
            with fresh_inputs.drawn(seed, "08.5"):
                blocks = predicted._blocks(800)
            assert blocks == sorted(set(blocks)) and 3 <= len(blocks) <= 6
            assert sum(number < 100 for number in blocks) in (1, 2)
            assert sum(number >= 700 for number in blocks) in (1, 2)
            seen.update(blocks)
        assert len(seen) > 150
        assert set(predicted._blocks(1)) == {0} and max(predicted._blocks(3)) < 3

    def test_a_product_s_elements(self):
        """Against NumPy's product of the whole matrices."""
        kernel = simt.RawModule(
            code='// launch: block (32), grid (ceil(N/32), M)\nextern "C" __global__ void matmul() {}'
        ).get_function("matmul")
        launch = predicted.product(kernel, Matmul(7, 50, 40))
        a, b, c = (each.array() for each in launch.args[:3])
        places = np.array([0, 49, 50, 333, 349])
        right, tolerance = launch.right(places)
        np.testing.assert_allclose(right, (a.astype(float) @ b).ravel()[places], rtol=0, atol=1e-5)
        bound = 2 * 42 * 2.0**-24 * (abs(a) @ abs(b)).ravel()[places]
        assert (tolerance >= bound).all() and (tolerance < 2 * bound).all() and not c.any()
        assert (
            launch.grid == (2, 7, 1) and launch.output == (7, 50) and launch.bytes == 4 * (280 + 2000 + 350)
        )


def blocks_of(gpu, threads, registers, shared):
    """How many warps fit an SM of an H200: 64 warp slots, 65536 registers in units of 256 for each warp."""
    warps = -(-threads // 32)
    by_registers = 65536 // (-(-registers * 32 // 256) * 256) // warps
    by_shared = 228 * 1024 // (-(-(shared + 1024) // 128) * 128) if shared else 99
    return min(64 // warps, 32, by_registers, by_shared) * warps


class TestOccupancy:
    @pytest.mark.parametrize(
        ("launch", "warps"),
        [
            (("H200", 256, 32, 0), 64),
            (("H200", 256, 64, 0), 32),  # 65536 / (64 * 256) = 4 blocks of 8 warps
            (("H200", 32, 16, 0), 32),  # 32 blocks
            (("H200", 256, 32, 45 * 1024), 32),  # 228 / 46 = 4 blocks
        ],
    )
    def test_warps_on_an_sm(self, launch, warps):
        criterion = occupancy.resident("text", "<hint>", launch)
        assert blocks_of(*launch) == warps
        criterion.test(blocks_of)
        told = refused(criterion, lambda *_: warps + 1)
        assert f"returns {warps + 1}; it should be {warps}." in told and told.endswith("<hint>")

    @pytest.mark.parametrize(("registers", "is_met"), [(40, True), (41, False)])
    def test_three_quarters_of_the_warps(self, monkeypatch, registers, is_met):
        """40 registers: 65536 / 1280 = 51 warps, 6 blocks of 8: 75 %. 41: 48 take 1536 each, 5 blocks."""
        held = SimpleNamespace(
            gpu=occupancy.gpu("H200"), threads_per_block=256, launch__registers_per_thread=registers
        )
        monkeypatch.setattr(occupancy, "as_said", lambda kernel, problem: None)
        monkeypatch.setattr(occupancy, "profiled", lambda *_, gpu: SimpleNamespace(occupancy=held))
        kernel, criterion = SimpleNamespace(shared_size_bytes=0), occupancy.occupied("H200", PROBLEM)
        if is_met:
            criterion.test(kernel)
        else:
            told = refused(criterion, kernel)
            assert "62.5 % occupancy, 40 of 64 warps" in told
            assert "at most 40 registers per thread it would be 75 %" in told


BASES = (
    ("H200", 256, 32, 0),
    ("H200", 256, 64, 0),
    ("A100-SXM4-80GB", 64, 20, 0),
    ("H200", 256, 32, 45 * 1024),
)


class TestDrawnLaunches:
    @pytest.mark.parametrize("base", BASES)
    def test_the_same_resources_decide(self, base):
        seen = [occupancy._drawn(np.random.default_rng(seed), base) for seed in range(60)]
        assert sum(each == base for each in seen) < 10 and len(set(seen)) > 20
        for launch in seen:
            block = occupancy._block(launch)
            assert block.limited_by == occupancy._block(base).limited_by
            assert block.on.warp_unit == occupancy.gpu(base[0]).warp_unit
            assert block.threads <= 1024 and block.registers >= 16
            assert block.shared <= block.on.shared_bytes_per_block
            for value, stated in zip(launch[1:], base[1:], strict=True):
                assert stated // 2 <= value <= max(1.25 * stated, 16)
        assert len({each[0] for each in seen}) > 3

    def test_limits_of_a_block(self):
        """No more than 1024 threads can be drawn, and no fewer than 16 registers."""
        seen = [occupancy._drawn(np.random.default_rng(s), ("H200", 1024, 16, 0)) for s in range(60)]
        assert {each[2] for each in seen} == {16, 17, 18, 19}
        assert max(each[1] for each in seen) == 1024

    def test_where_none_is_found_it_stays(self, monkeypatch):
        monkeypatch.setattr(fresh_inputs, "TRIES", 0)
        assert occupancy._drawn(np.random.default_rng(0), BASES[0]) == BASES[0]


class TestMessagesOnOccupancy:
    def test_how_the_number_of_blocks_comes_about(self):
        """8 warps: 64 / 8 blocks by warps; 65536 / (64 * 256) = 4 by registers; 228 KB / 2 KB by memory."""
        told = occupancy._account(occupancy._block(("H200", 256, 64, 1024)))
        assert told == (
            "A block has 8 warps. Blocks that fit an SM: 4 by registers, 114 by shared memory, 8 by warps, "
            "32 by blocks."
        )
        assert occupancy._account(occupancy._block(("H200", 32, 64, 0))).startswith("A block has 1 warp. ")

    @pytest.mark.parametrize(
        ("launch", "told"),
        [
            # 4 blocks of 8 warps by registers; with 48, which are 1536 per warp: 42 warps, 5 blocks
            (("H200", 256, 64, 0), "With at most 48 registers per thread it would be 62.5 %."),
            # 32 blocks of one warp are the most; of two warps 32 fit, too
            (("H200", 32, 16, 0), "With 64 threads it would be 100 %."),
            # 64 warps of 24: two blocks are 48; 3 blocks of 21 warps are 63
            (("H200", 768, 16, 0), "With 672 threads it would be 98.4 %."),
        ],
    )
    def test_the_least_change(self, launch, told):
        assert occupancy._cure(occupancy._block(launch)) == told

    def test_two_resources_that_both_have_to_change(self):
        """4 blocks by registers, and 4 by shared memory: 228 / 57 KB, of which the driver takes one."""
        block = occupancy._block(("H200", 256, 64, 56 * 1024))
        assert block.limited_by == ["registers", "shared_mem"]
        assert occupancy._cure(block) == "More than one of them has to change."

    def test_sectors_grow_with_the_product(self, monkeypatch):
        asked = []
        monkeypatch.setattr(occupancy, "as_said", lambda kernel, problem: SimpleNamespace(block=(16, 16)))
        monkeypatch.setattr(occupancy, "few_sectors", lambda *given: asked.append(given[2:]))
        criterion = occupancy.loads_at_most(700, Matmul(64, 64, 64), "<hint>")
        assert criterion.text == "global loads of at most 700 sectors for M = N = K = 64"
        criterion.test(None)
        assert asked == [(700, f"{Matmul(64, 64, 64)}, block (16, 16)", "<hint>")]
        asked.clear()
        for seed in range(40):
            with fresh_inputs.drawn(seed, "07.2"):
                criterion.test(None)
        larger = {(128, 64, 64): 1400, (64, 128, 64): 1400, (64, 64, 128): 1400, (128, 128, 64): 2800}
        assert {(most, told) for most, told, _ in asked} == {
            (most, f"{Matmul(*size)}, block (16, 16)") for size, most in larger.items()
        }


class TestMoreOfPredicted:
    def test_a_share_of_the_time_may_not_grow(self, says):
        """With an eighth more of work, of half of the time: a sixteenth more, and then 1 / 0.95 of it."""
        criterion = predicted.within(2, large, "<hint>", (1.125,), 0.5)
        for ms, is_met in ((2 * 1.0625 / 0.951, True), (2 * 1.0625 / 0.949, False)):
            says(prediction(ms))
            with fresh_inputs.drawn(1, "09.9"):
                assert criterion.test(None) is None if is_met else "the goal is" in refused(criterion)

    def test_as_much_work_as_is_stated_has_no_slack(self, says):
        criterion = predicted.within(2, large, "<hint>", (1.0,))
        says(prediction(2.01))
        with fresh_inputs.drawn(1, "09.9"):
            assert "the goal is at most 2 ms" in refused(criterion)

    def test_work_that_is_drawn(self, says):
        """A little more than is stated, or about half of it; never the stated work itself."""
        says(prediction(0.1))
        for work, least, most in (((), 1.06, 1.25), ((predicted.HALF_THE_WORK,), 0.5, 0.6)):
            asked = set()
            criterion = predicted.within(2, lambda times, a=asked: a.add(times) or large(), "<hint>", *work)
            for seed in range(30):
                with fresh_inputs.drawn(seed, "09.9"):
                    criterion.test(None)
            assert len(asked) == 4 and least <= min(asked) and max(asked) <= most
            assert all(32 * each % 1 == 0 for each in asked)

    def test_elements_that_are_written_twice_count_once(self, says):
        says(prediction(1), places=[*range(28)] * 2)
        assert "28 elements" in refused_by(lambda: predicted.verified(None, large()))

    def test_a_place_of_two_numbers(self, says):
        """Element 13 of 8 x 8 is [1, 5]."""
        launch = predicted.Large(
            "told", (2,), (32,), (Contents((64,), 0), Contents((8, 8))), lambda places: (places * 1.0, 0)
        )
        says(prediction(1), places=range(32), values=np.where(np.arange(32) < 13, np.arange(32), 0))
        told = refused_by(lambda: predicted.verified(None, launch))
        assert "[1, 5] of the output is 0; it should be 13. Of 32 elements" in told and "19 are wrong" in told
        assert launch.output == (8, 8) and launch.bytes == 512

    def test_a_goal_for_a_part_without_device_memory(self, says):
        says(prediction(1, FP32=2e-6, L2=1e-6))
        predicted.limited_by("text", "FP32", large, "<hint>").test(None)


class TestBesideARung:
    def test_a_busy_machine_waits_its_turn(self, monkeypatch):
        """What is timed is timed alone, and two contexts end in order."""
        entered = []

        @contextmanager
        def turn(name):
            entered.append(name)
            yield

        def noted(name):
            return taking_turns(lambda: turn(name), lambda: entered.append(f"busy {name}"))

        with noted("outer"):
            with pytest.raises(KeyError), noted("inner"), alone():
                refuse_if_busy()
                raise KeyError
            with alone():
                refuse_if_busy()
        with alone():
            refuse_if_busy()
        assert entered == ["inner", "busy inner", "outer", "busy outer"]
