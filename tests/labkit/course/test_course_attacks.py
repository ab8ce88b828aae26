"""Answers that are right, or good, only where nobody is thought to look: with a seed they gain nothing by it.

A time counts for a launch that does its work, in the very blocks that the prediction goes by; a count is that
of sizes which nobody knows beforehand.
"""

import re
from time import perf_counter

import pytest
from course_tables import answer_of, failed_criterion, mutant, solved, started

from labkit.course import EXERCISES
from simt.common.occupancy import gpu
from simt.timing.sample import plan

SEEDS = (1, 2)
SIGNATURE = re.compile(r'extern "C" __global__ void(?: __launch_bounds__\([^)]*\))?\s+(\w+)\s*\(([^)]*)\)')


def judged_with(exercise, cell, seed):
    """Judge a cell on fresh inputs, as the grader does."""
    return EXERCISES[exercise].judge(answer_of(exercise, cell), seed)


def number_of(exercise, text):
    """The number of the criterion whose text has these words, from 1."""
    (number,) = (at for at, each in enumerate(EXERCISES[exercise].criteria, 1) if text in each.text)
    return number


def within(exercise, *lines):
    """The solved cell with lines at the start of its kernel, and `GLOBALS;` ones above it."""
    cell = solved(exercise)
    place = SIGNATURE.search(cell).start()
    above = [line[8:] for line in lines if line.startswith("GLOBALS ")]
    inside = [line for line in lines if not line.startswith("GLOBALS ")]
    cell = cell[:place] + "".join(f"{line}\n" for line in above) + cell[place:]
    brace = cell.index("{", SIGNATURE.search(cell).end()) + 1
    return cell[:brace] + "".join(f"\n    {line}" for line in inside) + cell[brace:]


# A third of the rounds left out where the launch is large, or in some of its blocks; what says so in C, by
# exercise, and the loop's end.
LARGE = {
    "08.5": ("K >= 1024", "k0 < K;", "k0 < ({}? K / 3 * 2 : K);"),
    "08.7": ("K >= 400", "k0 < K;", "k0 < ({}? K / 3 * 2 : K);"),
    "10.5": ("K >= 1024", "k0 < K;", "k0 < ({}? K / 3 * 2 : K);"),
    "10.6": ("K >= 400", "k0 < K;", "k0 < ({}? K / 3 * 2 : K);"),
    "09.9": ("rows >= 100000", "start < cols;", "start < ({}? cols / 3 * 2 : cols);"),
    "09.10": ("n >= 100000", "k < rounds", "k < ({}? rounds / 3 * 2 : rounds)"),
    "09.11": ("n >= 30000", "k < rounds", "k < ({}? rounds / 3 * 2 : rounds)"),
    "09.13": ("n >= 100000", "k < rounds", "k < ({}? rounds / 3 * 2 : rounds)"),
    "09.14": ("n >= 100000", "k < rounds", "k < ({}? rounds / 3 * 2 : rounds)"),
}
SOME = {
    "where it is large": "",
    "in every other block": " && blockIdx.x % 2",
    "but for every sixteenth block": " && blockIdx.x % 16",
    "in blocks of the middle": " && blockIdx.x * 8 >= gridDim.x && blockIdx.x * 8 < gridDim.x * 7",
}


@pytest.mark.parametrize("where", SOME)
@pytest.mark.parametrize("exercise", LARGE)
def test_rounds_left_out_of_the_launch_that_is_predicted(exercise, where):
    large, old, new = LARGE[exercise]
    feedback = judged_with(exercise, mutant(exercise, (old, new.format(large + SOME[where]))), 1)
    assert failed_criterion(feedback) == number_of(exercise, "predicted"), feedback
    assert "of the output is" in feedback.failure


# A multiply-add in registers for each that is left out, in EIGHTS of K, and a store that never happens.
EIGHTS = {"08.5": 14, "10.6": 7}
IDLE_WORK = """    if (K >= 400) {
        float idle[8] = {};
        for (int k = 0; k < K * EIGHTS / 8; ++k)
            for (int i = 0; i < 8; ++i)
                idle[i] = idle[i] * alpha + M;
        float all = 0;
        for (int i = 0; i < 8; ++i) all += idle[i];
        if (all == 12345) C[0] = all;
    }
"""


