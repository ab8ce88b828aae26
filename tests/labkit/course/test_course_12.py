"""Checks of notebook 12: broken trees, shuffles, histograms and merges fail for that; right ones pass."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

from labkit.course.exercises import lab_12

STARTERS = {
    "12.1": (1, "256", "16", "0.5", "1", lab_12.WARPS_HINT),
    "12.2": (1, lab_12.TREE.sync),
    "12.3": (3, "1024", "128"),
    "12.4": (1, lab_12.FINISH.owner),
    "12.5": (3, "20000", "300"),
    "12.6": (1, "(32,)", "1", "32", lab_12.TURNS_HINT),
    "12.7": (4, "1024"),
}

test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)

TREE = """    for (int apart = 128; apart > 0; apart /= 2) {
        if (t < apart) {
            float value = values[t + apart];
            int index = indices[t + apart];
            if (value > values[t] || value == values[t] && index < indices[t]) {
                values[t] = value;
                indices[t] = index;
            }
        }
        __syncthreads();
    }
"""
LARGER = "value > values[t] || value == values[t] && index < indices[t]"
SPREAD = TREE.replace("apart = 128; apart > 0; apart /= 2", "apart = 1; apart < 256; apart *= 2").replace(
    "t < apart", "t % (2 * apart) == 0"
)
SPREAD_IN_REGISTERS = """    float own = values[t];
    int at = i;
    for (int apart = 1; apart < 256; apart *= 2) {
        if (t % (2 * apart) == 0) {
            float value = values[t + apart];
            int index = indices[t + apart];
            if (value > own)
                values[t] = own = value, indices[t] = at = index;
        }
        __syncthreads();
    }
"""
PACKED = """    for (int apart = 1; apart < 256; apart *= 2) {
        int own = 2 * apart * t;
        if (t < 128 / apart && values[own + apart] > values[own]) {
            values[own] = values[own + apart];
            indices[own] = indices[own + apart];
        }
        __syncthreads();
    }
"""
ALONE = """    if (t == 0)
        for (int k = 1; k < 256; ++k)
            if (values[k] > values[0]) {
                values[0] = values[k];
                indices[0] = indices[k];
            }
"""
IN_ONE_WORD = """    __shared__ unsigned long long keys[256];
    unsigned bits = __float_as_uint(i < n ? x[i] : -1e30f);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    keys[t] = (unsigned long long)bits << 32 | ~(unsigned)i;
    __syncthreads();
    for (int apart = 128; apart > 0; apart /= 2) {
        if (t < apart)
            keys[t] = max(keys[t], keys[t + apart]);
        __syncthreads();
    }
    int index = ~(unsigned)keys[0];
"""
ATOMIC = IN_ONE_WORD.replace(
    IN_ONE_WORD[IN_ONE_WORD.index("    for") : IN_ONE_WORD.index("    int index")],
    "    if (t > 0)\n        atomicMax(&keys[0], keys[t]);\n    __syncthreads();\n",
)
IN_A_STRUCT = (
    (
        "    __shared__ float values[256];\n    __shared__ int indices[256];\n",
        "    struct Pair { float value; int index; };\n    __shared__ Pair pairs[256];\n",
    ),
    *(
        (f"{many}[{at}]", f"pairs[{at}].{one}")
        for many, one in (("values", "value"), ("indices", "index"))
        for at in ("t", "t + apart", "0")
        if (many, at) != ("values", "0")
    ),
)
ARRAYS = "    __shared__ float values[256];\n    __shared__ int indices[256];\n"
BY_SHUFFLES = """    float own = i < n ? x[i] : -1e30f;
    int at = i;
    auto warp = [&] {
        for (int apart = 16; apart > 0; apart /= 2) {
            float value = __shfl_down_sync(~0u, own, apart);
            int index = __shfl_down_sync(~0u, at, apart);
            if (value > own || value == own && index < at)
                own = value, at = index;
        }
    };
    warp();
    if (t % 32 == 0)
        values[t / 32] = own, indices[t / 32] = at;
    __syncthreads();
    if (t == 0)
        for (int k = 1; k < 8; ++k)
            if (values[k] > values[0])
                values[0] = values[k], indices[0] = indices[k];
