"""Checks of notebook 09: broken kernels fail for the reason they are broken, right ones pass."""

import numpy as np
import pytest
from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

import simt
from labkit import records
from labkit.course.criteria import hints, host, kernels
from labkit.course.criteria.kernels import clean_in, loads_in, right_in
from labkit.course.criteria.launches import of_vector
from labkit.course.criteria.model_gpu import ModelGpu
from labkit.course.exercise import Unmet
from labkit.course.exercises import lab_09
from labkit.course.tool_comparison import who_finds
from simt import Finding

STARTERS = {
    "09.1": (1, "racecheck", "11", lab_09.WAIT.race),
    "09.2": (1, "`in`", lab_09.NEIGHBOURS.out_of_bounds),
    "09.3": (1, "'right'", host.ASK),
    "09.4": (1, "out[0]", "initcheck", "12", lab_09.EDGES.usual),
    "09.5": (1, lab_09.EVERYONE.sync),
    "09.6": (1, "K=400", "1000", "tile=5", host.BOUND),
    "09.7": (1, "0.005", "4", host.UNFINISHED),
    "09.8": (1, "'A'", "'spilled registers'"),
    "09.9": (3, "131,072", "18,022", lab_09.IN_A_ROW),
    "09.10": (3, "24,576", "0", lab_09.FLOATS),
    "09.11": (3, "23.9", lab_09.CHAINS),
    "09.12": (3, "0", lab_09.PAD),
    "09.13": (3, "256", "4", lab_09.WRAP),
    "09.14": (3, "3", lab_09.SELECT),
}

test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)

TREE = """    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half)
            s[t] += s[t + half];
        __syncthreads();
    }
"""
SCAN = """    for (int d = 1; d < blockDim.x; d *= 2) {
        float left = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += left;
        __syncthreads();
    }
"""
HALO = """    s[t + R] = i < n ? in[i] : 0;
    if (t < R) {
        s[t] = i >= R ? in[i - R] : 0;
        s[t + 128 + R] = i + 128 < n ? in[i + 128] : 0;
    }
"""
HEAT = """    if (row >= rows || col >= cols)
        return;
    float left = col > 0 ? in[i - 1] : 0, right = col + 1 < cols ? in[i + 1] : 0;
    float above = row > 0 ? in[i - cols] : 0, below = row + 1 < rows ? in[i + cols] : 0;
"""
TOLERANCE = """    bound = A.shape[1] * 2.0**-24 * (abs(A) @ abs(B))
    right = abs(got - A.astype(float) @ B) <= 2 * bound
"""
LISTED = "    return sorted({(r // tile, c // tile) for r, c in np.argwhere(~right).tolist()})"
CLOCK = """    launch()
    synchronize()
    start = clock()
    launch()
    synchronize()
"""
FILL = "    out.fill(np.nan)\n"
CATCH = "labkit.simt.LaunchError"

SHUFFLED = """    for (int d = 16; d > 0; d /= 2)
        mine += __shfl_down_sync(~0u, mine, d);
    __shared__ float w[8];
    if (t % 32 == 0)
        w[t / 32] = mine;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 8; ++k)
        sum += w[k];
"""
FROM_GLOBAL = """    float sum = 0;
    int first = blockIdx.x * 256;
    for (int k = first; k < n && k < first + 256; ++k)
        sum += in[k];
"""
ONE_BY_ONE = """    if (row >= rows || col >= cols)
        return;
    float sum = 0;
    if (col) sum += in[i - 1];
    if (col < cols - 1) sum += in[i + 1];
    if (row) sum += in[i - cols];
    if (row < rows - 1) sum += in[i + cols];
"""
ZEROS = "    for (int k = t; k < 128 + 2 * R; k += 128) s[k] = 0;\n"
HALO_LOOP = """    for (int k = t; k < 128 + 2 * R; k += 128) {
        int j = blockIdx.x * 128 + k - R;
        s[k] = j >= 0 && j < n ? in[j] : 0;
    }
"""
TWO_ARRAYS = """    for (int d = 1; d < blockDim.x; d *= 2) {
        next[t] = s[t] + (t >= d ? s[t - d] : 0);
        __syncthreads();
        float* old = s;
        s = next;
        next = old;
    }
"""
SERIAL = """    if (t == 0)
        for (int k = 1; k < 256; ++k)
            s[{}] += s[{}];
    __syncthreads();
"""
OWN = """    float sum = 0;
    for (int k = 0; k <= t; ++k)
        sum += s[k];
    __syncthreads();
    s[t] = sum;
"""
IN_BRANCH = SCAN.replace("        float left", "        if (t >= d) {\n        float left").replace(
    "    }\n", "    }}\n"
)
MEDIAN = """    launch()
    times = []
    for _ in range(5):
        synchronize()
        start = clock()
        launch()
        synchronize()
        times.append(1000 * (clock() - start))
    return float(np.median(times))
"""
TILE_BY_TILE = """    found = []
    for i, r in enumerate(range(0, len(got), tile)):
        for j, c in enumerate(range(0, len(got[0]), tile)):
            if not right[r : r + tile, c : c + tile].all():
                found.append([i, j])
    return found"""