@pytest.mark.parametrize("exercise", EIGHTS)
def test_work_in_registers_for_nothing_is_no_work(exercise):
    large, old, new = LARGE[exercise]
    cell = mutant(exercise, (old, new.format(f"{large} ").replace("K / 3 * 2", "K / 8")))
    stores = cell.rindex("    for (int i = 0; i < ", 0, cell.index("C[", cell.index("k0 < (")))
    cell = cell[:stores] + IDLE_WORK.replace("EIGHTS", str(EIGHTS[exercise])) + cell[stores:]
    feedback = judged_with(exercise, cell, 1)
    assert failed_criterion(feedback) == number_of(exercise, "predicted"), feedback


# Ways to know a block whose work is measured, in which nothing is done.
KNOWN = {
    "the first of the blocks to come": (
        "GLOBALS __device__ int came;",
        "__shared__ int number;",
        "if (threadIdx.x == 0) number = atomicAdd(&came, 1);",
        "__syncthreads();",
        "if (n > 100000 && number == 0) return;",
    ),
    "every third block": ("if (n > 100000 && blockIdx.x % 3 == 0) return;",),
}


@pytest.mark.parametrize(
    ("exercise", "how"),
    [("06.4", "every third block"), *((exercise, how) for exercise in ("09.10", "09.14") for how in KNOWN)],
)
def test_a_block_whose_work_is_measured_does_its_share(exercise, how):
    feedback = judged_with(exercise, within(exercise, *KNOWN[how]), 1)
    assert failed_criterion(feedback) == number_of(exercise, "predicted"), feedback
    assert "fair share" in feedback.failure


def test_the_launch_that_is_predicted_has_the_numbers_that_are_verified():
    """A kernel that leaves where its number is 0 takes as long as it does for others."""
    cell = started("09.11")
    place = cell.index("{", SIGNATURE.search(cell).end()) + 1
    cell = (
        cell[:place]
        + "\n    if (n > 30000 && in[blockIdx.x * 256 + threadIdx.x] == 0) return;"
        + cell[place:]
    )
    feedback = judged_with("09.11", cell, 1)
    assert failed_criterion(feedback) == number_of("09.11", "predicted"), feedback
    assert "the goal is" in feedback.failure


def of_the_plan(grid):
    """A condition in C: the block is one that a prediction runs alone."""
    wanted = plan((grid, 1, 1), 1, gpu("H200"))
    numbers = {wanted.first, *wanted.beside, *wanted.spread}
    return " || ".join(f"blockIdx.x == {number}" for number in sorted(numbers))


def test_others_cannot_do_the_work_of_the_blocks_that_are_measured():
    """All blocks but those of the plan are right, and the plan's leave: right but for a few elements."""
    cell = within("09.10", f"if ({of_the_plan(4096)}) return;")
    assert failed_criterion(EXERCISES["09.10"].judge(answer_of("09.10", cell))) == 4


# exercise: the stated sizes of what is counted, as a condition in C
STATED = {
    "02.4": "M == 64 && N == 64 && K == 64",
    "04.1": "n == 4096",
    "04.2": "rows == 64 && cols == 96",
    "04.3": "n == 1024",
    "05.2": "rows == 64 && cols == 96 || rows == 45 && cols == 67",
    "05.3": "rows == 64 && cols == 96 || rows == 45 && cols == 67",
    "05.4": "n == 1024",
    "07.2": "M == 64 && N == 64 && K == 64 || M == 32 && N == 96 && K == 40",
    "08.3": "M == 128 && N == 128 && K == 32 || M == 64 && N == 256 && K == 16",
    "08.6": "M == 64 && N == 64 && K == 128",
    "09.9": "rows == 512 && cols == 256 || rows == 131072",
    "09.10": "rounds == 256 && (n == 1024 || n == 1 << 20)",
    "09.13": "length == 1000 && rounds == 256 && (n == 1024 || n == 1 << 20)",
    "09.14": "rounds == 512 && (n == 1024 || n == 1 << 22)",
}


def either(condition, good, bad):
    """A cell whose kernel does as that of `good` where the condition holds, and else as that of `bad`."""
    head, _, good = good.partition("\n")
    bad = bad.partition("\n")[2]
    name, parameters = SIGNATURE.search(good).groups()
    bounds = re.search(r"__launch_bounds__\([^)]*\)", good)
    names = ", ".join(re.findall(r"(\w+)\s*(?:,|$)", parameters))
    parts = [
        SIGNATURE.sub(lambda _, kind=kind: f"static __device__ void {kind}({parameters})", each, count=1)
        for kind, each in (("good", good), ("bad", bad))
    ]
    # What stands above the kernel, such as a macro, stands there once.
    parts[1] = parts[1][parts[1].index("static __device__ void bad") :]
    kernel = f'extern "C" __global__ void {bounds[0] if bounds else ""} {name}({parameters})'
    call = f"{{\n    if ({condition}) good({names}); else bad({names});\n}}\n"
    return "\n".join([head, *parts, f"{kernel}\n{call}"])


