"""`labkit bench --limits`: kernels that compile and have no mistakes, and the table's arithmetic."""

import csv
import math
import re

import numpy as np
import pytest

from labkit.ladder import limits
from labkit.ladder.limits import latency, memory, rates
from labkit.ladder.limits.machine import Limit, Machine, names, source, span
from simt.common.errors import LaunchError
from simt.compiler.nvrtc import resources

FILES = ("latency", "rates", "memory", "launches")
ORIGIN = {"gpu": "GPU", "command": "labkit bench a --limits"}


@pytest.fixture(autouse=True)
def simulator(monkeypatch, request):
    if not request.node.get_closest_marker("gpu"):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("file", FILES)
def test_kernels_compile(file, arch):
    compiled = resources(source(file), (), names(file), arch)
    plain = re.findall(r'extern "C" __global__ void (\w+)', source(file))
    assert len(compiled) == len(names(file)) + len(plain)


@pytest.mark.parametrize(
    ("file", "kernel", "instruction", "count"),
    [
        *(("latency", f"chain<{name}>", name, 256) for name in latency.OPERATIONS),
        *(
            ("rates", f"issue<{name}>", name.replace("_", ".").replace("2F", "2FP?"), 256)
            for name in rates.SINGLE
            if name != "IADD"
        ),
        ("rates", "issue<IADD>", "IADD3|IMAD.IADD", 256),
        ("rates", "issue<FFMA_and<IMAD>>", "FFMA|IMAD", 256),
        ("rates", "load<B128>", "LDG", 8),
        ("rates", "store<B32>", "STG", 8),
        ("rates", "store_shared<B32>", "STS", 8),
        ("latency", "chase<L2>", "LDG", 32),
        ("memory", "stream<1, 0>", "LDG", 4),
        ("memory", "stream<2, 1>", "LDG", 8),
        ("memory", "sectors<true>", "LDG", 4),
        ("memory", "read_all", "LDG", 4),
        ("memory", "add<F32>", "REDG?", 16),
    ],
)
@pytest.mark.parametrize("gpu", ["T4", "H200"])
def test_the_compiler_leaves_the_work_in(file, kernel, instruction, count, gpu):
    listing = str(Machine().kernel(file, kernel).sass(gpu))
    assert len(re.findall(rf"^ +[0-9a-f]{{4,}} +(?:@\S+ +)?(?:{instruction})\b", listing, re.M)) >= count


@pytest.mark.parametrize("gpu", ["T4", "H200"])
@pytest.mark.parametrize("kernel", rates.INSTANCES)
def test_the_clock_waits_for_the_barriers_result(kernel, gpu):
    listing = str(Machine().kernel("rates", kernel).sass(gpu))
    before, behind = listing.split("B2R.RESULT ")
    assert "BAR.RED" in before and "SR_CLOCKLO" not in before
    register = re.escape(behind.split()[0])
    decides = rf"ISETP\.NE\S* (P\d), PT, {register}\S*, RZ, PT\b.*?@\1 +CS2R R\d+, SR_CLOCKLO"
    assert (found := re.search(decides, behind, re.S)) and found[0].count("SR_CLOCKLO") == 1
    assert behind.index("SR_CLOCKLO") == found.end() - len("SR_CLOCKLO")


class Checked(Machine):
    """Check each launch, of one block where all do the same, before it runs."""

    found: list

    def launch(self, kernel, grid, block, args):
        self._check(kernel, grid, block, args)
        super().launch(kernel, grid, block, args)

    def seconds(self, kernel, grid, block, args):
        self._check(kernel, min(grid, 2), min(block, 256), args)
        return super().seconds(kernel, grid, block, args)

    def _check(self, kernel, grid, block, args):
        typed = [np.int32(arg) if isinstance(arg, int) else arg for arg in args]
        copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in typed]
        own = typed if kernel.name.startswith("chase<") else copies  # a ring holds the addresses of its own
        self.found += [(kernel.name, each) for each in kernel.check((grid,), (block,), own, timeout=30)]


@pytest.mark.slow  # probes of a GPU's limits; no lab uses them
@pytest.mark.parametrize("quantity", dict.fromkeys(each.quantity for each in limits.plan()))
def test_every_limit_runs_in_the_simulator_without_findings(quantity):
    machine = Checked()
    machine.found = []
    for each, value in limits.measure(limits.plan([quantity]), machine):
        assert not isinstance(value, Exception), f"{each}: {value}"
        assert math.isfinite(value) and value > 0, each
    assert machine.found == []


def test_each_figure_has_one_name():
    plan = limits.plan()
    assert len({(each.quantity, each.variant) for each in plan}) == len(plan) > 100
    assert {each.quantity for each in plan} <= set(re.findall(r"`(\w+)`", limits.__doc__))
    assert [each.variant for each in limits.plan(["tail"])] == ["even", "growing", "shrinking"]
    with pytest.raises(ValueError, match=r"no limit 'speed'\. Choose from latency, .*tail"):
        limits.plan(["speed"])