WHOLE_TILES = """    return [
        (i, j)
        for i in range(len(got) // tile)
        for j in range(got.shape[1] // tile)
        if not right[i * tile : (i + 1) * tile, j * tile : (j + 1) * tile].all()
    ]"""
BY_SUMS = """    off = got - A.astype(float) @ B
    edges = range(0, len(got), tile), range(0, got.shape[1], tile)
    sums, bounds = (np.add.reduceat(np.add.reduceat(x, edges[0], 0), edges[1], 1) for x in (off, 2 * bound))
    return np.argwhere(~(abs(sums) <= bounds))"""
PER_TILE = """    found = []
    for i in range(0, len(got), tile):
        for j in range(0, got.shape[1], tile):
            part = np.s_[i : i + tile, j : j + tile]
            if not abs(got - A.astype(float) @ B)[part].max() <= 2 * bound[part].max():
                found.append((i // tile, j // tile))
    return found"""
WAITED = "        __syncthreads();\n"
FIRST = "    __syncthreads();\n    for"  # the barrier before the loop
WITHIN, OFF = "abs(got - A.astype(float) @ B) <= 2 * bound", "abs(got - A.astype(float) @ B)"
SIZES = "(abs(A) @ abs(B))"


def returned(expression):
    """The answer to 09.6 with another last line."""
    return LISTED, f"    return {expression}"


TILED = """    __shared__ float tile[128][33];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, first = blockIdx.x * 128;
    float sum = 0;
    for (int start = 0; start < cols; start += 32) {
        for (int r = warp; r < 128; r += 4) {
            bool inside = first + r < rows && start + lane < cols;
            tile[r][lane] = inside ? in[(first + r) * cols + start + lane] : 0;
        }
        __syncthreads();
        for (int c = 0; c < 32; ++c)
            sum += tile[t][c];
        __syncthreads();
    }
    if (first + t < rows)
        out[first + t] = sum;
"""
BY_WARPS = """    int lane = threadIdx.x % 32, first = blockIdx.x * blockDim.x + threadIdx.x / 32 * 32;
    for (int row = first; row < first + 32 && row < rows; ++row) {
        float sum = 0;
        for (int col = lane; col < cols; col += 32)
            sum += in[row * cols + col];
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_down_sync(~0u, sum, step);
        if (lane == 0)
            out[row] = sum;
    }
"""
FOUR = """    float v[4];
    for (int start = 0; start < 4; ++start)
        v[start] = in[i] + start;
    for (int k = 0; k < rounds; ++k)
        for (int start = 0; start < 4; ++start)
            v[start] = v[start] * 0.999f + 0.001f;
    out[i] = v[0] + v[1] + v[2] + v[3];
"""
TWO = """    float sum = 0;
    for (int start = 0; start < 4; start += 2) {
        float v = in[i] + start, w = v + 1;
        for (int k = 0; k < rounds; ++k) {
            v = v * 0.999f + 0.001f;
            w = w * 0.999f + 0.001f;
        }
        sum += v + w;
    }
    out[i] = sum;
"""
VARIABLES = """    float p = in[i], q = p + 1, r = p + 2, s = p + 3;
    for (int k = 0; k < rounds; ++k) {
        p = p * 0.999f + 0.001f;
        q = q * 0.999f + 0.001f;
        r = r * 0.999f + 0.001f;
        s = s * 0.999f + 0.001f;
    }
    out[i] = p + q + r + s;
"""
ONE_LOOP = """    for (int k = 0; k < rounds; ++k)
        v = v * factor + 0.001f;
"""
BY_FACTOR = """    float v = in[i], factor = i % 2 ? 0.999f : 1.001f;
    for (int k = 0; k < rounds; ++k)
        v = v * factor + 0.001f;
"""
BY_PARITY = """    float v = in[i];
    if (i % 2)
        for (int k = 0; k < rounds; ++k)
            v = v * 0.999f + 0.001f;
    else
        for (int k = 0; k < rounds; ++k)
            v = v * 1.001f + 0.001f;
"""
HALVES = """int half = blockDim.x / 2, t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + 2 * (t % half) + t / half;"""


# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    ("09.1", "no barrier in the loop", 1, lab_09.WAIT.race, (TREE, TREE.replace(WAITED, ""))),
    (
        "09.1",
        "two barriers a step",
        5,
        "17",
        "9",
        (TREE, TREE.replace("        if (t < half)", "        __syncthreads();\n        if (t < half)")),
    ),
    ("09.1", "no barrier before the loop", 1, lab_09.WAIT.race, (FIRST, "    for")),
    (
        "09.1",
        "barrier in the branch",
        1,
        hints.ARRIVE,
        (TREE, TREE.replace("t < half)", "t < half) {").replace("syncthreads();", "syncthreads(); }")),
    ),
    (
        "09.1",
        "none after the last step",
        3,
        "0",
        "`s`",
        (FIRST, "    for"),
        (TREE, TREE.replace(WAITED, "").replace("        if", WAITED + "        if")),
    ),
    ("09.1", "waits for its warp only", 1, "racecheck", ("__syncthreads", "__syncwarp")),
    ("09.1", "thread 0 adds alone", 4, "170", (TREE, SERIAL.format("0", "k"))),
    (
        "09.1",
        "each adds all from global memory",
        4,
        lab_09.TREE,
        (TREE, FROM_GLOBAL),
        ("s[0]", "sum"),
    ),
    (
        "09.1",
        "all add to one word",
        4,
        "271",
        "170",
        (TREE, "    if (t) atomicAdd(&s[0], mine);\n    __syncthreads();\n"),
    ),
    ("09.1", "reads past the end", 2, lab_09.PADDED, ("i < n ? in[i] : 0", "in[i]")),
    ("09.1", "divides by its own part", 1, lab_09.WAIT.usual, ("mine / s[0]", "mine / s[t]")),
    (
        "09.2",
        "no guard of the thread",
        2,
        lab_09.NEIGHBOURS.out_of_bounds,
        ("row >= rows || col >= cols", "false"),
    ),
    ("09.2", "a neighbour in the row above", 1, lab_09.NEIGHBOURS.usual, ("col > 0 ?", "i > 0 ?")),
    (
        "09.2",
        "a neighbour in the row below",
        1,
        lab_09.NEIGHBOURS.usual,
        ("col + 1 < cols", "i + 1 < rows * cols"),
    ),
    ("09.2", "one too far", 1, "`in`", ("row + 1 < rows ?", "row < rows ?")),
    (
        "09.2",
        "leaves the rim out",
        1,
        lab_09.NEIGHBOURS.usual,
        ("if (row >= rows", "if (row < 1 || row > rows - 2"),
    ),
    (
        "09.2",
        "mean of those inside",
        1,
        lab_09.NEIGHBOURS.usual,
        ("/ 4", "/ ((col > 0) + (row > 0) + (col + 1 < cols) + (row + 1 < rows))"),
    ),
    ("09.3", "stale results", 2, host.STALE, (FILL, "")),
    ("09.3", "cleared with zeros", 2, host.STALE, ("np.nan", "0")),
    ("09.3", "cleared with ones", 2, host.STALE, ("np.nan", "1")),
    ("09.3", "cleared with -999", 2, "-999", ("np.nan", "-999")),
    ("09.3", "other words", 1, ('"right"', '"Right"')),
    ("09.3", "cleared with -1", 2, "-1", ("np.nan", "-1")),
    (
        "09.3",
        "another array",
        1,
        host.WRITTEN,
        ("out.fill(np.nan)", "out = np.full_like(out, np.nan)"),
    ),
    ("09.3", "catches everything", 3, "LaunchError", (CATCH, "Exception")),
    ("09.3", "catches all of ours", 3, "LaunchError", (CATCH, "labkit.simt.SimtError")),
    ("09.3", "a refusal is wrong", 1, host.ASK, ('"refused"', '"wrong"')),
    ("09.3", "nothing is caught", 1, "LaunchError", "(1089,)", (CATCH, "ZeroDivisionError")),
    (
        "09.3",
        "takes silence for a refusal",
        2,
        host.NOT_REFUSED,
        (
            f'except {CATCH}:\n        return "refused"',
            f'except {CATCH}:\n        pass\n    if np.isnan(out).all(): return "refused"',
        ),
    ),
    ("09.3", "NaN alone", 2, host.ELEMENTS, ("(out == expected).all()", "not np.isnan(out).any()")),
    ("09.3", "one element", 2, host.ELEMENTS, ("(out == expected).all()", "out[0] == expected[0]")),
    ("09.3", "sums", 2, host.ELEMENTS, ("(out == expected).all()", "out.sum() == expected.sum()")),
    (
        "09.3",
        "the sorted values",
        2,
        host.ELEMENTS,
        ("out == expected", "np.sort(out) == np.sort(expected)"),
    ),
    (
        "09.3",
        "what is there",
        2,
        host.STALE,
        ("out == expected", "np.isnan(out) | (out == expected)"),
    ),
    ("09.3", "never right", 1, host.WRITTEN, ("out == expected", "out > expected")),
    ("09.4", "no right edge", 1, "initcheck", ("        s[t + 128 + R] =", "        float unused =")),
    (
        "09.4",
        "the first block's edge left open",
        1,
        lab_09.EDGES.usual,
        ("s[t] = i >= R ? in[i - R] : 0;", "if (i >= R) s[t] = in[i - R];"),
    ),
    ("09.4", "zeros between blocks", 1, lab_09.EDGES.usual, ("i >= R ? in[i - R] : 0", "0")),
    (
        "09.4",
        "reads behind the end",
        1,
        lab_09.EDGES.out_of_bounds,
        ("i + 128 < n ? in[i + 128] : 0", "in[i + 128]"),
    ),
    (
        "09.4",
        "a tile at one size alone",
        4,
        "n=640",
        "5",
        "128",
        (
            "    if (i < n)\n        out[i] = sum;",
            "    sum = n == 1024 ? sum : 0;\n    for (int d = -R; n != 1024 && d <= R; ++d)\n"
            "        sum += 0 <= i + d && i + d < n ? in[i + d] : 0;\n    if (i < n)\n        out[i] = sum;",
        ),
    ),
    ("09.4", "no barrier", 1, lab_09.EDGES.race, ("__syncthreads();", "")),
    (
        "09.4",
        "past the tile",
        4,
        "64",
        ("sum += s[t + d];", "sum += i + d - R >= 0 && i + d - R < n ? in[i + d - R] : 0;"),
    ),
    ("09.5", "writes before all have read", 1, "racecheck", (f"0;\n{WAITED}        s", "0;\n        s")),
    ("09.5", "reads before all have written", 3, "racecheck", (f"left;\n{WAITED}", "left;\n")),
    ("09.5", "no barrier before the steps", 3, "racecheck", (FIRST, "    for")),
    (
        "09.5",
        "early return",
        3,
        "synccheck",
        ("    s[t] = i < n ? in[i] : 0;", "    if (i >= n) return;\n    s[t] = in[i];"),
    ),
    ("09.5", "barriers in the branch", 1, lab_09.EVERYONE.sync, (SCAN, IN_BRANCH)),
    (
        "09.5",
        "each adds to all behind it",
        4,
        kernels.ATOMIC,
        (
            SCAN,
            "    float mine = s[t];\n    __syncthreads();\n"
            "    for (int k = t + 1; k < 256; ++k) atomicAdd(&s[k], mine);\n    __syncthreads();\n",
        ),
    ),
    ("09.5", "each adds its own", 4, "200", (SCAN, OWN)),
    ("09.5", "thread 0 does it", 4, lab_09.STEPS, (SCAN, SERIAL.format("k", "k - 1"))),
    ("09.5", "a step too few", 1, "out[128]", ("d < blockDim.x;", "d < blockDim.x / 2;")),
    ("09.6", "whole tiles alone", 6, host.EDGE, (LISTED, WHOLE_TILES)),
    ("09.6", "NaN slips through", 4, host.NAN, (WITHIN, f"~({OFF} > 2 * bound)")),
    (
        "09.6",
        "columns first",
        1,
        host.PLACE,
        ("(r // tile, c // tile)", "(c // tile, r // tile)"),
    ),
    ("09.6", "allclose", 1, host.BOUND, (WITHIN, "np.isclose(got, A.astype(float) @ B, rtol=1e-6)")),
    (
        "09.6",
        "a part of the largest result",
        2,
        host.BOUND,
        (WITHIN, f"{OFF} <= 1e-3 * abs(A.astype(float) @ B).max()"),
    ),
    ("09.6", "0.1 in proportion", 3, lab_09.LOST, (WITHIN, f"{OFF} <= 0.1 * {SIZES}")),
    ("09.6", "a fixed part", 3, host.BOUND, ("A.shape[1] * 2.0**-24", "6e-4")),
    ("09.6", "one bound for all", 3, host.BOUND, ("2 * bound", "2 * bound.max()")),
    ("09.6", "one bound per tile", 3, host.BOUND, (LISTED, PER_TILE)),
    ("09.6", "sums of tiles", 3, host.BOUND, (LISTED, BY_SUMS)),
    ("09.6", "a bound that does not grow with K", 1, "K=40000", ("A.shape[1] * 2.0**-24", "25 * 2.0**-24")),
    (
        "09.6",
        "roundings that cancel",
        1,
        host.BOUND,
        ("A.shape[1] * 2.0**-24", "A.shape[1] ** 0.5 * 2.0**-24"),
    ),
    ("09.6", "too small alone", 3, lab_09.LOST, (OFF, "(got - A.astype(float) @ B)")),
    ("09.6", "too large alone", 3, lab_09.LOST, (OFF, "(A.astype(float) @ B - got)")),
    ("09.6", "infinity slips through", 4, host.NAN, (WITHIN, f"({WITHIN}) | np.isinf(got)")),
    (
        "09.6",
        "each element",
        1,
        host.ONCE,
        (
            "sorted({",
            "sorted([",
        ),
        ("})", "])"),
    ),
    (
        "09.6",
        "by columns",
        1,
        host.ONCE,
        ("np.argwhere(~right).tolist()}", "np.argwhere(~right).tolist()}, key=lambda at: at[::-1]"),
    ),
    ("09.6", "elements", 1, host.PLACE, ("(r // tile, c // tile)", "(r, c)")),
    (
        "09.6",
        "counted from 1",
        1,
        host.PLACE,
        ("(r // tile, c // tile)", "(r // tile + 1, c // tile + 1)"),
    ),
    (
        "09.6",
        "all tiles of a wrong result",
        3,
        host.OWN,
        returned("[] if right.all() else list(np.ndindex(-(-len(got) // tile), -(-got.shape[1] // tile)))"),
    ),
    ("09.6", "a set", 1, host.FORM, ("sorted({", "({")),
    ("09.6", "a matrix of truths", 1, host.FORM, returned("right")),
    ("09.6", "ragged lists", 1, "1", "2", returned("[[1], [1, 2]]")),
    ("09.6", "halves", 1, "0.5", "1", returned("[(0.5, 1)]")),
    ("09.6", "never", 1, "6", "(0, 0)", returned("[]")),
    ("09.6", "a truth", 1, host.FORM, returned("True")),
    ("09.6", "an error of its own", 1, "IndexError", ("A.shape[1]", "A.shape[2]")),
    ("09.7", "does not wait", 1, host.UNFINISHED, (CLOCK, CLOCK[: CLOCK.rindex("    sync")])),
    (
        "09.7",
        "counts its own first launch",
        1,
        host.EARLIER,
        (CLOCK, CLOCK.replace("    synchronize()\n", "", 1)),
    ),
    (
        "09.7",
        "counts what was queued",
        2,
        "kernel_ms=4",
        "queued_ms=50",
        "54",
        "4",
        (CLOCK, CLOCK.replace("    launch()\n    synchronize()\n", "", 1)),
    ),
    (
        "09.7",
        "counts the first launch",
        3,
        host.FIRST,
        (CLOCK, CLOCK.replace("    launch()\n", "", 1)),
    ),
    ("09.7", "microseconds", 1, ("1e3 * ", "1e6 * ")),
    ("09.7", "seconds", 1, ("1e3 * ", "")),
    (
        "09.7",
        "another clock",
        1,
        host.UNFINISHED,
        (CLOCK, "    from time import perf_counter as clock\n" + CLOCK),
    ),
    ("09.7", "a number by heart", 1, "22", (CLOCK, CLOCK + "    return 4\n")),
    ("09.7", "two launches", 1, host.EARLIER, (CLOCK, CLOCK + "    launch()\n    synchronize()\n")),
    ("09.7", "returns nothing", 1, ("    return ", "    x = ")),
    (
        "09.8",
        "another cause",
        1,
        "'divergence'",
        ('"A": ("scattered loads"', '"A": ("divergence"'),
    ),
    (
        "09.8",
        "wavefronts, not conflicts",
        4,
        "32",
        ('conflicts", 31', 'conflicts", 32'),
    ),
    (
        "09.8",
        "a guess",
        3,
        ('"few warps", 2', '"few warps", 8'),
        ("}[letter]", "}[letter]"),
    ),
    ("09.8", "G moves too much", 7, ('gain", 12', 'gain", 8')),
    (
        "09.8",
        "PTX instructions",
        5,
        "12",
        ('"instructions", 19.6', '"instructions", 12'),
    ),
    ("09.8", "no pair", 1, ("}[letter]", "}[letter][0]")),
    ("09.8", "no cause of the list", 1, ('"scattered loads"', '"loads"')),
    ("09.8", "a cause alone", 2, ('("conversions", 2)', '("conversions",)')),
    ("09.8", "no number", 2, ('("conversions", 2)', '("conversions", "2")')),
    ("09.8", "a letter is missing", 7, "KeyError", ('"G": ', '"H": ')),
    (
        "09.9",
        "a tile without padding",
        4,
        lab_09.IN_A_ROW,
        ("[33]", "[32]"),
    ),
    (
        "09.9",
        "no barrier",
        1,
        "racecheck",
        ("        __syncthreads();\n        for (int c", "        for (int c"),
    ),
    (
        "09.9",
        "no 0 outside",
        1,
        "`in`",
        ("inside ? in[(first + r) * cols + start + lane] : 0", "in[(first + r) * cols + start + lane]"),
    ),
    ("09.9", "a column too few", 1, "out[0]", ("c < 32", "c < 31")),
    (
        "09.9",
        "works for the check's sizes alone",
        4,
        ("    float sum = 0;", "    if (rows > 100000) return;\n    float sum = 0;"),
    ),
    ("09.10", "one double left", 3, lab_09.FLOATS, ("0.001f", "0.001")),
    ("09.10", "another factor", 1, lab_09.SAME, ("0.999f", "0.99f")),
    ("09.10", "a round too few", 1, lab_09.SAME, ("k < rounds", "k + 1 < rounds")),
    ("09.11", "two chains", 3, "17.7", (FOUR, TWO)),
    ("09.11", "a start is left out", 1, lab_09.SAME, ("+ v[3]", "")),
    ("09.11", "a round too few", 1, lab_09.SAME, ("k < rounds", "k + 1 < rounds")),
    ("09.12", "half a sum", 1, lab_09.SAME, ("step = 16", "step = 8")),
    ("09.12", "two words of padding", 3, lab_09.PAD, ("[33]", "[34]")),
    (
        "09.12",
        "no barrier",
        1,
        "racecheck",
        ("    __syncthreads();\n    for (int col", "    for (int col"),
    ),
    (
        "09.13",
        "an unsigned remainder",
        3,
        lab_09.WRAP,
        ("ring[at]", "ring[(unsigned)(i + k) % length]"),
    ),
    (
        "09.13",
        "no wrap",
        1,
        lab_09.SAME,
        ("        if (++at == length)\n            at = 0;", "        ++at;"),
    ),
    ("09.13", "wraps late", 1, lab_09.SAME, ("++at == length", "++at > length")),
    (
        "09.14",
        "still two paths",
        3,
        lab_09.SELECT,
        (
            ONE_LOOP,
            ONE_LOOP.replace("for", "if (i % 2)\n        for") + ONE_LOOP.replace("for", "else\n        for"),
        ),
    ),
    ("09.14", "one element of four", 1, lab_09.SAME, ("i % 2 ?", "i % 4 == 1 ?")),
    ("09.14", "the factors exchanged", 1, lab_09.SAME, ("0.999f : 1.001f", "1.001f : 0.999f")),
]

