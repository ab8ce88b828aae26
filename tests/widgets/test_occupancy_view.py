"""Blocks on an SM, by hand and against labkit.occupancy; and the explorer that shows them."""

import pytest

from labkit import widgets
from labkit.core.occupancy import gpu, gpus, occupancy
from labkit.model.blocks_per_sm import LEAST_REGISTERS, Block, cures
from labkit.widgets import occupancy_view as view

H200 = gpu("H200")


class TestBlock:
    def test_by_hand(self):
        """80 registers: 2560 per warp, 6 warps in a sub-partition of 16,384, 24 in an SM. 8 KB and 1 KB: 25
        of 228 KB.
        """
        block = Block(H200, 256, 80, 8192)
        assert (block.warps, block.registers_of_warp, block.shared_taken) == (8, 2560, 9216)
        assert block.limits == {"registers": 3, "shared_mem": 25, "warps": 8, "blocks": 32}
        assert (block.blocks, block.percent, block.limited_by) == (3, 37.5, ["registers"])

    def test_agrees_with_labkit_occupancy(self):
        for each in gpus():
            for threads in (1, 32, 96, 256, 768, 1024):
                for registers in (16, 33, 64, 128, 255):
                    for shared in (0, 1, 5000, 40000, 99 * 1024):
                        block, held = (
                            Block(each, threads, registers, shared),
                            occupancy(each, threads, registers, shared),
                        )
                        assert block.blocks == held.blocks, (each.name, threads, registers, shared)
                        assert block.percent == held.sm__maximum_warps_per_active_cycle_pct


class TestCures:
    def test_fewer_registers(self):
        assert cures(Block(H200, 256, 80, 8192)) == {"registers": Block(H200, 256, 64, 8192)}

    def test_less_shared_memory(self):
        """T4: 64 KB for three blocks are 21.25 KB each, in units of 256 bytes."""
        assert cures(Block(gpu("T4"), 256, 40, 24 * 1024)) == {"shared_mem": Block(gpu("T4"), 256, 40, 21760)}

    def test_smaller_and_larger_blocks(self):
        assert cures(Block(gpu("RTX 4060"), 1024, 16, 0))["warps"].threads == 768
        assert cures(Block(H200, 32, 16, 0))["blocks"].threads == 64

    def test_each_is_the_least_change_that_helps(self):
        for threads in range(32, 1025, 96):
            for registers in (24, 40, 72, 100, 200):
                block = Block(H200, threads, registers, 20000)
                for better in cures(block).values():
                    assert better.percent > block.percent
                if "registers" in cures(block):
                    best = cures(block)["registers"].registers
                    assert Block(H200, threads, best + 1, 20000).percent <= block.percent
                    assert best >= LEAST_REGISTERS

    def test_where_two_resources_bind_none_alone_helps(self):
        block = Block(H200, 768, 40, 0)
        assert block.limited_by == ["registers", "warps"] and cures(block) == {}

    def test_shared_memory_that_no_block_takes_limits_nothing(self):
        block = Block(gpu("GTX 1080"), 32, 16, 0)
        assert block.limits["shared_mem"] == 32 and block.limited_by == ["blocks"]


TEXTS = {
    ("H200", 256, 80, 8): [
        "37.5 % occupancy on H200: 3 blocks of 8 warps, 24 of 64 warps.",
        "8 × 2,560 of its 65,536 registers (each quarter of the SM has its own)",
        "9 of 228 KB of shared memory",
        "Limited by registers. With at most 64 registers a thread, 4 blocks would fit: 50 %.",
    ],
    ("RTX 4060", 1024, 32, 48): [
        "66.7 % occupancy on RTX 4060: 1 block of 32 warps, 32 of 48 warps.",
        "Limited by warps. With blocks of 768 threads, 2 blocks would fit: 100 %.",
    ],
    ("H200", 32, 16, 0): ["Limited by blocks. With blocks of 64 threads, 32 blocks would fit: 100 %."],
    ("T4", 256, 40, 24): [
        "With at most 21.25 KB of shared memory a block, 3 blocks would fit: 75 %.",
        "24 of 64 KB of shared memory. 16 blocks",
    ],
    ("H200", 256, 32, 0): ["100 % occupancy", "All places for warps are taken"],
    ("H200", 768, 40, 0): [
        "Limited by registers and warps: to change one of them alone gives no more warps."
    ],
    ("P100", 256, 40, 64): ["0 % occupancy on P100: not one block fits an SM, and the launch fails."],
}


@pytest.mark.parametrize("values", TEXTS, ids=str)
def test_the_text_names_the_limit_and_what_to_change(values):
    shown = view.occupancy_view(*values)
    for words in TEXTS[values]:
        assert words in shown.text
    (figure,) = shown.figures
    assert shown.text.startswith(figure.get_suptitle())
    curve, bars = figure.axes
    assert curve.get_xlabel() == "block size (threads)" and "%" in curve.get_ylabel()
    assert bars.get_xlabel() == "blocks that an SM has room for" and len(bars.patches) == 4


def test_the_curve_is_that_of_labkit_occupancy():
    (figure,) = view.occupancy_view("RTX 4090", 256, 40, 12).figures
    line, point = figure.axes[0].lines
    rtx = gpu("RTX 4090")
    expected = [occupancy(rtx, threads, 40, 12 * 1024) for threads in range(32, 1025, 32)]
    assert list(line.get_ydata()) == [each.sm__maximum_warps_per_active_cycle_pct for each in expected]
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (256, pytest.approx(expected[7].warps / 0.48))


def test_the_explorer_offers_no_more_shared_memory_than_a_block_may_have(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    shown = widgets.occupancy()
    assert shown.values == {"gpu": "H200", "threads": 256, "registers": 80, "shared_kb": 8}
    assert max(kb for _, kb in shown.controls["shared_kb"].options) == 227
    shown.controls["gpu"].value = "T4"
    assert max(kb for _, kb in shown.controls["shared_kb"].options) == 64
    assert "on T4" in shown.text.value
