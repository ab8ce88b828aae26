"""Checks of notebook 04: what students start from and typical mistakes fail; other right answers pass."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

STARTERS = {
    "04.1": [
        "✓ right for any grid",
        "n=4096, grid 2, block 128\nglobal loads touch 4096 sectors; the goal is at most 512",
        "out[i] = in[i];    128 requests of 32",
        "the lanes of a warp should stand on neighbouring elements",
    ],
    "04.2": [
        "✓ right for square matrices",
        "✗ right for wide and tall ones",
        "The blocks cover out: blockIdx.x counts blocks of its columns",
    ],
    "04.3": [
        "✓ right for any number",
        "global loads touch 2048 sectors; the goal is at most 512",
        "128 requests of 16",
        "Let a lane ask for the 16 bytes",
    ],
    "04.4": [
        "✓ right for floats side by side",
        "32 lanes, 2 elements from lane to lane, from element 0; an element has 4 bytes",
        "efficiency() returns 1; it should be 0.5.",
        "sector address // 32",
    ],
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
# exercise, what is wrong, words of the answer, then what to replace in the solution
WRONG = [
    ("04.1", "one share per warp, where blocks have fewer threads", "block 7", (LOOP, WARP_SHARES)),
    ("04.1", "one element per thread", "out[256] is nan", (LOOP, "int i = thread;\n    if (i < n)")),
    ("04.1", "no end", "invalid global read", ("i < n", "i <= n")),
    ("04.1", "one too few", "out[4095] is nan", ("i < n", "i < n - 1")),
    (
        "04.1",
        "all copied by each block",
        "256 requests of 4 sectors\nIn one round of the loop the lanes of a warp",
        (LOOP, "for (int i = threadIdx.x; i < n; i += blockDim.x)"),
    ),
    (
        "04.1",
        "steps of a block",
        "global loads touch 1008 sectors",
        (LOOP, "for (int i = thread; i < n; i += blockDim.x)"),
    ),
    ("04.1", "a block of 128 taken for granted", "n=1000, grid 3, block 96", ("blockDim.x;", "128;")),
    (
        "04.1",
        "two in a row",
        "128 requests of 8",
        (LOOP, "for (int k = 2 * thread; k < n; k += 2 * threads) for (int i = k; i < k + 2 && i < n; ++i)"),
    ),
    (
        "04.1",
        "one thread for all",
        "4096 requests of 1 sector\n",
        (LOOP, "for (int i = 0; i < n && thread == 0; ++i)"),
    ),
    (
        "04.2",
        "the loads along the rows",
        "global stores touch 1536 sectors; the goal is at most 768",
        (ROW, f"{NUMBER}int row = blockIdx.x * 32 + number / 8;"),
        (COL, "int col = blockIdx.y * 8 + number % 8;"),
    ),
    (
        "04.2",
        "blocks of in",
        "The blocks cover out",
        (ROW, "int row = blockIdx.y * blockDim.y + threadIdx.y;"),
        (COL, "int col = blockIdx.x * blockDim.x + threadIdx.x;"),
    ),
    (
        "04.2",
        "square blocks taken for granted",
        "rows=32 cols=32",
        (ROW, ROW.replace("threadIdx.x", "threadIdx.y")),
        (COL, COL.replace("threadIdx.y", "threadIdx.x")),
    ),
    (
        "04.2",
        "roles of the matrices exchanged",
        "rows=64 cols=96",
        (MOVE, "out[row * rows + col] = in[col * cols + row];"),
    ),
    ("04.2", "strides of a square", "rows=64 cols=96", ("col * rows + row", "col * cols + row")),
    ("04.2", "guards exchanged", "rows=64 cols=96", ("row < rows && col < cols", "row < cols && col < rows")),
    ("04.2", "no guard", "A thread outside out must do nothing", ("row < rows && col < cols", "true")),
    ("04.2", "half a guard", "rows=1 cols=1", ("row < rows && col < cols", "col < cols")),
    ("04.2", "a copy", "is the transpose of the right output", ("col * rows + row", "row * cols + col")),
    ("04.3", "no guard", "must do nothing", ("if (i >= n)", "if (false)")),
    ("04.3", "guard one too far", "invalid global", ("i >= n", "i > n")),
    ("04.3", "out as long as blocks", "out[", ("n + i]", "512 + i]")),
    ("04.3", "structs again", "Field f of particle i", (STORES, "reinterpret_cast<float4*>(out)[i] = p;")),
    (
        "04.3",
        "stores of neighbours, scattered loads",
        "Let a lane ask for the 16 bytes",
        ("if (i >= n)\n        return;\n", ""),
        (
            f"{WHOLE}\n    {STORES}",
            f"{FLOATS}\n        out[e] = particles[e % n * 4 + e / n];",
        ),
    ),
    ("04.3", "two out exchanged", "Field f of particle i", ("p.y", "p.z")),
    ("04.4", "each lane's bytes", "is moved once, and counts once", (USED, "size * len(addresses)")),
    ("04.4", "floats only", "they use more, and touch more sectors", (USED, "4 * len(set(addresses))")),
    ("04.4", "cache lines of 128 bytes", "sector address // 32", (MOVED, MOVED.replace("32", "128"))),
    (
        "04.4",
        "from the first to the last",
        "it should be 0.125",
        (MOVED, "(max(addresses) // 32 - min(addresses) // 32 + 1) * 32"),
    ),
    (
        "04.4",
        "sectors from the first address on",
        "from element 3",
        ("address // 32", "(address - addresses[0]) // 32"),
    ),
    ("04.4", "in per cent", "returns 100; it should be 1", ("used / moved", "100 * used / moved")),
    ("04.4", "nothing", "returns None", ("return used / moved", "print(used / moved)")),
    ("04.4", "not a number of lanes", "line 6: TypeError", ("used / moved", "used / addresses")),
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