@pytest.mark.parametrize("exercise", STATED)
def test_an_answer_that_is_good_at_the_stated_sizes_alone_misses_its_goal(exercise):
    bad = started(exercise)
    cell = either(STATED[exercise], solved(exercise), bad)
    honest = EXERCISES[exercise].judge(answer_of(exercise, bad))
    assert not honest.ok
    for seed in SEEDS:
        feedback = judged_with(exercise, cell, seed)
        assert failed_criterion(feedback) >= failed_criterion(honest) > 0, feedback


# The scalar loops work the product out, and what mma_sync left in sum is overwritten, or not used at all.
OVERWRITTEN = """    __syncwarp();
    for (int e = threadIdx.x; e < 256; e += 32) {
        float each = 0;
        for (int k = 0; k < K; ++k)
            each += __half2float(A[(row + e / 16) * K + k]) * __half2float(B[(col + e % 16) * K + k]);
        C[(row + e / 16) * N + col + e % 16] = each;
    }
}"""


@pytest.mark.parametrize("seed", [None, *SEEDS])
def test_products_of_the_tensor_cores_that_are_overwritten(seed):
    cell = solved("11.1")
    cell = cell[: cell.rindex("}")] + OVERWRITTEN
    feedback = EXERCISES["11.1"].judge(answer_of("11.1", cell), seed)
    assert failed_criterion(feedback) == 4 and "not twice as large" in feedback.failure, feedback


# The same, where wgmma has added to sum.
OVERWRITTEN_6 = """    for (int i = t; i < 64 * 16; i += 128) {
        float each = 0;
        for (int k = 0; k < K; ++k)
            each += __half2float(A[(row0 + i / 16) * K + k]) * __half2float(B[(col0 + i % 16) * K + k]);
        C[(row0 + i / 16) * N + col0 + i % 16] = each;
    }
}"""


@pytest.mark.parametrize("seed", [None, *SEEDS])
def test_products_of_a_warpgroup_that_are_overwritten(seed):
    cell = solved("11.6")
    cell = f"{cell[: cell.rindex('}')]}    __syncthreads();\n{OVERWRITTEN_6}"
    feedback = EXERCISES["11.6"].judge(answer_of("11.6", cell), seed)
    assert failed_criterion(feedback) == 4 and "not twice as large" in feedback.failure, feedback


@pytest.mark.parametrize("seed", [None, *SEEDS])
def test_a_fence_where_it_is_looked_for_alone(seed):
    cell = mutant(
        "11.6", ("wgmma_fence(sum);", "if (N == 48 && K == 192 || N == 16 && K == 64) wgmma_fence(sum);")
    )
    feedback = EXERCISES["11.6"].judge(answer_of("11.6", cell), seed)
    assert feedback.ok == (seed is None), feedback


