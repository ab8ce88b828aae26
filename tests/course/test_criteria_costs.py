"""Criteria on what a kernel costs, with made-up figures: each goal is met exactly, and missed by a little."""

from types import SimpleNamespace

import pandas as pd
import pytest

from labkit.course.criteria import occupancy, predicted, products
from labkit.course.criteria.launches import Launch
from labkit.course.exercise import Unmet
from labkit.kernels.matmul.family import Matmul
from labkit.model.time.prediction import NoPrediction

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
    with pytest.raises(Unmet) as unmet:
        criterion.test(answer)
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
    return SimpleNamespace(seconds=ms / 1e3, limit=seconds.index[0], limits=seconds)


@pytest.fixture
def says(monkeypatch):
    """Make up the predicted time of each launch."""

    def says(found):
        def predict(*_):
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(Launch, "predicted", predict)

    return says


class TestPredicted:
    launch = Launch(PROBLEM, (1,), (32,))

    def test_the_lowest_limit(self, says):
        criterion = predicted.limited_by("text", "DRAM", lambda kernel: self.launch, "<hint>")
        says(prediction(1))
        criterion.test(None)
        says(prediction(1, latency=3e-6, DRAM=2e-6, FP32=1e-6, L2=5e-7))
        told = refused(criterion)
        assert told.endswith("\n<hint>") and "latency 3 µs, DRAM 2 µs, FP32 1 µs" in told and "L2" not in told

    def test_what_cannot_be_predicted(self, says):
        says(NoPrediction("numbers decide"))
        criterion = predicted.limited_by("text", "DRAM", lambda kernel: self.launch, "<hint>")
        assert refused(criterion).endswith("\nnumbers decide")

    @pytest.mark.parametrize(("ms", "is_met"), [(0.5, True), (0.51, False)])
    def test_quicker_than_a_rung(self, says, monkeypatch, ms, is_met):
        monkeypatch.setattr(predicted, "as_said", lambda kernel, problem: self.launch)
        monkeypatch.setattr(predicted.predicted, "predict", lambda rung, problem: prediction(1))
        criterion = predicted.quicker(2, "tiled", PROBLEM, "here", "<hint>")
        says(prediction(ms))
        if is_met:
            criterion.test(None)
        else:
            assert "tiled takes 1 ms: yours is 1.96 times" in (told := refused(criterion))
            assert told.endswith("<hint>")

    @pytest.mark.parametrize(("part", "is_met"), [(0.96, True), (0.94, False)])
    def test_all_multiply_adds_must_be_done(self, says, monkeypatch, part, is_met):
        """At 132 SMs with 128 cores and 1.98 GHz, 10,000 multiply-adds take 0.3 ns."""
        least = 10_000 / (132 * 128 * 1.98e9)
        monkeypatch.setattr(predicted, "as_said", lambda kernel, problem: self.launch)
        monkeypatch.setattr(predicted.predicted, "predict", lambda rung, problem: prediction(1))
        says(prediction(0.1, DRAM=1e-5, FP32=part * least))
        criterion = predicted.quicker(2, "tiled", PROBLEM, "here", "<hint>")
        assert criterion.test(None) is None if is_met else "all of its 10,000 " in refused(criterion)

    @pytest.mark.parametrize(("ms", "told"), [(2, ""), (1, ""), (2.01, "2.01 ms"), (0.99, "990 µs")])
    def test_within(self, ms, told):
        kernel = SimpleNamespace(predict=lambda *_, gpu: prediction(ms))
        criterion = predicted.within(2, 1, lambda: (1, 32, ()), "<hint>")
        assert told in refused(criterion, kernel) if told else criterion.test(kernel) is None

    def test_within_what_cannot_be_predicted(self):
        def predict(*_, gpu):
            raise NoPrediction("numbers decide")

        told = refused(
            predicted.within(2, 1, lambda: (1, 32, ()), "<hint>"), SimpleNamespace(predict=predict)
        )
        assert told.endswith("numbers decide\n<hint>")


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
