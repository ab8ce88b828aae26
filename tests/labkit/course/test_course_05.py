"""Checks of notebook 05: what students start from and typical mistakes fail, with words that help."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

from labkit.course.criteria import hints, kernels
from labkit.course.exercises import lab_05

BARRIER = "    __syncthreads();\n    int out_col"
GUARD_IN = "if (row < rows && col < cols)"
GUARD_OUT = "if (out_row < cols && out_col < rows)"
STORE, LOAD = "tile[y][x] =", "= tile[x][y]"
NAIVE = (
    f"    {GUARD_IN}\n        tile[y][x] = in[row * cols + col];\n",
    f"    tile[y][x] = 0;\n    {GUARD_IN}\n        out[col * rows + row] = in[row * cols + col];\n"
    "    return;\n",
)
# A lane after the other: no two words are asked for at the same time.
IN_TURN = f"""    float mine = 0;
    for (int lane = 0; lane < 32; ++lane)
        if (x == lane && out_row < cols && out_col < rows)
            mine = tile[x][y];
    {GUARD_OUT}"""
# Neighbours are added first, as in the starter, with an unused word after each 32.
PADDED_SUM = """if (2 * s * t < 256) {
            int a = 2 * s * t, b = a + s;
            part[a + a / 32] += part[b + b / 32];
        }"""
SHUFFLED_SUM = """    int sum = part[t % 32];
    for (int s = 16; s > 0; s /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, s);
    if (t == 0)
        out[blockIdx.x] = sum;"""
STEPS, PAIR = "for (int s = 128; s > 0; s /= 2)", "if (t < s)\n            part[t] += part[t + s];"
UPWARDS = "for (int s = 1; s < 256; s *= 2)"

STARTERS = {
    "05.1": (4, "6144", "768", "out[col * rows + row]", "in[row * cols + col]", "32", lab_05.ROWS),
    "05.2": (5, "5952", "tile[x]", "31", lab_05.BANKS),
    "05.3": (5, "4224", lab_05.SMALLER),
    "05.4": (4, "105", "part[2 * s * t]", "part[2 * s * t + s]", "70"),
    "05.5": (2, "32", "0", "4", "1", lab_05.BUSIEST),
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    (
        "05.1",
        "one warp works",
        1,
        kernels.OWN,
        ("    if (row < rows", "    for (int i = 0; y == 0 && i < 32; ++i) if (row + i < rows"),
        ("tile[y][x] = in[row *", "tile[i][x] = in[(row + i) *"),
        ("    if (out_row < cols", "    for (int i = 0; y == 0 && i < 32; ++i) if (out_row + i < cols"),
        ("out[out_row * rows + out_col] = tile[x][y]", "out[(out_row + i) * rows + out_col] = tile[x][i]"),
    ),
    (
        "05.5",
        "words of a bank on average",
        2,
        lab_05.BUSIEST,
        ("max(len(bank) for bank in banks)", "-(-len(set(words)) // sum(map(bool, banks)))"),
    ),
    ("05.1", "no barrier", 1, lab_05.BARRIER, (BARRIER, "    int out_col")),
    (
        "05.1",
        "blocks not exchanged",
        1,
        "out[0, 32]",
        ("blockIdx.y * 32 + x, out_row = blockIdx.x * 32", "blockIdx.x * 32 + x, out_row = blockIdx.y * 32"),
    ),
    ("05.1", "not turned", 1, "out[0, 1]", (LOAD, "= tile[y][x]")),
    (
        "05.1",
        "stride of a square",
        1,
        lab_05.INSIDE,
        ("out_row * rows + out_col", "out_row * cols + out_col"),
    ),
    (
        "05.1",
        "early return",
        2,
        hints.ARRIVE,
        (f"{GUARD_IN}\n        tile", "if (row >= rows || col >= cols)\n        return;\n    tile"),
    ),
    (
        "05.1",
        "one guard for both sides",
        2,
        lab_05.EDGE,
        (GUARD_OUT, f"if ({GUARD_OUT[4:-1]} && {GUARD_IN[4:-1]})"),
    ),
    (
        "05.1",
        "guards exchanged",
        1,
        "rows=64",
        "cols=96",
        "(3, 2)",
        "(32, 32)",
        "out[64, 0]",
        (GUARD_OUT, "if (out_row < rows && out_col < cols)"),
    ),
    (
        "05.1",
        "blocks that write the same columns",
        1,
        lab_05.PLACES,
        ("int out_col = blockIdx.y * 32 + x", "int out_col = x"),
    ),
    (
        "05.1",
        "blocks that write the same columns: what to look at",
        1,
        "tile[x]",
        ("int out_col = blockIdx.y * 32 + x", "int out_col = x"),
    ),
    ("05.1", "no guard on the way in", 2, lab_05.EDGE, (GUARD_IN, "if (true)")),
    (
        "05.1",
        "the tile of no use",
        4,
        "6144",
        NAIVE,
        ("return;\n    __syncthreads();", "\n    __syncthreads();\n    return;"),
    ),
    (
        "05.1",
        "reads down columns",
        4,
        "6144",
        ("int x = threadIdx.x, y = threadIdx.y;", "int x = threadIdx.y, y = threadIdx.x;"),
        (
            "out_col = blockIdx.y * 32 + x, out_row = blockIdx.x * 32 + y",
            "out_col = blockIdx.y * 32 + y, out_row = blockIdx.x * 32 + x",
        ),
        (LOAD, "= tile[y][x]"),
    ),
    ("05.2", "two unused words", 5, "192", ("[33]", "[34]")),
    ("05.2", "a row more, not a column", 5, "31", ("[32][33]", "[33][32]")),
    (
        "05.2",
        "conflicts in the store",
        5,
        "tile[x]",
        "in[row * cols + col]",
        "31",
        ("[33]", "[32]"),
        (STORE, "tile[x][y] ="),
        (LOAD, "= tile[y][x]"),
    ),
    ("05.2", "back to the naive kernel", 4, "6144", NAIVE),
    (
        "05.2",
        "lanes in turn",
        5,
        lab_05.TURNS,
        ("[33]", "[32]"),
        (LOAD, "= mine"),
        (f"    {GUARD_OUT}", IN_TURN),
    ),
    ("05.2", "half a tile", 1, lab_05.INSIDE, ("[32][33]", "[16][33]")),
    ("05.3", "nothing swizzled", 6, "5952", ("x ^ y", "x"), ("y ^ x", "y")),
    ("05.3", "swizzled on one side", 1, lab_05.AGREE, ("[y ^ x]", "[y]")),
    ("05.3", "half swizzled", 6, "192", ("x ^ y", "x ^ (y & 15)"), ("y ^ x", "y ^ (x & 15)")),
    (
        "05.3",
        "or for exclusive or",
        1,
        lab_05.RACE,
        ("x ^ y", "x | y"),
        ("y ^ x", "y | x"),
    ),
    ("05.3", "still padded", 5, "4224", ("[32][32]", "[32][33]")),
    ("05.3", "beyond the row", 1, lab_05.INSIDE, ("x ^ y", "x + y"), ("y ^ x", "y + x")),
    ("05.3", "the same row", 6, "5952", ("x ^ y", "31 - x"), ("y ^ x", "31 - y")),
    (
        "05.3",
        "lanes in turn",
        6,
        lab_05.TURNS,
        ("x ^ y", "x"),
        ("= tile[x][y ^ x]", "= mine"),
        (f"    {GUARD_OUT}", IN_TURN),
    ),
    ("05.4", "first step forgotten", 1, lab_05.SUM, ("s = 128", "s = 64")),
    (
        "05.4",
        "no barrier in the last warp",
        3,
        lab_05.PAIRS,
        ("        __syncthreads();\n    }", "        if (s > 32) __syncthreads();\n    }"),
    ),
    ("05.4", "everyone adds", 1, lab_05.ENDS, ("if (t < s)", "if (t < 256)")),
    ("05.4", "reads past the end", 2, lab_05.ENDS, ("i < n ? in[i] : 0", "in[i]")),
    (
        "05.4",
        "one thread adds",
        5,
        "64",
        (STEPS, "for (int s = 1; s < 256; ++s)"),
        ("if (t < s)", "if (t == 0)"),
    ),
    (
        "05.4",
        "one thread adds from global memory",
        5,
        "256",
        (
            "part[t] = i < n ? in[i] : 0;",
            "part[t] = 0;\n    if (t == 0) for (int k = i; k < i + 256 && k < n; ++k) part[0] += in[k];",
        ),
        ("if (t < s)", "if (false)"),
    ),
    (
        "05.4",
        "lanes far apart in all warps",
        5,
        "150",
        (STEPS, UPWARDS),
        ("if (t < s)", "if (t % (2 * s) == 0)"),
    ),
    (
        "05.4",
        "all add atomically",
        5,
        lab_05.ATOMIC,
        (STEPS, "for (int s = 1; s > 0; --s)"),
        (PAIR, "if (t > 0)\n            atomicAdd(&part[0], part[t]);"),
    ),
    ("05.5", "words counted twice", 4, lab_05.DIFFERENT, ("set()", "[]"), (".add(", ".append(")),
    (
        "05.5",
        "conflicts",
        1,
        "0",
        "1",
        ("for bank in banks)", "for bank in banks) - 1"),
    ),
    ("05.5", "banks in use", 1, "32", "1", ("max(len(bank)", "sum(len(bank) > 0")),
    ("05.5", "banks of 8 bytes", 1, lab_05.BUSIEST, ("word % 32", "word // 2 % 32")),
    (
        "05.5",
        "different words alone",
        1,
        "32",
        "1",
        ("max(len(bank) for bank in banks)", "len(set(words))"),
    ),
    ("05.5", "bytes for words", 1, lab_05.BUSIEST, ("word % 32", "word // 4 % 32")),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


# exercise, how it differs, then what to replace in the solution
OTHERS = [
    ("05.1", "turned on the way in", (STORE, "tile[x][y] ="), (LOAD, "= tile[y][x]")),
    (
        "05.1",
        "a tile in one dimension",
        ("tile[32][32]", "tile[1024]"),
        ("tile[y][x]", "tile[32 * y + x]"),
        ("tile[x][y]", "tile[32 * x + y]"),
    ),
    (
        "05.1",
        "zeros past the edge",
        (
            f"{GUARD_IN}\n        tile[y][x] = in[row * cols + col]",
            "tile[y][x] = row < rows && col < cols ? in[row * cols + col] : 0",
        ),
    ),
    ("05.2", "turned on the way in", (STORE, "tile[x][y] ="), (LOAD, "= tile[y][x]")),
    ("05.2", "another odd number", ("[33]", "[37]")),
    ("05.2", "swizzled", ("[33]", "[32]"), (STORE, "tile[y][x ^ y] ="), (LOAD, "= tile[x][y ^ x]")),
    ("05.3", "rotated", ("x ^ y", "(x + y) % 32"), ("y ^ x", "(y + x) % 32")),
    ("05.3", "rotated the other way", ("x ^ y", "(x - y) & 31"), ("y ^ x", "(y - x) & 31")),
    (
        "05.3",
        "turned on the way in",
        ("tile[y][x ^ y]", "tile[x][y ^ x]"),
        ("= tile[x][y ^ x]", "= tile[y][x ^ y]"),
    ),
    (
        "05.4",
        "neighbours, padded",
        ("part[256]", "part[264]"),
        ("part[t] = i", "part[t + t / 32] = i"),
        (STEPS, UPWARDS),
        (PAIR, PADDED_SUM),
    ),
    (
        "05.4",
        "shuffles in the last warp",
        ("s > 0", "s > 16"),
        ("    if (t == 0)\n        out[blockIdx.x] = part[0];", SHUFFLED_SUM),
    ),
    (
        "05.5",
        "with a counter",
        ("max(len(bank) for bank in banks)", "int(np.bincount(np.unique(words) % 32).max())"),
    ),
]


test_a_right_answer_may_look_different = checks_of_other_answers(OTHERS)