test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)

# exercise, how it differs, then what to replace in the solution
OTHERS = [
    (
        "09.1",
        "neighbours first",
        ("half = blockDim.x / 2; half > 0; half /= 2", "half = 1; half < 256; half *= 2"),
        ("t < half)", "t % (2 * half) == 0)"),
    ),
    (
        "09.1",
        "a barrier at the start of each step, and one behind",
        (
            TREE,
            TREE.replace("        __syncthreads();\n", "").replace(
                "        if (t < half)", "        __syncthreads();\n        if (t < half)"
            )
            + "    __syncthreads();\n",
        ),
        ("    __syncthreads();\n    for", "    for"),
    ),
    ("09.1", "warps first, by shuffles", (TREE, SHUFFLED), ("mine / s[0]", "s[t] / sum")),
    (
        "09.2",
        "added up one by one",
        (HEAT, ONE_BY_ONE),
        ("(left + right + above + below) / 4", "0.25f * sum"),
    ),
    ("09.3", "another sentinel", ("np.nan", "-1e30")),
    ("09.3", "off everywhere", ("out.fill(np.nan)", "out[:] = expected + 1")),
    (
        "09.3",
        "by assignment, and array_equal",
        ("out.fill(np.nan)", "out[...] = np.inf"),
        ("(out == expected).all()", "np.array_equal(out, expected)"),
    ),
    ("09.4", "in a loop", (HALO, HALO_LOOP)),
    (
        "09.4",
        "zeros first, with a barrier",
        (
            HALO,
            ZEROS
            + "    __syncthreads();\n"
            + HALO.replace("s[t] = i >= R ? in[i - R] : 0;", "if (i >= R) s[t] = in[i - R];"),
        ),
    ),
    (
        "09.5",
        "two arrays in turn",
        (
            "__shared__ float s[256];",
            "__shared__ float two[2][256];\n    float* s = two[0];\n    float* next = two[1];",
        ),
        (SCAN, TWO_ARRAYS),
    ),
    ("09.6", "tile by tile, as lists", (LISTED, TILE_BY_TILE)),
    ("09.6", "with NumPy's eps", ("A.shape[1] * 2.0**-24", "(A.shape[1] + 2) * np.finfo(got.dtype).eps")),
    ("09.6", "in float32", ("A.astype(float) @ B", "A @ B")),
    ("09.6", "an array of numbers", returned("np.unique(np.argwhere(~right) // tile, axis=0)")),
    (
        "09.6",
        "without negative numbers",
        (WITHIN, "(A.astype(float) @ B - got <= 2 * bound) & (got - A.astype(float) @ B <= 2 * bound)"),
    ),
    (
        "09.7",
        "the mean of ten",
        ("start = clock()\n    launch()", "start = clock()\n    for _ in range(10): launch()"),
        ("1e3 *", "1e2 *"),
    ),
    ("09.7", "the median of five", (CLOCK, MEDIAN)),
    ("09.8", "lists", ('("conversions", 2)', '["conversions", 2.0]'), ("16.2", "16.4")),
    ("09.8", "blocks over SMs, on average", ('("few warps", 2)', '("few warps", 128 * 8 / 132 / 4)')),
    ("09.9", "a warp per row, by shuffles", (TILED, BY_WARPS)),
    ("09.10", "a cast", ("0.999f + 0.001f", "(float)0.999 + (float)0.001")),
    ("09.11", "four variables", (FOUR, VARIABLES)),
    (
        "09.12",
        "swizzled",
        ("[33]", "[32]"),
        ("tile[row][lane]", "tile[row][lane ^ row]"),
        ("tile[lane][col]", "tile[lane][col ^ lane]"),
    ),
    (
        "09.13",
        "subtracts",
        (
            "        if (++at == length)\n            at = 0;",
            "        at = at + 1 < length ? at + 1 : at + 1 - length;",
        ),
    ),
    (
        "09.14",
        "even elements to some warps",
        ("int i = blockIdx.x * blockDim.x + threadIdx.x;", HALVES),
        (BY_FACTOR, BY_PARITY),
    ),
]

