"""The explorers of notebook 12: rounds of trees by hand and as kernels run them, turns of a histogram."""

import numpy as np
import pytest

import simt
from labkit import widgets
from labkit.figures.pictures.contention import Elements, turns
from labkit.figures.pictures.reduction import FORMS, HALVES, PACKED, SHUFFLE, SPREAD, Round, tree
from labkit.widgets.contention_view import contention_view
from labkit.widgets.reduction_view import reduction_view

SOURCE = """extern "C" __global__ void f(float* x) {
    __shared__ float sums[THREADS];
    int t = threadIdx.x;
    sums[t] = x[t];
    __syncthreads();
    ROUNDS
    if (t == 0) x[0] = sums[0];
}"""
ROUNDS = {
    SPREAD: """for (int apart = 1; apart < THREADS; apart *= 2) {
        if (t % (2 * apart) == 0)
            sums[t] += sums[t + apart];
        __syncthreads(); }""",
    PACKED: """for (int apart = 1; apart < THREADS; apart *= 2) {
        if (t < THREADS / 2 / apart)
            sums[2 * apart * t] += sums[2 * apart * t + apart];
        __syncthreads(); }""",
    HALVES: """for (int apart = THREADS / 2; apart > 0; apart /= 2) {
        if (t < apart)
            sums[t] += sums[t + apart];
        __syncthreads(); }""",
}


@pytest.mark.parametrize("threads", [64, 256])
@pytest.mark.parametrize("form", ROUNDS)
def test_additions_and_conflicts_are_those_of_a_kernel(form, threads):
    code = SOURCE.replace("ROUNDS", ROUNDS[form]).replace("THREADS", str(threads))
    kernel = simt.RawModule(code=code).get_function("f")
    x = np.ones(threads, np.float32)
    profile = kernel.profile(1, threads, (x,))
    assert x[0] == threads
    every = [Round(form, threads, number) for number in range(1, threads.bit_length())]
    stores = profile.lines.query("space == 'shared' and op == 'st' and source.str.startswith('sums[t] +=')")
    if form == PACKED:
        stores = profile.lines.query("space == 'shared' and op == 'st' and source.str.startswith('sums[2')")
    assert stores.requests.sum() == sum(each.warps for each in every)
    assert stores.threads.sum() == sum(len(each.sides[0]) for each in every) == threads - 1
    assert profile.lines.conflicts.sum() == sum(each.conflicts for each in every)


@pytest.mark.parametrize("threads", [32, 128, 256])
@pytest.mark.parametrize("form", FORMS)
def test_all_rounds_add_up_the_block(form, threads):
    sums = np.arange(threads, dtype=float)
    if form == SHUFFLE:
        for number in range(1, 6):
            adders, other = Round(form, threads, number).sides
            sums[adders] = sums[adders] + sums[other]
        of_warps = np.zeros(32)
        of_warps[: threads // 32] = sums[::32]
        for number in range(6, Round(form, threads, 1).rounds + 1):
            adders, other = Round(form, threads, number).sides
            of_warps[adders] = of_warps[adders] + of_warps[other]
        sums = of_warps if threads > 32 else sums
    else:
        for number in range(1, Round(form, threads, 1).rounds + 1):
            now = Round(form, threads, number)
            sums[now.own] += sums[now.sides[1]]
    assert sums[0] == threads * (threads - 1) / 2


def test_rounds_by_hand():
    assert Round(SPREAD, 128, 1).warps == 4 and Round(SPREAD, 128, 7).warps == 1
    assert Round(HALVES, 128, 1).warps == 2 and Round(HALVES, 128, 1).conflicts == 0
    # 32 lanes ask for words 0, 2, 4, … 62: two per bank, for both sums and the store, in both warps
    assert Round(PACKED, 128, 1).conflicts == 2 * 3
    assert Round(SHUFFLE, 128, 1).lanes == 0.5 and Round(SHUFFLE, 128, 6).warps == 1
    assert "64 threads add, in 2 of 4 warps" in tree().alt
    assert "4 warps at work for 12.5 % of their lanes" in reduction_view(SPREAD, 128, 3).text
    assert "6 bank conflicts in this round" in reduction_view(PACKED, 128, 1).text
    assert "One warp needs no barrier" in reduction_view(SHUFFLE, 32, 5).text
    with pytest.raises(ValueError, match=r"no round 8\. Choose 1 to 7"):
        tree(HALVES, 128, 8)


@pytest.mark.parametrize("bins", [1, 5, 64, 999])
@pytest.mark.parametrize("skew", [1, 4])
def test_turns_are_those_that_the_simulator_counts(bins, skew):
    now = Elements(bins, skew, n=2**12)
    source = """extern "C" __global__ void f(const int* x, int* out) {
        atomicAdd(&out[x[blockIdx.x * 256 + threadIdx.x]], 1);
    }"""
    kernel, counts = simt.RawModule(code=source).get_function("f"), np.zeros(1000, np.int32)
    lines = kernel.profile(16, 256, (now.drawn.ravel(), counts)).lines.query("turns > 0")
    assert now.turns.sum() == lines.turns.sum()
    assert round(now.sectors * 2**12 / 32) == lines.sectors.sum()
    assert now.busiest == counts.max() / 2**12


def test_contention_says_what_it_finds():
    assert "32 turns per warp on average; the busiest bin has 100 %" in turns(1).alt
    # 2^24 additions to one address, 1.34 billion per second
    assert "at least 12.5 ms" in contention_view(1, 1).text
    assert "16,777,216 turns" in contention_view(1, 1).text


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (widgets.reduction, "number", 3),
        (widgets.reduction, "form", PACKED),
        (widgets.reduction, "threads", 256),
        (widgets.contention, "bins", 8),
        (widgets.contention, "skew", 4),
    ],
)
def test_each_control_changes_the_picture(make, name, value):
    shown = make()
    assert str(shown.set(**{name: value}).pictures[0]) != str(make().set().pictures[0])


def test_rounds_follow_the_threads():
    shown = widgets.reduction()
    shown.set(number=7)
    assert "Round 5 of 5" in shown.set(threads=32).pictures[0].alt
