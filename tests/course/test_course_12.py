"""Checks of notebook 12: broken trees, shuffles, histograms and merges fail for that; right ones pass."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

STARTERS = {
    "12.1": ["warps(256, 16, True) returns 0.5; it should be 1", "A warp is 32 neighbouring threads"],
    "12.2": ["barrier", "put __syncthreads() after the if"],
    "12.3": ["the kernel takes 1024 bytes of shared memory; the goal is at most 128"],
    "12.4": ["writes another value than a thread of another block", "Only the last block reads parts"],
    "12.5": [
        "20000 atomic additions to global memory; the goal is at most 300",
        "Count in shared memory first",
    ],
    "12.6": ["turns(array (32,)) returns 1; it should be 32", "its commonest bin has lanes"],
    "12.7": ["sectors of global loads; the goal is at most 1024", "in the same pass"],
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
        "it should be",
        ("return min(adders, threads // 32)", "return threads // 32"),
    ),
    ("12.1", "packed as if spread", "it should be", ("max(1, adders // 32)", "min(adders, threads // 32)")),
    ("12.1", "fewer than a warp", "returns 0; it should be 1", ("max(1, adders // 32)", "adders // 32")),
    ("12.1", "eight warps", "it should be 32", ("min(adders, threads // 32)", "min(adders, 8)")),
    (
        "12.2",
        "the upper of equal ones",
        "Of two equal values keep the one with the smaller index",
        (LARGER, "value > values[t]"),
    ),
    ("12.2", "spread threads", "5.39 of 32 lanes are at work on average; the goal", (TREE, SPREAD)),
    ("12.2", "0 for what does not exist", "all may be below 0", ("-1e30f", "0")),
    (
        "12.2",
        "no barrier in the rounds",
        "must stand between the rounds",
        (TREE, TREE.replace("        __syncthreads();\n", "")),
    ),
    (
        "12.2",
        "spread threads with pairs in registers",
        "of 32 lanes are at work",
        (TREE, SPREAD_IN_REGISTERS),
    ),
    (
        "12.2",
        "one place for all",
        "In a tree, half of the threads compare",
        (ARRAYS, ""),
        (LOAD + "    __syncthreads();\n" + TREE, ATOMIC),
        ("= indices[0]", "= index"),
    ),
    ("12.2", "thread 0 alone", "1 of 32 lanes", (TREE, ALONE)),
    ("12.2", "neighbours", "bank conflicts; the goal is 0", (TREE, PACKED)),
    ("12.2", "pairs side by side", "values in one array, indices in another", *IN_A_STRUCT),
    ("12.2", "a padded array", "2052 bytes", ("int indices[256]", "int indices[257]")),
    ("12.2", "past the end", "Load x[i] only where i < n", ("i < n ? x[i] : -1e30f", "x[i]")),
    (
        "12.2",
        "elements that do not exist",
        "Fill all 256 pairs",
        (LOAD, "    if (i < n) values[t] = x[i], indices[t] = i;\n"),
    ),
    ("12.2", "a round is missing", "A value and its index move together", ("apart = 128", "apart = 64")),
    (
        "12.2",
        "the index stays",
        "A value and its index move together",
        ("                indices[t] = index;\n", ""),
    ),
    ("12.2", "the number in the block", "i is its index in x", ("indices[t] = i;", "indices[t] = t;")),
    ("12.2", "no barrier after the loads", "racecheck finds", (LOAD + "    __syncthreads();\n", LOAD)),
    ("12.3", "0 for what does not exist", "All elements may be below 0", ("x[i] : -1e30f", "x[i] : 0")),
    ("12.3", "no barrier", "One __syncthreads() must stand between", ("    __syncthreads();\n", "")),
    ("12.3", "the first warp alone", "The largest element of a warp is in lane 0", (LAST, "")),
    ("12.3", "a round is missing", "The largest element of a warp is in lane 0", ("apart = 16", "apart = 8")),
    (
        "12.3",
        "eight lanes shuffle with all",
        "All 32 lanes that the mask names",
        ("if (t < 32)", "if (t < 8)"),
    ),
    (
        "12.3",
        "warps that do not exist",
        "only where there is a warp t",
        ("t < 8 ? mosts[t] : -1e30f", "mosts[t]"),
    ),
    ("12.3", "all to shared memory", "the goal is at most 128", ("float mosts[8]", "float mosts[256]")),
    ("12.3", "two barriers", "each warp waits at 2 barriers", (STORE, STORE + "    __syncthreads();\n")),
    (
        "12.3",
        "one thread loads the elements",
        "requests to load",
        (
            "float most = i < n ? x[i] : -1e30f;",
            "float most = -1e30f;\n"
            "    for (int k = 0; k < 256 && t == 0; ++k) if (i + k < n) most = fmaxf(most, x[i + k]);",
        ),
    ),
    ("12.4", "no fence", "stands __threadfence()", ("        __threadfence();\n", "")),
    ("12.4", "a count that is not atomic", "Count with an atomic", (COUNTED, "finished++ == gridDim.x - 1;")),
    (
        "12.4",
        "no way back to 0",
        "back at 0 for the next launch",
        (COUNTED, "atomicAdd(&finished, 1) == gridDim.x - 1;"),
    ),
    ("12.4", "every block finishes", "racecheck finds", ("__shfl_sync(~0u, is_last, 0)", "true")),
    ("12.4", "lane 0 alone", "All of its 32 lanes", ("__shfl_sync(~0u, is_last, 0)", "is_last")),
    ("12.4", "the first 32 parts", "All of its 32 lanes", (READ, "        sum = parts[threadIdx.x];\n")),
    (
        "12.4",
        "one block does it all",
        "its share is 500",
        (MINE, "int i = threadIdx.x; i < n && !blockIdx.x; i += 32"),
    ),
    (
        "12.4",
        "the fence after the count",
        "stands __threadfence()",
        ("        __threadfence();\n", ""),
        (COUNTED, COUNTED + "\n        __threadfence();"),
    ),
    (
        "12.5",
        "one block counts",
        "its share is 1000",
        (
            "int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x",
            "int i = threadIdx.x; i < n && !blockIdx.x; i += blockDim.x",
        ),
    ),
    ("12.5", "not from 0", "Set all bins of the block to 0 first", (ZERO, "")),
    (
        "12.5",
        "no atomic in the block",
        "Threads that add to one bin at the same time need atomicAdd",
        ("atomicAdd(&mine[x[i]], 1)", "mine[x[i]] += 1"),
    ),
    (
        "12.5",
        "no atomic in the grid",
        "Blocks add to counts",
        ("atomicAdd(&counts[bin], mine[bin])", "counts[bin] += mine[bin]"),
    ),
    (
        "12.5",
        "no barrier after 0",
        "A block's counts must be 0",
        ("mine[bin] = 0;\n    __syncthreads();", "mine[bin] = 0;"),
    ),
    (
        "12.5",
        "no barrier at the end",
        "A block's counts must be 0",
        (COUNT, COUNT.replace("    __syncthreads();\n", "")),
    ),
    (
        "12.5",
        "one bin per thread",
        "Set all bins of the block to 0 first",
        (BINS + "blockDim.x", BINS + "bins"),
    ),
    (
        "12.5",
        "a fixed size",
        "12288 bytes of shared memory",
        ("extern __shared__ int mine[];", "__shared__ int mine[3072];"),
    ),
    (
        "12.5",
        "each element to the grid, too",
        "at most 300, one per block and bin",
        (FLUSH, ""),
        (
            "        atomicAdd(&mine[x[i]], 1);",
            "        atomicAdd(&mine[x[i]], 1), atomicAdd(&counts[x[i]], 1);",
        ),
    ),
    ("12.6", "different bins", "it should be 32", ("np.bincount(row).max()", "len(np.unique(row))")),
    ("12.6", "all elements together", "it should be", ("bins.reshape(-1, 32)", "[bins]")),
    ("12.6", "warps by columns", "it should be", ("bins.reshape(-1, 32)", "bins.reshape(32, -1).T")),
    ("12.7", "the sum is not scaled", "expf(old - new)", (RESCALED, "sum = sum + expf(mine[c] - larger);")),
    ("12.7", "one part is not scaled", "expf(old - new)", (MERGED, "sum = sum * expf(most - larger) + s;")),
    ("12.7", "sums added, whatever their maxima", "expf(old - new)", (MERGED, "sum += s;")),
    ("12.7", "a row in registers", "or registers: it may have any length", (PASSES, IN_REGISTERS)),
    ("12.7", "no maximum", "out[", ("float larger = fmaxf(most, mine[c])", "float larger = 0")),
    ("12.7", "minus infinity", "nan", ("most = -1e30f", "most = -1.0f / 0.0f")),
    ("12.7", "lane 0 alone has the sum", "out[", ("__shfl_xor_sync(~0u, sum", "__shfl_down_sync(~0u, sum")),
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