"""
OWN_IN_REGISTERS = """    float own = values[t];
    int at = i;
    for (int apart = 128; apart > 0; apart /= 2) {
        if (t < apart) {
            float value = values[t + apart];
            int index = indices[t + apart];
            bool takes = value > own || value == own && index < at;
            values[t] = own = takes ? value : own;
            indices[t] = at = takes ? index : at;
        }
        __syncthreads();
    }
"""
BRANCHES = """    for (int apart = blockDim.x / 2; apart; apart >>= 1) {
        if (t < apart) {
            if (values[t] < values[t + apart]) {
                values[t] = values[t + apart];
                indices[t] = indices[t + apart];
            } else if (values[t] == values[t + apart]) {
                if (indices[t + apart] < indices[t])
                    indices[t] = indices[t + apart];
            }
        }
        __syncthreads();
    }
"""
LOAD = """    values[t] = i < n ? x[i] : -1e30f;  // below all elements
    indices[t] = i;
"""
STORE = """    if (t % 32 == 0)
        mosts[t / 32] = most;
    __syncthreads();
"""
LAST = """    if (t < 32) {
        most = t < 8 ? mosts[t] : -1e30f;
        for (int apart = 16; apart > 0; apart /= 2)
            most = fmaxf(most, __shfl_down_sync(0xffffffff, most, apart));
    }
"""
ONE_BY_ONE = """    if (t == 0)
        for (int warp = 1; warp < 8; ++warp)
            most = fmaxf(most, mosts[warp]);
"""
COUNTED = "atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;"
READ = """        for (int block = threadIdx.x; block < gridDim.x; block += 32)
            sum += *(volatile float*)&parts[block];
"""
MINE = "int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32"
ZERO = """    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x)
        mine[bin] = 0;
    __syncthreads();
"""
COUNT = "        atomicAdd(&mine[x[i]], 1);\n    __syncthreads();\n"
FLUSH = """    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x)
        atomicAdd(&counts[bin], mine[bin]);
"""
BINS = "bin = threadIdx.x; bin < bins; bin += "
PASSES = """    for (int c = lane; c < cols; c += 32) {
        float larger = fmaxf(most, mine[c]);
        sum = sum * expf(most - larger) + expf(mine[c] - larger);
        most = larger;
    }
"""
IN_REGISTERS = """    float own[32];
    #pragma unroll
    for (int k = 0; k < 32; ++k) {
        own[k] = 32 * k + lane < cols ? mine[32 * k + lane] : -1e30f;
        most = fmaxf(most, own[k]);
    }
    #pragma unroll
    for (int k = 0; k < 32; ++k)
        sum += expf(own[k] - most);