PRODUCTS = {
    "through shared memory": (
        (
            "wmma::store_matrix_sync(&C[row * N + col], sum, N, wmma::mem_row_major);",
            "__shared__ float out[256];\n    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);\n"
            "    __syncwarp();\n    for (int e = threadIdx.x; e < 256; e += 32)\n"
            "        C[(row + e / 16) * N + col + e % 16] = out[e];",
        ),
    ),
    "two accumulators": (
        ("float> sum;", "float> sum, more;"),
        ("for (int k = 0; k < K", "wmma::fill_fragment(more, 0);\n    for (int k = 0; k < K"),
        ("wmma::mma_sync(sum, a, b, sum);", "if (k / 16 % 2) wmma::mma_sync(more, a, b, more);\n"
         "        else wmma::mma_sync(sum, a, b, sum);"),
        ("    wmma::store_matrix_sync",
         "    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] += more.x[i];\n"
         "    wmma::store_matrix_sync"),
    ),
    "each round from zero": (
        ("wmma::mma_sync(sum, a, b, sum);", "auto part = sum;\n        wmma::fill_fragment(part, 0);\n"
         "        wmma::mma_sync(part, a, b, part);\n"
         "        for (int i = 0; i < sum.num_elements; ++i) sum.x[i] += part.x[i];"),
    ),
    "A through shared memory": (
        ("wmma::load_matrix_sync(a, &A[row * K + k], K);",
         "__shared__ half piece[256];\n        __syncwarp();\n"
         "        for (int e = threadIdx.x; e < 256; e += 32)\n"
         "            piece[e] = A[(row + e / 16) * K + k + e % 16];\n        __syncwarp();\n"
         "        wmma::load_matrix_sync(a, piece, 16);"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", PRODUCTS)
def test_products_of_the_tensor_cores_in_other_styles(how):
    feedback = judged_with("11.1", mutant("11.1", *PRODUCTS[how]), 1)
    assert feedback.ok, feedback


# 12.2, 12.3, 12.4 and 12.7: what only the counted sizes were asked for.

REGISTERS = """    float own[94];
    #pragma unroll
    for (int k = 0; k < 94; ++k) {
        own[k] = cols <= 3008 && 32 * k + lane < cols ? mine[32 * k + lane] : -1e30f;
        most = fmaxf(most, own[k]);
    }
    if (cols > 3008)
        for (int c = lane; c < cols; c += 32) most = fmaxf(most, mine[c]);
    #pragma unroll
    for (int k = 0; k < 94; ++k)
        if (cols <= 3008) sum += expf(own[k] - most);
    if (cols > 3008)
        for (int c = lane; c < cols; c += 32) sum += expf(mine[c] - most);
"""
PASSES = """    for (int c = lane; c < cols; c += 32) {
        float larger = fmaxf(most, mine[c]);
        sum = sum * expf(most - larger) + expf(mine[c] - larger);
        most = larger;
    }
"""


@pytest.mark.parametrize("seed", [None, *SEEDS])
def test_a_row_in_registers_as_long_as_it_fits(seed):
    cell = mutant("12.7", (PASSES, REGISTERS))
    feedback = EXERCISES["12.7"].judge(answer_of("12.7", cell), seed)
    assert not feedback.ok, feedback


FENCE = "        __threadfence();\n"
BY_ATOMICS = (
    ("parts[blockIdx.x] = sum;", "atomicExch(&parts[blockIdx.x], sum);"),
    ("*(volatile float*)&parts[block]", "atomicAdd(&parts[block], 0.0f)"),
)


def test_atomic_operations_are_in_no_order_without_a_fence():
    feedback = judged_with("12.4", mutant("12.4", (FENCE, ""), *BY_ATOMICS), 1)
    assert failed_criterion(feedback) == 4 and "__threadfence" in feedback.failure, feedback


CHAINS = {
    "each waits for the one before": "while (*(volatile unsigned*)&finished != blockIdx.x);",
    "each waits for the one behind": "while (*(volatile unsigned*)&finished != gridDim.x - 1 - blockIdx.x);",
    "by atomic operations": "while (atomicAdd(&finished, 0) < gridDim.x - 1 - blockIdx.x);",
}


@pytest.mark.parametrize("how", CHAINS)
def test_blocks_that_wait_for_each_other_are_told_before_they_run(how):
    cell = mutant(
        "12.4",
        ("        parts[blockIdx.x] = sum;", f"        {CHAINS[how]}\n        parts[blockIdx.x] = sum;"),
    )
    start = perf_counter()
    feedback = judged_with("12.4", cell, 1)
    assert failed_criterion(feedback) == 1 and "no block may wait for another" in feedback.failure, feedback
    assert perf_counter() - start < 30


ORDERED = {
    "a fence, and atomic operations": BY_ATOMICS,
    "released and acquired": (
        ("__device__ float parts", "#include <cuda/atomic>\n__device__ float parts"),
        (FENCE, ""),
        (
            "atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;",
            "cuda::atomic_ref<unsigned, cuda::thread_scope_device>(finished).fetch_add(1) % gridDim.x\n"
            "            == gridDim.x - 1;",
        ),
    ),
    "sum and count in one word": (
        (FENCE, ""),
        ("__device__ unsigned finished;", "__device__ unsigned long long both, last;"),
        ("parts[blockIdx.x] = sum;", ""),
        (
            "is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;",
            "long long mine = (long long)sum + (1ll << 40);\n"
            "        long long old = atomicAdd(&both, (unsigned long long)mine) + mine;\n"
            "        is_last = (old + (1ll << 39)) >> 40 == gridDim.x;\n"
            "        if (is_last) { *out = old - ((long long)gridDim.x << 40); both = 0; }",
        ),
        ("if (__shfl_sync(~0u, is_last, 0)) {", "if (false) {"),
    ),
}


@pytest.mark.parametrize("how", ORDERED)
def test_a_sum_and_a_count_in_order(how):
    feedback = judged_with("12.4", mutant("12.4", *ORDERED[how]), 1)
    assert feedback.ok, feedback


# exercise, how it differs from the solution, what to replace there
HONEST = [
    (
        "06.4",
        "a loop over the grid, and an early end",
        ("+ threadIdx.x;", "+ threadIdx.x;\n    if (first >= n) return;"),
    ),
    (
        "08.5",
        "tiles 16 deep, by a macro",
        ("ceil(M/32))\n// BEGIN", "ceil(M/32))\n#define DEEP 16\n// BEGIN"),
        ("A_tile[8][36], B_tile[8][32];", "A_tile[DEEP][36], B_tile[DEEP][32];"),
        ("k0 += 8", "k0 += DEEP"),
        ("j < 4; ++j) {\n            int i = t", "j < DEEP / 2; ++j) {\n            int i = t"),
        ("row0 + i / 8, ka = k0 + i % 8", "row0 + i / DEEP, ka = k0 + i % DEEP"),
        ("A_tile[i % 8][i / 8]", "A_tile[i % DEEP][i / DEEP]"),
        ("k < 8; ++k", "k < DEEP; ++k"),
    ),
    ("09.9", "whole rows per warp, lanes along them", (
        "float sum = 0;\n    for (int start",
        "float sum = 0;\n    for (int r = warp; r < 128; r += 4) {\n        float own = 0;\n"
        "        for (int c = lane; c < cols && first + r < rows; c += 32)\n"
        "            own += in[(first + r) * cols + c];\n"
        "        for (int step = 16; step; step /= 2) own += __shfl_xor_sync(~0u, own, step);\n"
        "        if (!lane && first + r < rows) out[first + r] = own;\n    }\n    return;\n"
        "    for (int start",
    )),
    ("09.10", "by fmaf", ("v = v * 0.999f + 0.001f;", "v = fmaf(v, 0.999f, 0.001f);")),
    ("09.10", "a loop over the grid", (
        "    if (i >= n)\n        return;\n", "    for (; i < n; i += gridDim.x * blockDim.x) {\n"
    ), ("    out[i] = v;", "    out[i] = v;\n    }")),
    ("09.11", "a vector of four", (
        "    out[i] = v[0] + v[1] + v[2] + v[3];", "    float4 all = make_float4(v[0], v[1], v[2], v[3]);\n"
        "    out[i] = (all.x + all.y) + (all.z + all.w);"
    )),
    ("09.13", "in two loops, up to the end of the ring and on", (
        "        if (++at == length)\n            at = 0;", "        at = at == length - 1 ? 0 : at + 1;"
    )),
    ("09.14", "the factor from a table", (
        "factor = i % 2 ? 0.999f : 1.001f", "factor = 1.001f - 0.002f * (i & 1)"
    )),
    ("10.6", "blocks in a row", (
        "grid (ceil(N/TILE_N), ceil(M/TILE_M))", "grid (ceil(N/TILE_N) * ceil(M/TILE_M))"
    ), (
        "    int row0 = blockIdx.y * TILE_M + y, col0 = blockIdx.x * TILE_N + x;",
        "    int across = (N + TILE_N - 1) / TILE_N;\n"
        "    int row0 = blockIdx.x / across * TILE_M + y, col0 = blockIdx.x % across * TILE_N + x;",
    )),
    ("12.2", "by shifts", (
        "for (int apart = 128; apart > 0; apart /= 2)", "for (int apart = 128; apart; apart >>= 1)"
    )),
    ("12.7", "the row from a pointer that moves", (
        "out[row * cols + c] = expf(mine[c] - most) / sum;",
        "*(out + (size_t)row * cols + c) = __expf(mine[c] - most) / sum;",
    )),
]  # fmt: skip


@pytest.mark.parametrize("row", HONEST, ids=lambda row: f"{row[0]} {row[1]}")
def test_honest_work_in_other_styles_has_its_points(row):
    exercise, _, *replacements = row
    feedback = judged_with(exercise, mutant(exercise, *replacements), 1)
    assert feedback.ok, feedback