test_another_right_answer_passes = checks_of_other_answers(OTHERS)


def test_what_is_drawn_for_09_6_is_the_same_in_each_process():
    result = host.wrong(host.lost_term, "one element lacks one term", host.Factors())[0]
    assert repr(result) == "12 x 18, K=400, elements up to 1, tile=5, one element lacks one term, any, False"


COPY = """extern "C" __global__ void copy(const float* in, float* out, int n)
{
    __shared__ float s[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    s[threadIdx.x] = i < n ? in[i] : 0;
    if (i < n) out[i] = s[threadIdx.x];
}"""


class TestLaunches:
    x = np.arange(100, dtype=np.float32)
    given = of_vector(lambda _, x=x: (x, x), threads=64, n=100)

    def launches(self, kernel):
        return [self.given]

    def kernel(self, *replacements):
        source = COPY
        for old, new in replacements:
            assert old in source
            source = source.replace(old, new)
        return simt.RawModule(code=source).get_function("copy")

    def test_a_right_kernel_meets_them(self):
        for criterion in (right_in("", self.launches), clean_in(self.launches)):
            criterion.test(self.kernel())

    def test_inputs_are_not_changed(self):
        changes = ("const float* in", "float* in"), ("if (i < n) out", "if (i < n) in[i] = 5; if (i < n) out")
        right_in("", self.launches).test(self.kernel(*changes))
        assert self.x[7] == 7

    def test_loads_are_counted_by_memory(self):
        """Four warps have elements: a request each."""
        loads_in(4, "", lambda _: self.given, (100,), spaces=("global",), hint="").test(self.kernel())
        loads_in(0, "", lambda _: self.given, (100,), spaces=("local",), hint="").test(self.kernel())
        with pytest.raises(Unmet, match=r"4 requests to load; the goal is at most 3\n(.*\n)+Look there\."):
            loads_in(3, "", lambda _: self.given, (100,), hint="Look there.").test(self.kernel())

    def test_a_wrong_result_is_told_with_its_launch(self):
        told = r"n=100, grid 2, block 64\nout\[1\] is 2; it should be 1\. 99 of 100"
        with pytest.raises(Unmet, match=told):
            right_in("", self.launches).test(self.kernel(("= s[threadIdx.x]", "= 2 * s[threadIdx.x]")))

    def test_an_output_that_is_read_was_never_written(self):
        with pytest.raises(Unmet, match="initcheck finds: line 6: reads `out\\[0\\]`"):
            clean_in(self.launches).test(self.kernel(("out[i] = ", "out[i] = 0 * out[i] + ")))