"""
RESCALED = "sum = sum * expf(most - larger) + expf(mine[c] - larger);"
MERGED = "sum = sum * expf(most - larger) + s * expf(m - larger);"

WRONG = [
    (
        "12.1",
        "spread in all warps",
        2,
        lab_12.WARPS_HINT,
        ("return min(adders, threads // 32)", "return threads // 32"),
    ),
    (
        "12.1",
        "packed as if spread",
        1,
        lab_12.WARPS_HINT,
        ("max(1, adders // 32)", "min(adders, threads // 32)"),
    ),
    ("12.1", "fewer than a warp", 1, "0", "1", ("max(1, adders // 32)", "adders // 32")),
    ("12.1", "eight warps", 2, "32", ("min(adders, threads // 32)", "min(adders, 8)")),
    (
        "12.2",
        "the upper of equal ones",
        3,
        lab_12.TIES.usual,
        (LARGER, "value > values[t]"),
    ),
    ("12.2", "spread threads", 5, "5.39", "32", (TREE, SPREAD)),
    ("12.2", "0 for what does not exist", 2, lab_12.PADDED, ("-1e30f", "0")),
    (
        "12.2",
        "no barrier in the rounds",
        1,
        lab_12.TREE.race,
        (TREE, TREE.replace("        __syncthreads();\n", "")),
    ),
    (
        "12.2",
        "spread threads with pairs in registers",
        5,
        "32",
        (TREE, SPREAD_IN_REGISTERS),
    ),
    (
        "12.2",
        "one place for all",
        5,
        lab_12.AS_TREE,
        (ARRAYS, ""),
        (LOAD + "    __syncthreads();\n" + TREE, ATOMIC),
        ("= indices[0]", "= index"),
    ),
    ("12.2", "thread 0 alone", 5, "1", "32", (TREE, ALONE)),
    ("12.2", "neighbours", 5, (TREE, PACKED)),
    ("12.2", "pairs side by side", 5, *IN_A_STRUCT),
    ("12.2", "a padded array", 6, "2052", ("int indices[256]", "int indices[257]")),
    ("12.2", "past the end", 2, lab_12.TREE.out_of_bounds, ("i < n ? x[i] : -1e30f", "x[i]")),
    (
        "12.2",
        "elements that do not exist",
        4,
        lab_12.TREE.unfilled,
        (LOAD, "    if (i < n) values[t] = x[i], indices[t] = i;\n"),
    ),
    ("12.2", "a round is missing", 1, lab_12.TREE.usual, ("apart = 128", "apart = 64")),
    (
        "12.2",
        "the index stays",
        1,
        lab_12.TREE.usual,
        ("                indices[t] = index;\n", ""),
    ),
    ("12.2", "the number in the block", 1, lab_12.TREE.usual, ("indices[t] = i;", "indices[t] = t;")),
    ("12.2", "no barrier after the loads", 1, "racecheck", (LOAD + "    __syncthreads();\n", LOAD)),
    ("12.3", "0 for what does not exist", 1, lab_12.SHUFFLES.usual, ("x[i] : -1e30f", "x[i] : 0")),
    ("12.3", "no barrier", 1, lab_12.SHUFFLES.race, ("    __syncthreads();\n", "")),
    ("12.3", "the first warp alone", 1, lab_12.SHUFFLES.usual, (LAST, "")),
    ("12.3", "a round is missing", 1, lab_12.SHUFFLES.usual, ("apart = 16", "apart = 8")),
    (
        "12.3",
        "eight lanes shuffle with all",
        1,
        lab_12.SHUFFLES.sync,
        ("if (t < 32)", "if (t < 8)"),
    ),
    (
        "12.3",
        "warps that do not exist",
        1,
        lab_12.SHUFFLES.out_of_bounds,
        ("t < 8 ? mosts[t] : -1e30f", "mosts[t]"),
    ),
    ("12.3", "all to shared memory", 3, "128", ("float mosts[8]", "float mosts[256]")),
    ("12.3", "two barriers", 3, (STORE, STORE + "    __syncthreads();\n")),
    (
        "12.3",
        "one thread loads the elements",
        4,
        (
            "float most = i < n ? x[i] : -1e30f;",
            "float most = -1e30f;\n"
            "    for (int k = 0; k < 256 && t == 0; ++k) if (i + k < n) most = fmaxf(most, x[i + k]);",
        ),
    ),
    ("12.4", "no fence", 2, lab_12.FINISH.owner, ("        __threadfence();\n", "")),
    ("12.4", "a count that is not atomic", 2, lab_12.FINISH.owner, (COUNTED, "finished++ == gridDim.x - 1;")),
    (
        "12.4",
        "no way back to 0",
        3,
        lab_12.FINISH.usual,
        (COUNTED, "atomicAdd(&finished, 1) == gridDim.x - 1;"),
    ),
    ("12.4", "every block finishes", 2, "racecheck", ("__shfl_sync(~0u, is_last, 0)", "true")),
    ("12.4", "lane 0 alone", 1, lab_12.FINISH.usual, ("__shfl_sync(~0u, is_last, 0)", "is_last")),
    ("12.4", "the first 32 parts", 1, lab_12.FINISH.usual, (READ, "        sum = parts[threadIdx.x];\n")),
    (
        "12.4",
        "one block does it all",
        4,
        "500",
        (MINE, "int i = threadIdx.x; i < n && !blockIdx.x; i += 32"),
    ),
    (
        "12.4",
        "the fence after the count",
        2,
        lab_12.FINISH.owner,
        ("        __threadfence();\n", ""),
        (COUNTED, COUNTED + "\n        __threadfence();"),
    ),
    (
        "12.5",
        "one block counts",
        3,
        "1000",
        (
            "int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x",
            "int i = threadIdx.x; i < n && !blockIdx.x; i += blockDim.x",
        ),
    ),
    ("12.5", "not from 0", 1, lab_12.BINS.unfilled, (ZERO, "")),
    (
        "12.5",
        "no atomic in the block",
        1,
        lab_12.BINS.race,
        ("atomicAdd(&mine[x[i]], 1)", "mine[x[i]] += 1"),
    ),
    (
        "12.5",
        "no atomic in the grid",
        2,
        lab_12.BINS.owner,
        ("atomicAdd(&counts[bin], mine[bin])", "counts[bin] += mine[bin]"),
    ),
    (
        "12.5",
        "no barrier after 0",
        1,
        lab_12.BINS.race,
        ("mine[bin] = 0;\n    __syncthreads();", "mine[bin] = 0;"),
    ),
    (
        "12.5",
        "no barrier at the end",
        1,
        lab_12.BINS.race,
        (COUNT, COUNT.replace("    __syncthreads();\n", "")),
    ),
    (
        "12.5",
        "one bin per thread",
        1,
        lab_12.BINS.unfilled,
        (BINS + "blockDim.x", BINS + "bins"),
    ),
    (
        "12.5",
        "a fixed size",
        3,
        "12288",
        ("extern __shared__ int mine[];", "__shared__ int mine[3072];"),
    ),
    (
        "12.5",
        "each element to the grid, too",
        3,
        "300",
        (FLUSH, ""),
        (
            "        atomicAdd(&mine[x[i]], 1);",
            "        atomicAdd(&mine[x[i]], 1), atomicAdd(&counts[x[i]], 1);",
        ),
    ),
    ("12.6", "different bins", 1, "32", ("np.bincount(row).max()", "len(np.unique(row))")),
    ("12.6", "all elements together", 1, lab_12.TURNS_HINT, ("bins.reshape(-1, 32)", "[bins]")),
    ("12.6", "warps by columns", 1, lab_12.TURNS_HINT, ("bins.reshape(-1, 32)", "bins.reshape(32, -1).T")),
    (
        "12.7",
        "the sum is not scaled",
        1,
        lab_12.ONLINE.usual,
        (RESCALED, "sum = sum + expf(mine[c] - larger);"),
    ),
    (
        "12.7",
        "one part is not scaled",
        1,
        lab_12.ONLINE.usual,
        (MERGED, "sum = sum * expf(most - larger) + s;"),
    ),
    ("12.7", "sums added, whatever their maxima", 1, lab_12.ONLINE.usual, (MERGED, "sum += s;")),
    ("12.7", "a row in registers", 4, lab_12.NO_ROW, (PASSES, IN_REGISTERS)),
    ("12.7", "no maximum", 1, lab_12.ONLINE.nan, ("float larger = fmaxf(most, mine[c])", "float larger = 0")),
    ("12.7", "minus infinity", 2, lab_12.ONLINE.nan, ("most = -1e30f", "most = -1.0f / 0.0f")),
    (
        "12.7",
        "lane 0 alone has the sum",
        1,
        lab_12.ONLINE.usual,
        ("__shfl_xor_sync(~0u, sum", "__shfl_down_sync(~0u, sum"),
    ),
]

OTHERS = [
    ("12.1", "rounded up", ("max(1, adders // 32)", "-(-adders // 32)")),
    ("12.2", "own pairs in registers", (TREE, OWN_IN_REGISTERS)),
    ("12.2", "three branches", (TREE, BRANCHES)),
    ("12.2", "by shuffles", (LOAD + "    __syncthreads();\n" + TREE, BY_SHUFFLES)),
    (
        "12.2",
        "a pair in one word",
        (ARRAYS, ""),
        (LOAD + "    __syncthreads();\n" + TREE, IN_ONE_WORD),
        ("= indices[0]", "= index"),
    ),
    ("12.3", "every lane has the largest", ("__shfl_down_sync", "__shfl_xor_sync")),
    ("12.3", "the first thread compares eight", (LAST, ONE_BY_ONE)),
    (
        "12.4",
        "the last block sets the count back",
        (COUNTED, "atomicAdd(&finished, 1) == gridDim.x - 1;"),
        ("            *out = sum;", "            *out = sum, finished = 0;"),
    ),
    ("12.5", "empty bins are left out", ("atomicAdd(&counts", "if (mine[bin]) atomicAdd(&counts")),
    ("12.6", "sorted", ("int(np.bincount(row).max())", "max(list(row).count(each) for each in row)")),
    (
        "12.7",
        "from the end",
        ("int c = lane; c < cols; c += 32) {", "int c = cols - 1 - lane; c >= 0; c -= 32) {"),
    ),
]

test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)
test_another_right_answer_passes = checks_of_other_answers(OTHERS)
