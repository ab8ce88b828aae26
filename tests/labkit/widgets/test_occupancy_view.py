"""Blocks on an SM, by hand and against labkit.occupancy; and the explorer that shows them."""

from xml.etree import ElementTree

import pytest

import simt
from labkit import widgets
from labkit.model.blocks_per_sm import LEAST_REGISTERS, Block, cures
from labkit.widgets import occupancy_view as view
from simt.common.occupancy import gpu, gpus, occupancy

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
        "8 × 2,560 of its 65,536 registers (each of its 4 sub-partitions has its own)",
        "9 of 228 KB of shared memory",
        "Limited by registers. With at most 64 registers per thread, 4 blocks would fit: 50 %.",
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
    ("H200", 256, 32, 0): ["100 % occupancy", "An SM holds no more resident warps than these"],
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
    (picture,) = shown.pictures
    assert shown.text.startswith(shown.conclusion)
    texts = [each.text for each in elements(picture, "text")]
    assert "block size (threads)" in texts and any("%" in text for text in texts)
    bars = [each for each in elements(picture, "g") if each.get("data-tip")]
    assert [each.get("data-link") for each in bars] == ["registers", "shared_mem", "warps", "blocks"]
    block = Block(gpu(values[0]), values[1], values[2], 1024 * values[3])
    limiting = {each.get("data-link") for each in bars if any("limit" in t.text for t in each if t.text)}
    assert limiting == set(block.limited_by)


def elements(picture, tag):
    return ElementTree.fromstring(str(picture)).iter(f"{{http://www.w3.org/2000/svg}}{tag}")


def test_the_curve_is_that_of_labkit_occupancy():
    """The line has a corner per block size; the scale is that of 0 and 100 % on its axis."""
    (picture,) = view.occupancy_view("RTX 4090", 256, 40, 12).pictures
    (line,) = [each for each in elements(picture, "path") if each.get("fill") == "none"]
    corners = [tuple(map(float, corner.split())) for corner in line.get("d")[1:].split("L")]
    ticks = {each.text: float(each.get("y")) for each in elements(picture, "text") if each.text.isdigit()}
    rtx = gpu("RTX 4090")
    expected = [occupancy(rtx, threads, 40, 12 * 1024) for threads in range(32, 1025, 32)]
    assert [100 * (ticks["0"] - y) / (ticks["0"] - ticks["100"]) for _, y in corners] == [
        pytest.approx(each.sm__maximum_warps_per_active_cycle_pct, abs=0.1) for each in expected
    ]
    (ring,) = elements(picture, "circle")
    place = float(ring.get("cx")), float(ring.get("cy"))
    assert place == pytest.approx(corners[7], abs=0.1)  # 256 threads


def test_the_curve_is_a_grid_of_all_block_sizes():
    """A click in its k-th column sets the k-th position of the control."""
    (picture,) = view.occupancy_view("H200", 256, 80, 8).pictures
    (grid,) = [each for each in elements(picture, "rect") if each.get("data-cols")]
    sizes = [size for _, size in widgets.occupancy().now["threads"].choices]
    assert (grid.get("data-x"), grid.get("data-cols")) == ("threads", str(len(sizes)))
    (ring,) = elements(picture, "circle")
    column = len(sizes) * (float(ring.get("cx")) - float(grid.get("x"))) / float(grid.get("width"))
    assert sizes[int(column)] == 256 and column % 1 == pytest.approx(0.5, abs=0.01)


TIPS = {  # 65,536 registers in four sub-partitions of 16,384: 6 warps of 2,560 each
    "registers": "registers: a warp takes 2,560, so each sub-partition of the SM with its 16,384 has room "
    "for 6 warps: 24 warps, 3 blocks.",
    "shared_mem": "shared memory: a block takes 9 of 228 KB: 25 blocks.",
    "warps": "warps: a block has 8, and an SM holds 64 resident warps: 8 blocks.",
    "blocks": "blocks: an SM holds 32, whatever they take.",
}


