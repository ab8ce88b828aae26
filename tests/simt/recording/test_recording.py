"""What a recording says, against NumPy, plain runs, `kernel.profile` and `kernel.check`."""

import base64
import gzip
import json
import math
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
import simt
from labkit.kernels.problem import problem, problem_class
from labkit.model import predicted
from simt.counters.recording import ADDRESSES, AFTER, RESULT
from simt.recording.events import items_of, kind_of
from simt.recording.page_data import _encoded, page_data
from simt.recording.record import record

N, TILE = 64, 16
TILED = """
#define TILE 16
extern "C" __global__ void tiled(const float* A, const float* B, float* C, int K, int N) {
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < K; t += TILE) {
        a[threadIdx.y][threadIdx.x] = A[row * K + t + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(t + threadIdx.y) * N + col];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        __syncthreads();
    }
    C[row * N + col] = sum;
}"""
NO_BARRIER = TILED.replace("        __syncthreads();\n        for", "        for")


def tiled(source=TILED):
    random = np.random.default_rng(1)
    a, b = (random.random((N, N), np.float32) for _ in range(2))
    args = (a, b, np.zeros((N, N), np.float32), np.int32(N), np.int32(N))
    return simt.RawModule(code=source).get_function("tiled"), (N // TILE, N // TILE), (TILE, TILE), args


@pytest.fixture(scope="module")
def product():
    kernel, grid, block, args = tiled()
    return labkit.trace(kernel, grid, block, args, at=(1, 2)), args


# Values.


def test_a_variable_takes_the_values_of_numpy_step_by_step(product):
    trace, (a, b, *_) = product
    rows, cols = 2 * TILE + np.arange(TILE), TILE + np.arange(TILE)
    sums = np.zeros((TILE, TILE), np.float32)
    expected = {(x, y): [0.0] for x in range(TILE) for y in range(TILE)}
    for k in range(N):  # debug code rounds the product and the sum, as two instructions
        sums += a[rows, k][:, None] * b[k, cols]
        for (x, y), found in expected.items():
            found.append(float(sums[y, x]))
    changes = trace.values("sum").groupby("thread").value.apply(list)
    assert {thread[:2]: values for thread, values in changes.items()} == expected


@pytest.mark.parametrize("ctype", ["double", "float", "__half", "long long", "short"])
def test_variables_of_every_width_keep_their_bits(ctype):
    dtype = {"double": "f8", "float": "f4", "__half": "f2", "long long": "i8", "short": "i2"}[ctype]
    source = """#include <cuda_fp16.h>
    extern "C" __global__ void f(const TYPE* x, TYPE* y) {
        TYPE each = x[threadIdx.x];
        TYPE twice = each + each;
        y[threadIdx.x] = twice;
    }""".replace("TYPE", ctype)
    x = (np.arange(32) * 1.25).astype(dtype)
    args = (x, np.zeros_like(x))
    traced = labkit.trace(simt.RawModule(code=source).get_function("f"), 1, 32, args)
    stored = traced.accesses.query("kind == 'store' and element.str.startswith('y[')").sort_values("thread")
    np.testing.assert_array_equal(stored.value.to_numpy().astype(dtype), x + x)


def test_a_loop_counter_counts(product):
    changes = product[0].values("t").groupby("thread").value.apply(list)
    assert all(values == [0, 16, 32, 48, 64] for values in changes)
    assert set(product[0].values("row").value) == set(range(32, 48))


def test_what_a_store_leaves_is_what_the_launch_computes(product):
    trace, (a, b, *_) = product
    stores = trace.accesses[trace.accesses.array == "C"]
    found = {each.element: each.value for each in stores.itertuples()}
    _, grid, block, args = tiled()
    debug = simt.RawModule(code=TILED, options=("-G",)).get_function("tiled")
    debug(grid, block, args)
    assert found == {
        f"C[{row}][{col}]": float(args[2][row, col]) for row in range(32, 48) for col in range(16, 32)
    }
    np.testing.assert_allclose(args[2], a @ b, rtol=1e-5)


def test_arrays_keep_their_contents(product):
    assert not product[1][2].any()


# Random programs: each statement writes its result to an array, too.

NAMES = ("x", "y", "z")


@st.composite
def programs(draw):
    """Return statements that change x, y and z, with branches and loops; `NOTE` follows each.

    Each adds a number of its own: where a statement only copies or repeats a value, the compiler makes no
    instruction of it, and its debug information has the new value a line late.
    """
    numbers = count(1001)

    def operand():
        return draw(st.sampled_from([*NAMES, "lane"]))

    def statement(depth):
        name = draw(st.sampled_from(NAMES))
        kind = draw(st.integers(0, 3 if depth < 2 else 0))
        note = f"NOTE({NAMES.index(name)}, {name})"
        operator = draw(st.sampled_from("+-*^&"))
        simple = f"{name} = ({operand()} {operator} {operand()}) + {next(numbers)}; {note}"
        if kind == 1:
            condition = f"({operand()} ^ lane) & {draw(st.integers(1, 9))}"
            return [f"if ({condition}) {{", *body(depth), "} else {", simple, "}"]
        if kind == 2:
            counter = f"i{depth}"
            return [f"for (int {counter} = 0; {counter} < (lane & 3); {counter}++) {{", *body(depth), "}"]
        if kind == 3:
            return [f"{name} = twice({operand()}) + {next(numbers)}; {note}"]
        return [simple]

    def body(depth):
        return [line for _ in range(draw(st.integers(1, 3))) for line in statement(depth + 1)]

    return "\n".join(line for _ in range(draw(st.integers(2, 5))) for line in statement(0))


FRAME = """
#define NOTE(which, value) {{ log[3 * (64 * count + threadIdx.x) + which] = value; count++; }}
__device__ __noinline__ int twice(int v) {{ int w = v * 2; return w + 1; }}
extern "C" __global__ void f(int* log, int* end, const int* start) {{
    int lane = threadIdx.x;
    int count = 0;
    int x = start[lane];
    int y = lane * 3;
    int z = 5;
{body}
    end[lane] = x ^ y ^ z;
}}"""
UNTOUCHED = -(2**31) + 12345


@settings(max_examples=8, deadline=None)
@given(programs(), st.integers(0, 2**31 - 1), st.sampled_from([None, 7]))
def test_values_of_random_programs_are_those_that_they_store(program, number, seed):
    kernel = simt.RawModule(code=FRAME.format(body=program)).get_function("f")
    start = np.random.default_rng(number).integers(-100, 100, 64, dtype=np.int32)
    log = np.full((1500, 64, 3), UNTOUCHED, np.int32)
    args = log, np.zeros(64, np.int32), start
    trace = labkit.trace(kernel, 1, 64, args, seed=seed)
    kernel(1, 64, args)
    accesses = trace.accesses[(trace.accesses.array == "log") & (trace.accesses.kind == "store")]
    values = {name: trace.values(name) for name in NAMES}
    for which, name in enumerate(NAMES):
        notes = accesses[accesses.element.str.endswith(f"[{which}]") & (accesses.line > 10)]
        for thread in (0, 17, 33, 63):
            mine = notes[notes.thread == (thread, 0, 0)]
            mine = mine[mine.element.str.contains(f"][{thread}][", regex=False)]
            stored = [log[tuple(int(i) for i in e[4:-1].split("]["))] for e in mine.element]
            changes = values[name][values[name].thread == (thread, 0, 0)]
            # What the variable holds when it is stored is its latest change before that.
            held = [changes[changes.event < event].value.iloc[-1] for event in mine.event]
            assert held == stored


LOCAL = """extern "C" __global__ void f(float* out) {
    float s[2][4], t[4];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) s[i][j] = i + j * threadIdx.x;
    for (int j = 0; j < 4; j++) t[j] = s[1][j];
    out[threadIdx.x] = s[threadIdx.x % 2][threadIdx.x % 4] + t[threadIdx.x % 4];
}"""


def test_arrays_in_local_memory_have_their_names():
    kernel = simt.RawModule(code=LOCAL).get_function("f")
    found = labkit.trace(kernel, 1, 32, (np.zeros(32, np.float32),))
    stores = found.accesses[(found.accesses.space == "local") & (found.accesses.kind == "store")]
    of_one = stores[stores.lane == 5]
    expected = {f"s[{i}][{j}]": i + 5.0 * j for i in range(2) for j in range(4)}
    expected |= {f"t[{j}]": 1 + 5.0 * j for j in range(4)}
    assert dict(zip(of_one.element, of_one.value, strict=True)) == expected


# Accesses and findings.


MATMULS = ("tiled", "naive", "naive_uncoalesced", "register_column", "vectorised")
TRANSPOSES = ("swizzled", "naive", "shared", "padded", "vectorised")


@pytest.mark.parametrize(
    ("family", "rung"),
    [*(("matmul", rung) for rung in MATMULS), *(("transpose", rung) for rung in TRANSPOSES)],
)
def test_accesses_are_those_of_a_profile(family, rung):
    each = problem(family, *[64] * len(problem_class(family).size_names))
    kernel, grid, block = predicted._rung(predicted.rung_case(rung, each))
    args = each.args(np)
    found = labkit.trace(kernel, grid, block, args, optimised=True)
    counted = kernel.profile(grid, block, args, blocks=[0]).lines
    scale = math.prod(found.recording.launch.grid)
    requests = found.accesses.drop_duplicates(["event"]).groupby(["line", "kind"]).size()
    for row in counted.itertuples():
        kind = {"ld": "load", "st": "store"}.get(row.op, "atomic")
        assert requests.get((row.line, kind), 0) * scale == row.requests, row
    shared = found.accesses[found.accesses.space == "shared"]
    banks = shared.address.floordiv(4).mod(32)
    assert banks.between(0, 31).all()


def test_findings_are_those_of_a_check():
    kernel, grid, block, args = tiled(NO_BARRIER)
    found = labkit.trace(kernel, grid, block, args)
    debug = simt.RawModule(code=NO_BARRIER, options=("-G",)).get_function("tiled")
    expected = debug.check(grid, block, args, blocks=[0])
    assert [each.message for each in expected] == found.findings.message.tolist()
    assert {"racecheck"} == set(found.findings.tool)
    accesses = found.accesses.set_index("event")
    for each in found.findings.itertuples():
        first, second = each.events
        shared = set(accesses.loc[[first]].address) & set(accesses.loc[[second]].address)
        assert first < second
        assert shared
        assert "store" in {*accesses.loc[[first]].kind, *accesses.loc[[second]].kind}


def test_an_order_of_warps_changes_what_a_race_reads():
    kernel, grid, block, args = tiled(NO_BARRIER)
    results = []
    for first in (0, 7):
        found = labkit.trace(kernel, grid, block, args, first=first)
        assert found.steps.warp.iloc[0] == first
        stored = found.accesses[found.accesses.array == "C"]
        results.append(stored.set_index("element").value)
    assert (results[0] != results[1].reindex(results[0].index)).any()
    traces = [labkit.trace(kernel, grid, block, args, seed=seed) for seed in range(4)]
    assert len({tuple(each.steps.warp.drop_duplicates()) for each in traces}) > 1


# What ends early.


def ending(source, **how):
    kernel, grid, block, args = tiled(source)
    return labkit.trace(kernel, grid, block, args, **how)


def test_a_wild_access_is_the_last_event():
    found = ending(TILED.replace("A[row * K + t", "A[row * K + 4096 + t"))
    assert "past the end of `A`" in str(found.recording.error)
    last = found.steps.iloc[-1]
    assert (last.kind, found.recording.source[last.line - 1].strip()[:2]) == ("load", "a[")
    assert found.findings.events.iloc[-1] == (len(found.steps) - 1,)


def test_a_trap_ends_the_recording():
    found = ending(TILED.replace("    float sum", "    if (row == 5) __trap();\n    float sum"))
    assert "stopped itself" in str(found.recording.error)
    assert found.steps.warp.iloc[-1] == 2  # rows 4 and 5


def test_a_loop_without_end_is_recorded_until_it_is_full():
    kernel, grid, block, args = tiled(TILED.replace("t += TILE", "t += 0"))
    found = record(kernel, grid, block, args, megabytes=2, timeout=1)
    assert "was stopped" in str(found.error)
    assert "The recording is full" in found.cut
    told = json.loads(page_data(found))
    assert told["cut"]["recorded"] < told["cut"]["total"]
    assert told["events"] == len(found.events) > 1000


def test_lanes_at_a_barrier_that_others_miss():
    some = "        if (threadIdx.x < 8) __syncthreads();\n    }"
    found = ending(TILED.replace("        __syncthreads();\n    }", some))
    last = found.steps.iloc[-1]
    assert (last.kind, last.lanes) == ("barrier", 16)


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"at": (9, 9)}, ValueError, "not in the grid"),
        ({"at": -1}, ValueError, "not in the grid"),
        ({"first": 8}, ValueError, "warps 0 to 7"),
        ({"first": 1, "seed": 2}, ValueError, "either"),
    ],
)
def test_wrong_input_gets_a_clear_error(how, error, words):
    kernel, grid, block, args = tiled()
    with pytest.raises(error, match=words):
        labkit.trace(kernel, grid, block, args, **how)
    with pytest.raises(TypeError, match=r"CUDA C\+\+"):
        labkit.trace(print, grid, block, args)
    with pytest.raises(ValueError, match="has: A, B, C"):
        labkit.trace(kernel, grid, block, args).values("nobody")