class TestArithmetic:
    """With given cycles and seconds."""

    @pytest.fixture
    def machine(self, monkeypatch):
        machine = Machine()
        monkeypatch.setattr(machine, "launch", lambda *_: None)
        monkeypatch.setattr(machine, "kernel", lambda file, name: name)
        monkeypatch.setattr(machine, "cycles_of_thread", lambda *_: 1024)
        monkeypatch.setattr(machine, "cycles_of_block", lambda *_: 1024)
        monkeypatch.setattr(machine, "seconds", lambda *_: 1e-3)
        return machine

    def value(self, machine, quantity, variant):
        (limit,) = (each for each in limits.plan([quantity]) if each.variant == variant)
        return limit.measure(machine)

    def test_clocks_of_a_step(self, machine):
        assert self.value(machine, "latency", "FFMA") == 1024 / 256
        assert self.value(machine, "latency", "barrier 256") == 1024 / 16

    def test_instructions_per_clock(self, machine):
        assert self.value(machine, "issue_rate", "FFMA") == 2 * 256 / 1024  # two warps in the simulator
        assert self.value(machine, "issue_rate", "FFMA and IADD") == 2 * 256 / 1024

    def test_clocks_of_a_request_and_bytes_per_clock(self, machine):
        assert self.value(machine, "shared_clocks", "LDS.128") == 1024 / (8 * 8)
        assert self.value(machine, "load_bandwidth", "LDG.128") == 512 / (1024 / 16)

    def test_bytes_per_second(self, machine):
        assert self.value(machine, "dram_triad", "1024 MiB") == pytest.approx(3 * 2**18 / 1e-3 / 1e9)
        assert self.value(machine, "l2_read", "64 MiB") == pytest.approx(2 * 2**16 / 1e-3 / 1e9)
        assert self.value(machine, "sectors", "one per 128 bytes") == pytest.approx(2**16 / 1e-3 / 1e9)

    def test_a_block_lasts_from_its_first_warp_to_its_last(self):
        assert span(np.array([5, 3, 9]), np.array([20, 30, 25])) == 27


class TestPatterns:
    @pytest.mark.parametrize("lines", [1, 2, 4, 8, 16, 32])
    def test_loads_touch_so_many_lines(self, lines):
        for pattern in (rates.distinct_banks, rates.same_banks, rates.whole_lines):
            assert rates.touched(pattern(lines), rates.LINE) == lines
            assert len(set(pattern(lines))) == 32 and max(pattern(lines)) < rates.PATTERN
        assert len({offset % 128 for offset in rates.distinct_banks(lines)}) == 32
        assert len({offset % 128 for offset in rates.same_banks(lines)}) == 32 // lines
        assert rates.touched(rates.whole_lines(lines), rates.SECTOR) == min(32, 4 * lines)

    @pytest.mark.parametrize("sectors", [1, 2, 4, 8, 16, 32])
    def test_stores_touch_so_many_sectors(self, sectors):
        assert rates.touched(rates.packed_sectors(sectors), rates.SECTOR) == sectors

    def test_each_access_of_a_thread_has_a_place_of_its_own_within_its_warps(self):
        for instance, offsets in rates.SHARED.values():
            shift, size = rates.shift_of(instance, offsets), 16 if "B128" in instance else 4
            places = [offset + i * shift for i in range(8) for offset in set(offsets)]
            assert len(set(places)) == len(places) and max(places) + size <= rates.PATTERN

    @pytest.mark.parametrize("words", [1, 2, 4, 8, 16, 32])
    def test_banks_have_so_many_words(self, words):
        banks = [offset // 4 % 32 for offset in rates.bank_words(words)]
        assert {banks.count(bank) for bank in banks} == {words}

    def test_a_ring_has_a_prime_jump_that_meets_each_address(self):
        for _, size, stride, _ in latency.RINGS.values():
            assert math.gcd(1021 % (size // stride) or 1, size // stride) == 1

    def test_random_sectors_are_of_a_power_of_two(self):
        assert all(math.log2(size * memory.MIB / 32).is_integer() for size in (16, 1024))


def test_a_run_writes_its_rows_and_tells_what_failed(tmp_path, monkeypatch):
    def fail(machine):
        raise LaunchError("no")

    plan = [Limit("a", "x, y", "us", lambda machine: 12.345678), Limit("b", "z", "us", fail)]
    rows, failures = limits.run(plan, tmp_path, ORIGIN)
    assert rows == limits.read(tmp_path / "limits.csv") == [("a", "x, y", "us", 12.346)]
    assert failures == ["b, z: no"] and "--limits" in (tmp_path / "limits.json").read_text()
    (tmp_path / "limits.csv").write_text("quantity\n")
    with pytest.raises(ValueError, match="columns must be quantity, variant, unit, value, not quantity"):
        limits.read(tmp_path / "limits.csv")


def test_recorded_times_are_not_mixed_with_limits(tmp_path):
    from labkit import records

    limits.run([], tmp_path, ORIGIN)
    with pytest.raises(ValueError, match="no runs recorded"):
        records.recorded(tmp_path)


def test_the_command_prints_the_table_and_needs_a_gpu(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from labkit import cli, records

    def run(*args):
        return CliRunner().invoke(cli.app, ["bench", str(tmp_path), "--limits", *args])

    assert "LABKIT_DEVICE is simt" in run().output or "CuPy" in run().output
    assert run("--quick").exit_code == 2 and "no limit 'speed'" in run("--only", "speed").output
    monkeypatch.setattr(records, "provenance", lambda command: ORIGIN)
    result = run("--only", "tail")
    assert result.exit_code == 0 and "shrinking" in result.output and "limits.csv" in result.output
    with (tmp_path / "limits.csv").open() as file:
        assert [row["unit"] for row in csv.DictReader(file)] == ["us"] * 3


@pytest.mark.gpu
def test_memories_are_in_order_on_a_gpu(gpu, tmp_path):
    plan = [*limits.plan(["latency"]), *limits.plan(["issue_rate"])[:1]]
    rows, failures = limits.run(plan, tmp_path, ORIGIN)
    clocks = {variant: value for quantity, variant, _, value in rows if quantity == "latency"}
    assert failures == [] and clocks["FFMA"] < clocks["L1"] < clocks["L2"] < clocks["DRAM"]
    assert clocks["shared"] < clocks["L2"] and 1 < rows[-1][3] <= 4.01