class TestModelGpu:
    def test_a_launch_returns_before_the_kernel_is_done(self):
        gpu = ModelGpu(kernel_ms=20, launch_ms=0.5)
        gpu.launch()
        assert gpu.clock() == pytest.approx(0.0005)
        gpu.synchronize()
        assert gpu.clock() == pytest.approx(0.0205)

    def test_kernels_run_one_after_the_other_while_the_host_goes_on(self):
        gpu = ModelGpu(kernel_ms=20, launch_ms=0.5)
        for _ in range(3):
            gpu.launch()
        gpu.synchronize()
        assert gpu.clock() == pytest.approx(0.0605)  # the second and third launch cost nothing extra

    def test_earlier_work_and_the_first_launch(self):
        gpu = ModelGpu(kernel_ms=20, launch_ms=0.5, first_ms=100, queued_ms=10)
        for expected in (0.1205, 0.1410):
            gpu.launch()
            gpu.synchronize()
            assert gpu.clock() == pytest.approx(expected)

    def test_waiting_for_nothing_takes_no_time(self):
        gpu = ModelGpu(kernel_ms=20)
        gpu.synchronize()
        assert gpu.clock() == 0


def test_who_finds_what():
    found = [Finding("memcheck", "", 1, (0, 0, 0), (0, 0, 0), "")] * 2
    table = who_finds(("a", "oob_before_start", found), ("b", "race_reduce_tree", []))
    assert table.loc["a"].tolist() == ["nothing", "memcheck"]
    assert table.loc["b"].tolist() == ["racecheck", "nothing"]
    with pytest.raises(ValueError, match="no record of 'elsewhere'; there are: assert_fails, clean, "):
        who_finds(("c", "elsewhere", found))


def test_the_sanitizers_record_says_where_it_is_from():
    said = records.sanitizer()
    assert set(said.source) == {"recorded: NVIDIA H200, compute-sanitizer 2025.3.1.0, 2026-11-23"}
    row = said[(said.kernel == "race_reverse") & (said.tool == "racecheck")].iloc[0]
    assert (row.kind, row.lines) == ("Error: Race reported", "8 9")