# The page's data.


def unpacked(text):
    """Decode the columns of a page, as the page does; return site, warp, mask and the vectors in order."""
    told = json.loads(text)
    data, at = gzip.decompress(base64.b64decode(told["data"])), 0
    columns = []
    sizes = [told["events"]] * 3 + [told["forms_count"], told["words_count"]]
    for size, type_ in zip(sizes, ("<u2", "u1", "<u4", "u1", "<u4"), strict=True):
        column = np.frombuffer(data, type_, size, at)
        columns.append(column)
        at += -(-column.nbytes // 8) * 8
    return told, columns


def vectors_of(told, columns):
    """Yield (event, number of the vector within it, {lane: value}) for each vector that has values."""
    site, _, mask, forms, words = columns
    wide = {"b64", "u64", "s64", "f64"}
    form_at = word_at = 0
    for event in range(told["events"]):
        code = told["sites"][site[event]]
        types = ["u32"] * (code["kind"] in ("load", "store", "atomic"))
        types += [told["registers"][register]["type"] for register in code["writes"]]
        if code["kind"] in ("store", "atomic"):
            types += [code["type"]] * (1 if code["kind"] == "atomic" else code["items"])
        lanes = [lane for lane in range(32) if mask[event] >> lane & 1]
        for number, type_ in enumerate(types):
            form, each = forms[form_at], 2 if type_ in wide else 1
            count = (0, 1, 2, 32, len(lanes))[form] * (1 if form == 2 else each)
            part = words[word_at : word_at + count].astype(np.uint64)
            form_at, word_at = form_at + 1, word_at + count
            if form == 2:
                yield event, number, {lane: (int(part[0]) + lane * int(part[1])) % 2**32 for lane in lanes}
                continue
            values = part if each == 1 else part[::2] | part[1::2] << np.uint64(32)
            if form == 1:
                yield event, number, {lane: int(values[0]) for lane in lanes}
            elif form:
                kept = lanes if form == 4 else range(32)
                yield event, number, {k: int(v) for k, v in zip(kept, values, strict=True) if k in lanes}
    assert (form_at, word_at) == (len(forms), len(words))


@pytest.mark.parametrize("optimised", [False, True])
def test_a_page_has_the_recordings_values(optimised):
    kernel, grid, block, args = tiled()
    recording = labkit.trace(kernel, grid, block, args, optimised=optimised).recording
    told, columns = unpacked(page_data(recording))
    events = recording.events
    for mine, column in zip((events.site, events.warp, events.mask), columns, strict=False):
        np.testing.assert_array_equal(mine, column)
    seen = 0
    for event, number, values in vectors_of(told, columns):
        code = recording.code[events.site[event]]
        is_access = kind_of(code) in ("load", "store", "atomic")
        if is_access and number == 0:
            host = events.vectors.values(event, ADDRESSES)
            expected = recording.memory.places(host[None, :], events.warp[[event]])[0]
        else:
            number -= is_access
            results = len(code.results)
            role = RESULT + number if number < results else AFTER + number - results
            assert number < results + items_of(code) if is_access else number < results
            expected = events.vectors.values(event, role)
        assert values == {lane: int(expected[lane]) for lane in values}
        seen += 1
    assert seen == len(events.vectors.event)
    assert len(page_data(recording)) < 2e6


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_every_form_of_a_vector_keeps_the_values_of_its_lanes(data):
    wide = data.draw(st.booleans())
    kind, bits = (np.uint64, 64) if wide else (np.uint32, 32)
    rows, masks = [], []
    for _ in range(data.draw(st.integers(1, 6))):
        first, step = data.draw(st.integers(0, 2**bits - 1)), data.draw(st.integers(0, 2**bits - 1))
        noise = data.draw(st.sets(st.integers(0, 31), max_size=3))
        row = [(first + step * lane + (lane in noise)) % 2**bits for lane in range(32)]
        rows.append(row)
        masks.append(data.draw(st.integers(1, 2**32 - 1)))
    rows, masks = np.array(rows, kind), np.array(masks, np.uint32)
    forms, counts = np.zeros(len(rows), np.uint8), np.zeros(len(rows), np.int64)
    parts = _encoded(np.arange(len(rows)), rows, masks, forms, counts)
    starts = np.cumsum(counts) - counts
    words = np.zeros(int(counts.sum()), np.uint32)
    for some, values, position in parts:
        words[starts[some] + position] = values
    told = {
        "events": len(rows),
        "sites": [{"kind": "compute", "writes": [0]}],
        "registers": [{"type": f"b{bits}"}],
    }
    columns = np.zeros(len(rows), np.uint16), None, masks, forms, words
    found = {event: values for event, _, values in vectors_of(told, columns)}
    for event, (row, mask) in enumerate(zip(rows, masks, strict=True)):
        lanes = [lane for lane in range(32) if mask >> lane & 1]
        assert found[event] == {lane: int(row[lane]) for lane in lanes}


def test_a_function_may_take_a_reference_to_an_array():
    source = """
__device__ void fill(float (&values)[4], float with)
{
    for (float& each : values)
        each = with;
}
extern "C" __global__ void k(float* out)
{
    float mine[4];
    fill(mine, threadIdx.x);
    out[threadIdx.x] = mine[0] + mine[3];
}"""
    out = np.zeros(32, np.float32)
    found = labkit.trace(simt.RawModule(code=source).get_function("k"), 1, 32, (out,))
    stores = found.accesses.query("line == 5 and kind == 'store' and array == 'mine'")
    assert set(stores.value) == set(range(32))