def test_a_bar_shows_its_sum():
    (picture,) = view.occupancy_view("H200", 256, 80, 8).pictures
    tips = {each.get("data-link"): each.get("data-tip") for each in elements(picture, "g")}
    assert tips == TIPS


@pytest.mark.parametrize("values", [("P100", 320, 200, 0), ("H200", 1024, 128, 0)], ids=str)
def test_a_bar_without_a_block_says_so(values):
    (picture,) = view.occupancy_view(*values).pictures
    tips = {each.get("data-link"): each.get("data-tip") for each in elements(picture, "g")}
    assert tips["registers"] == "registers: not one block fits."


def test_the_explorer_offers_no_more_shared_memory_than_a_block_may_have(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    shown = widgets.occupancy()
    assert shown.values == {"gpu": "H200", "threads": 256, "registers": 80, "shared_kb": 8}
    assert shown.now["shared_kb"].choices[-1] == ("227 KB", 227)
    shown.set(gpu="T4")
    assert shown.now["shared_kb"].choices[-1] == ("64 KB", 64)
    assert "on T4" in shown.shown["conclusion"]


class TestKernels:
    """Registers and shared memory of kernels, for the chosen GPU."""

    CODE = """extern "C" __global__ void rows(float* a, int n) {
        __shared__ float kept[1000];
        float sums[40] = {};
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < 40; ++j) sums[j] += a[i * 40 + j] * a[j];
        for (int j = 0; j < 40; ++j) kept[j] = sums[j];
        __syncthreads();
        a[threadIdx.x] = kept[threadIdx.x];
    }"""

    @pytest.fixture
    def kernel(self):
        return simt.RawModule(code=self.CODE).get_function("rows")

    def test_the_sliders_stand_where_the_compiler_puts_them(self, kernel):
        shown = widgets.occupancy(rows=kernel)
        shown.set(kernel="rows")
        for name in ("H200", "T4"):
            shown.set(gpu=name)
            sass = kernel.sass(name)
            assert shown.values["registers"] == sass.registers
            assert shown.values["shared_kb"] == sass.shared_bytes / 1024
            assert sass.shared_bytes == 4000 if name == "T4" else sass.shared_bytes >= 4000
            assert f"gives rows these on {name}" in shown.now["registers"].why
            assert (
                shown.current().conclusion
                == view.occupancy_view(name, 256, sass.registers, sass.shared_bytes / 1024).conclusion
            )

    def test_back_to_the_sliders(self, kernel):
        shown = widgets.occupancy(rows=kernel)
        shown.set(kernel="rows")
        shown.set(kernel="")
        shown.set(registers=80)
        assert not shown.now["registers"].why

    def test_only_gpus_that_the_compiler_knows_are_offered(self, kernel):
        def names(shown):
            return {name for name, _ in shown.now["gpu"].choices}

        assert "P100" in names(widgets.occupancy()) - names(widgets.occupancy(rows=kernel))

    def test_one_that_does_not_compile_for_a_gpu_says_so(self):
        code = 'extern "C" __global__ void k(unsigned* a) { *a = __reduce_add_sync(~0u, *a); }'  # sm_80
        shown = widgets.occupancy(k=simt.RawModule(code=code).get_function("k"))
        shown.set(kernel="k")
        assert "__reduce_add_sync" in shown.set(gpu="T4")

    def test_labkit_occupancy_takes_a_kernel(self, kernel):
        for name in ("T4", "H200"):
            sass = kernel.sass(name)
            wanted = occupancy(gpu(name), 256, sass.registers, sass.shared_bytes + 512)
            assert occupancy(name, 256, kernel, 512) == wanted

    @pytest.mark.parametrize("wrong", [5, None])
    def test_a_gpu_is_named_by_a_text(self, kernel, wrong):
        with pytest.raises(ValueError, match='named by a text such as "H200"'):
            kernel.sass(wrong)
