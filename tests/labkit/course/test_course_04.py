"""Checks of notebook 04: what students start from and typical mistakes fail; other right answers pass."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

from labkit.course.exercises import lab_04

STARTERS = {
    "04.1": (5, "n=4096", "2", "128", "4096", "512", "out[i]", "in[i]", "32", lab_04.LANES),
    "04.2": (2, lab_04.PLACES),
    "04.3": (4, "2048", "512", "128", "16", lab_04.ONCE),
    "04.4": (2, "32", "2", "0", "4", "1", "0.5", lab_04.WHOLE),
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


LOOP = "for (int i = thread; i < n; i += threads)"
X, Y = "threadIdx.x;", "threadIdx.y;"
ROW, COL = (
    "int row = blockIdx.x * blockDim.x + threadIdx.x;",
    "int col = blockIdx.y * blockDim.y + threadIdx.y;",
)
NUMBER = "int number = threadIdx.y * 32 + threadIdx.x;\n    "
USED, MOVED = "size * len(set(addresses))", "32 * len({address // 32 for address in addresses})"
MOVE = "out[col * rows + row] = in[row * cols + col];"
INSIDE = "if (row < rows && col < cols)"
FLOATS = "for (int e = i; e < 4 * n; e += gridDim.x * blockDim.x)"
WHOLE = "float4 p = reinterpret_cast<const float4*>(particles)[i];"
STORES = """out[i] = p.x;
    out[n + i] = p.y;
    out[2 * n + i] = p.z;
    out[3 * n + i] = p.w;"""

WARP_SHARES = """int warps = threads / 32, share = n / warps / 8 * 8 + 8, first = thread / 32 * share;
    for (int i = first + thread % 32; i < first + share && i < n; i += 32)"""
# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    ("04.1", "one share per warp, where blocks have fewer threads", 3, lab_04.SHARE, (LOOP, WARP_SHARES)),
    ("04.1", "one element per thread", 1, "out[256]", (LOOP, "int i = thread;\n    if (i < n)")),
    ("04.1", "no end", 1, lab_04.SHARE, ("i < n", "i <= n")),
    ("04.1", "one too few", 1, "out[4095]", ("i < n", "i < n - 1")),
    (
        "04.1",
        "all copied by each block",
        5,
        "256",
        "4",
        (LOOP, "for (int i = threadIdx.x; i < n; i += blockDim.x)"),
    ),
    (
        "04.1",
        "steps of a block",
        5,
        "1008",
        (LOOP, "for (int i = thread; i < n; i += blockDim.x)"),
    ),
    ("04.1", "a block of 128 taken for granted", 3, "n=1000", "3", "96", ("blockDim.x;", "128;")),
    (
        "04.1",
        "two in a row",
        5,
        "128",
        "8",
        (LOOP, "for (int k = 2 * thread; k < n; k += 2 * threads) for (int i = k; i < k + 2 && i < n; ++i)"),
    ),
    (
        "04.1",
        "one thread for all",
        5,
        "4096",
        "1",
        (LOOP, "for (int i = 0; i < n && thread == 0; ++i)"),
    ),
    (
        "04.2",
        "the loads along the rows",
        5,
        "1536",
        "768",
        (ROW, f"{NUMBER}int row = blockIdx.x * 32 + number / 8;"),
        (COL, "int col = blockIdx.y * 8 + number % 8;"),
    ),
    (
        "04.2",
        "blocks of in",
        2,
        lab_04.PLACES,
        (ROW, "int row = blockIdx.y * blockDim.y + threadIdx.y;"),
        (COL, "int col = blockIdx.x * blockDim.x + threadIdx.x;"),
    ),
    (
        "04.2",
        "square blocks taken for granted",
        1,
        "rows=32",
        "cols=32",
        (ROW, ROW.replace("threadIdx.x", "threadIdx.y")),
        (COL, COL.replace("threadIdx.y", "threadIdx.x")),
    ),
    (
        "04.2",
        "roles of the matrices exchanged",
        2,
        "rows=64",
        "cols=96",
        (MOVE, "out[row * rows + col] = in[col * cols + row];"),
    ),
    ("04.2", "strides of a square", 2, "rows=64", "cols=96", ("col * rows + row", "col * cols + row")),
    (
        "04.2",
        "guards exchanged",
        2,
        "rows=64",
        "cols=96",
        ("row < rows && col < cols", "row < cols && col < rows"),
    ),
    ("04.2", "no guard", 3, lab_04.GUARD, ("row < rows && col < cols", "true")),
    ("04.2", "half a guard", 3, "rows=1", "cols=1", ("row < rows && col < cols", "col < cols")),
    ("04.2", "a copy", 1, lab_04.PLACES, ("col * rows + row", "row * cols + col")),
    ("04.3", "no guard", 2, lab_04.LAST, ("if (i >= n)", "if (false)")),
    ("04.3", "guard one too far", 2, lab_04.LAST, ("i >= n", "i > n")),
    ("04.3", "out as long as blocks", 1, lab_04.FIELDS, ("n + i]", "512 + i]")),
    ("04.3", "structs again", 1, lab_04.FIELDS, (STORES, "reinterpret_cast<float4*>(out)[i] = p;")),
    (
        "04.3",
        "stores of neighbours, scattered loads",
        4,
        lab_04.ONCE,
        ("if (i >= n)\n        return;\n", ""),
        (
            f"{WHOLE}\n    {STORES}",
            f"{FLOATS}\n        out[e] = particles[e % n * 4 + e / n];",
        ),
    ),
    ("04.3", "two out exchanged", 1, lab_04.FIELDS, ("p.y", "p.z")),
    ("04.4", "each lane's bytes", 3, lab_04.USED_ONCE, (USED, "size * len(addresses)")),
    ("04.4", "floats only", 4, lab_04.OTHER_SIZES, (USED, "4 * len(set(addresses))")),
    ("04.4", "cache lines of 128 bytes", 2, lab_04.WHOLE, (MOVED, MOVED.replace("32", "128"))),
    (
        "04.4",
        "from the first to the last",
        2,
        "0.125",
        (MOVED, "(max(addresses) // 32 - min(addresses) // 32 + 1) * 32"),
    ),
    (
        "04.4",
        "sectors from the first address on",
        2,
        lab_04.WHOLE,
        ("address // 32", "(address - addresses[0]) // 32"),
    ),
    ("04.4", "in per cent", 1, "100", "1", ("used / moved", "100 * used / moved")),
    ("04.4", "nothing", 1, lab_04.WHOLE, ("return used / moved", "print(used / moved)")),
    ("04.4", "not a number of lanes", 1, "6", "TypeError", ("used / moved", "used / addresses")),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


VECTORS = """for (int i = thread; i < n / 4; i += threads)
        reinterpret_cast<float4*>(out)[i] = reinterpret_cast<const float4*>(in)[i];
    for (int i = n / 4 * 4 + thread; i < n; i += threads)"""
TILED = """__shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (y < rows && x < cols)
        tile[threadIdx.y][threadIdx.x] = in[y * cols + x];
    __syncthreads();"""
STAGED = """__shared__ float staged[512];
    int first = blockIdx.x * 512;
    for (int e = threadIdx.x; e < 512 && first + e < 4 * n; e += 128)
        staged[e] = particles[first + e];
    __syncthreads();
    if (i < n)
        for (int f = 0; f < 4; ++f)
            out[f * n + i] = staged[4 * threadIdx.x + f];"""
RETURN = ("if (i >= n)\n        return;\n", "")

# exercise, how it differs, then what to replace in the solution
OTHERS = [
    ("04.1", "vectors of four", (LOOP, VECTORS)),
    ("04.1", "while", (LOOP, "int i = thread - threads;\n    while ((i += threads) < n)")),
    (
        "04.2",
        "as row and column of out",
        (ROW, "int out_col = blockIdx.x * blockDim.x + threadIdx.x;"),
        (COL, "int out_row = blockIdx.y * blockDim.y + threadIdx.y;"),
        ("row < rows && col < cols", "out_col < rows && out_row < cols"),
        (MOVE, "out[out_row * rows + out_col] = in[out_col * cols + out_row];"),
    ),
    ("04.2", "with sizes", (ROW, "int row = blockIdx.x * 32 + threadIdx.x;"), ("* blockDim.y", "* 8")),
    (
        "04.3",
        "one float per lane",
        RETURN,
        (
            f"{WHOLE}\n    {STORES}",
            f"{FLOATS}\n        out[e % 4 * n + e / 4] = particles[e];",
        ),
    ),
    ("04.3", "through shared memory", RETURN, (f"{WHOLE}\n    {STORES}", STAGED)),
    (
        "04.4",
        "with NumPy",
        (USED, "size * np.unique(addresses).size"),
        (MOVED, "32 * np.unique(np.array(addresses) // 32).size"),
    ),
]


test_another_right_answer_passes = checks_of_other_answers(OTHERS)
