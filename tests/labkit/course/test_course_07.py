"""Checks of notebook 07: what students start from and typical mistakes fail, and other right answers pass."""

import pytest
from course_tables import (
    checks_of_mistakes,
    checks_of_other_answers,
    checks_of_starters,
    function_of,
    mutant,
)

import labkit
from labkit.course.criteria import products
from labkit.course.criteria.occupancy import YOUR_WORK
from labkit.course.exercise import Unmet
from labkit.course.exercises import lab_07
from simt.common.occupancy import gpu, gpus, occupancy

STARTERS = {
    "07.1": (1, "1024", "1.0", "2.048e-06", "2147.48", "2", "1000"),
    "07.2": (4, "0.40", "0.9", "15", "A[row * K + k]", "B[k * N + col]", "40960", lab_07.ROWS_INSIDE),
    "07.3": (2, "threads=256", "registers=128", "shared=0", "64", "16", "8", "2"),
    "07.4": (5, "4060", "66.7", "32", "48", "1024", "1", "2", "24", "768", "100"),
    "07.5": (2, "1", "4.61", "2", "0", "132", "1.98", lab_07.OF_SM),
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)

RATE = "return operations / seconds / 1e9, needed / seconds / 1e9"
NEEDED = "4 * (M * K + K * N + M * N)"
WARP = "-(-32 * registers // gpu.register_unit) * gpu.register_unit"
TAKEN = "-(-(shared + gpu.reserved_shared_bytes) // gpu.shared_unit) * gpu.shared_unit"
SUMS = "    for (int k = 0; k < K; ++k) {"

# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    (
        "07.1",
        "ms taken for seconds",
        1,
        "1000",
        (" / 1000", ""),
    ),
    ("07.1", "multiply-adds", 1, ("2 * M", "M")),
    ("07.1", "the report's formula", 1, ("2 * M * N * K", "2 * N")),
    ("07.1", "one addition fewer", 1, ("2 * M * N * K", "M * N * (2 * K - 1)")),
    ("07.1", "cubes only", 2, ("2 * M * N * K", "2 * N**3")),
    ("07.1", "elements of C", 1, ("2 * M * N * K", "2 * M * N")),
    (
        "07.1",
        "TFLOP/s",
        1,
        "1000",
        ("operations / seconds / 1e9", "operations / seconds / 1e12"),
    ),
    (
        "07.1",
        "whole numbers",
        1,
        (RATE, "return round(operations / seconds / 1e9), needed / seconds / 1e9"),
    ),
    ("07.1", "it exits", 1, "SystemExit", "3", (RATE, "raise SystemExit(3)")),
    ("07.1", "GiB/s", 3, lab_07.BINARY, ("needed / seconds / 1e9", "needed / seconds / 2**30")),
    ("07.1", "elements, not bytes", 3, (NEEDED, "(M * K + K * N + M * N)")),
    ("07.1", "C left out", 3, (NEEDED, "4 * (M * K + K * N)")),
    ("07.1", "C read, too", 3, (NEEDED, "4 * (M * K + K * N + 2 * M * N)")),
    ("07.1", "all that naive reads", 3, (NEEDED, "8 * M * N * K")),
    ("07.1", "square matrices", 3, (NEEDED, "12 * N * N")),
    ("07.1", "doubles", 3, lab_07.WORK, (NEEDED, "8 * (M * K + K * N + M * N)")),
    (
        "07.1",
        "one number",
        1,
        (RATE, "return operations / seconds / 1e9"),
    ),
    ("07.1", "nothing", 1, (RATE, "print(operations / seconds / 1e9)")),
    (
        "07.1",
        "words",
        1,
        (RATE, "return str(operations / seconds / 1e9), str(needed / seconds / 1e9)"),
    ),
    (
        "07.1",
        "the two exchanged",
        1,
        lab_07.ORDER,
        (RATE, "return needed / seconds / 1e9, operations / seconds / 1e9"),
    ),
    (
        "07.1",
        "hard-coded",
        1,
        "680",
        "0.154",
        ("operations = 2 * M * N * K", "operations = 2**31"),
    ),
    (
        "07.2",
        "two rows",
        4,
        "0.65",
        (SUMS, "    for (int h = 0; h < 4; h += 2) for (int k = 0; k < K; ++k) {"),
        ("int i = 0; i < 4; ++i)\n            if", "int i = h; i < h + 2; ++i)\n            if"),
    ),
    (
        "07.2",
        "sums in memory",
        4,
        "0.9",
        ("                sum[i] +=", "                C[(first + 8 * i) * N + col] = sum[i] +="),
        ("if (first + 8 * i < M)\n", "if (first + 8 * i < M && col < N)\n"),
    ),
    (
        "07.2",
        "together at one size alone",
        4,
        "M=32",
        "N=96",
        "K=40",
        "32",
        "8",
        "0.39",
        (SUMS, "    for (int h = 0; h < 4; h += M == 64 ? 4 : 1) for (int k = 0; k < K; ++k) {"),
        (
            "int i = 0; i < 4; ++i)\n            if",
            "int i = h; i < (M == 64 ? 4 : h + 1); ++i)\n            if",
        ),
    ),
    ("07.2", "one sum for all", 1, lab_07.ROWS.usual, ("sum[i]", "sum[0]")),
    ("07.2", "neighbouring rows", 1, lab_07.ROWS.usual, ("8 * i", "i")),
    (
        "07.2",
        "no guard of the rows",
        2,
        lab_07.ROWS.out_of_bounds,
        ("            if (first + 8 * i < M)\n", ""),
    ),
    (
        "07.2",
        "no guard of the columns",
        2,
        lab_07.ROWS.out_of_bounds,
        ("col < N ? B[k * N + col] : 0", "B[k * N + col]"),
    ),
    (
        "07.2",
        "only the first row",
        1,
        lab_07.ROWS.usual,
        ("i < 4; ++i)\n        if", "i < 1; ++i)\n        if"),
    ),
    (
        "07.2",
        "returns early where a row is missing",
        2,
        "M=1",
        "N=1",
        "K=1",
        ("    float sum[4] = {};", "    if (first + 24 >= M || col >= N) return;\n    float sum[4] = {};"),
    ),
    (
        "07.2",
        "B loaded again for each row",
        4,
        "0.40",
        "0.9",
        ("        float b = col < N ? B[k * N + col] : 0;\n", ""),
        ("if (first + 8 * i < M)\n", "if (first + 8 * i < M && col < N)\n"),
        ("+ k] * b", "+ k] * B[k * N + col]"),
    ),
    (
        "07.3",
        "threads in place of warps",
        1,
        ("min(blocks) * of_block", "min(blocks) * threads // 32"),
    ),
    ("07.3", "blocks returned", 1, "8", "64", ("min(blocks) * of_block", "min(blocks)")),
    (
        "07.3",
        "no whole blocks",
        1,
        ("gpu.warps_per_sm // of_block", "gpu.warps_per_sm / of_block"),
    ),
    ("07.3", "registers not in units", 2, (WARP, "32 * registers")),
    (
        "07.3",
        "registers of a whole SM",
        2,
        ("gpu.registers_per_sm // gpu.warp_unit // of_warp", "gpu.registers_per_sm // of_warp"),
        ("gpu.warp_unit * of_quarter", "of_quarter"),
    ),
    (
        "07.3",
        "registers of a block, not of warps",
        2,
        "registers=33",
        ("gpu.warp_unit * of_quarter // of_block", "gpu.registers_per_sm // (registers * threads)"),
    ),
    (
        "07.3",
        "the driver's part forgotten",
        3,
        ("(shared + gpu.reserved_shared_bytes)", "shared"),
    ),
    ("07.3", "shared memory not in units", 3, "shared=13576", (TAKEN, "shared + gpu.reserved_shared_bytes")),
    ("07.3", "shared memory forgotten", 3, "shared=16384", ("if taken:", "if False:")),
    ("07.3", "division by nothing", 4, "ZeroDivisionError", ("if taken:", "if True:")),
    ("07.3", "limits of one GPU", 1, "4060", "threads=1024", ("gpu.warps_per_sm", "64")),
    (
        "07.3",
        "a word",
        1,
        "'64'",
        "64",
        ("min(blocks) * of_block", "str(min(blocks) * of_block)"),
    ),
    (
        "07.3",
        "labkit's own function, imported inside",
        1,
        YOUR_WORK,
        (
            "return min(blocks) * of_block",
            "from labkit.model.blocks_per_sm import Block\n"
            "    held = Block(gpu, threads, registers, shared)\n    return held.blocks * held.warps",
        ),
    ),
    (
        "07.3",
        "labkit's own function, imported outside",
        1,
        YOUR_WORK,
        ("def warps", "from simt import occupancy as held\n\ndef warps"),
        ("min(blocks) * of_block", "held(gpu, threads, registers, shared).warps"),
    ),
    ("07.3", "no limit of blocks", 1, "threads=32", "registers=16", (", gpu.blocks_per_sm]", "]")),
    ("07.4", "large blocks", 5, "4060", "66.7", ("TILE 16", "TILE 32")),
    ("07.4", "long rounds", 4, "50", "16", "32", ("ROUND 152", "ROUND 192")),
    (
        "07.4",
        "long rounds: why",
        4,
        "21760",
        ("ROUND 152", "ROUND 192"),
    ),
    ("07.4", "short rounds", 3, "38", "8", ("ROUND 152", "ROUND 32")),
    ("07.4", "rounds a little too long", 5, "4060", "66.7", ("ROUND 152", "ROUND 153")),
    ("07.4", "small tiles", 2, "10000", ("TILE 16", "TILE 8")),
    (
        "07.4",
        "no tiles at all",
        2,
        "16",
        (
            "sum += A_tile[y][k] * B_tile[k][x]",
            "if (k0 + k < K && row < M && col < N)\n"
            "                sum += A[row * K + k0 + k] * B[(k0 + k) * N + col]",
        ),
    ),
    (
        "07.4",
        "a launch that does not fit the kernel",
        1,
        "512",
        "`B_tile`",
        ("block (TILE, TILE)", "block (TILE, 8)"),
    ),
    ("07.4", "no launch", 1, ("// launch:", "//")),
    (
        "07.4",
        "a loop that ends too soon",
        1,
        ("int i = x; i < ROUND; i += TILE", "int i = x; i < TILE; i += TILE"),
        ("k < ROUND; ++k", "k < TILE; ++k"),
    ),
    (
        "07.4",
        "no second barrier",
        1,
        products.BARRIERS,
        ("        __syncthreads();\n    }", "    }"),
    ),
    (
        "07.5",
        "shared memory left out",
        3,
        lab_07.OF_SM,
        (", wavefronts)\n", ")\n"),
    ),
    (
        "07.5",
        "the parts one after the other",
        1,
        lab_07.OF_SM,
        ("max(instructions / 4, lines, wavefronts)", "instructions / 4 + lines + wavefronts"),
    ),
    ("07.5", "one scheduler", 1, lab_07.OF_SM, ("instructions / 4", "instructions")),
    ("07.5", "multiply-adds of threads", 1, lab_07.OF_SM, ("64 * fmas", "2 * fmas")),
    ("07.5", "GFLOP/s", 1, "1000", (" / 1e3", "")),
    ("07.5", "an H200 alone", 4, lab_07.OF_SM, ("sms * ghz", "132 * 1.98")),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


# exercise, how it differs, then what to replace in the solution
OTHERS = [
    ("07.1", "a list, in another order", (RATE, "return [operations / ms / 1e6, needed / ms / 1e6]")),
    ("07.1", "numbers of NumPy", (RATE, "return np.array([operations, needed]) / seconds / 1e9")),
    (
        "07.2",
        "tests in place of the guard",
        ("col < N ? B[k * N + col] : 0", "B[k * N + col]"),
        ("    float sum[4] = {};", "    if (col >= N) return;\n    float sum[4] = {};"),
    ),
    (
        "07.2",
        "four variables",
        ("    float sum[4] = {};", "    float s = 0, t = 0, u = 0, v = 0;"),
        (
            """        for (int i = 0; i < 4; ++i)
            if (first + 8 * i < M)
                sum[i] += A[(first + 8 * i) * K + k] * b;
""",
            """        if (first < M) s += A[first * K + k] * b;
        if (first + 8 < M) t += A[(first + 8) * K + k] * b;
        if (first + 16 < M) u += A[(first + 16) * K + k] * b;
        if (first + 24 < M) v += A[(first + 24) * K + k] * b;
""",
        ),
        (
            "    for (int i = 0; i < 4; ++i)\n        if",
            "    float sum[4] = {s, t, u, v};\n    for (int i = 0; i < 4; ++i)\n        if",
        ),
    ),
    (
        "07.3",
        "warps counted a quarter at a time, with ceil",
        ("    of_warp = -(-32 * registers // gpu.register_unit) * gpu.register_unit\n", "    import math\n"),
        (
            "gpu.registers_per_sm // gpu.warp_unit // of_warp",
            "16384 // (256 * math.ceil(registers / 8))",
        ),
    ),
    (
        "07.3",
        "an integer of NumPy",
        ("return min(blocks) * of_block", "return np.int64(min(blocks)) * of_block"),
    ),
    (
        "07.4",
        "constants in the place of macros",
        ("#define TILE 16", "constexpr int TILE = 16;"),
        ("#define ROUND 152", "const int ROUND = 9 * TILE + 6;"),
    ),
    ("07.4", "tiles of 20", ("TILE 16", "TILE 20"), ("ROUND 152", "ROUND 200")),
    (
        "07.5",
        "a list of clocks",
        ("max(instructions / 4, lines, wavefronts)", "max([wavefronts, lines, instructions / 4])"),
    ),
    (
        "07.5",
        "the least of three rates",
        (
            "clocks = max(instructions / 4, lines, wavefronts)",
            "rates = [1 / c for c in (instructions / 4, lines, wavefronts) if c]",
        ),
        ("64 * fmas / clocks", "64 * fmas * min(rates)"),
    ),
]


test_other_right_answers_pass = checks_of_other_answers(OTHERS)


def test_what_07_3_asks_for_is_what_labkit_occupancy_says():
    """Of every GPU in the table on which nothing but the four rules decides."""
    answer = function_of(judged_cell("07.3"))
    for each in gpus():
        for threads in (1, 32, 33, 96, 256, 768, 1024):
            for registers in (16, 31, 40, 65, 128, 255):
                for shared in (0, 1, 1000, 20000, min(48 * 1024, each.shared_bytes_per_block)):
                    held = occupancy(each, threads, registers, shared)
                    if held.launch__occupancy_limit_registers:
                        assert answer(each, threads, registers, shared) == held.warps, (each.name, held)


def judged_cell(exercise):
    return mutant(exercise).partition("\n")[2]


def test_a_check_of_07_3_is_on_edges_where_each_rule_counts():
    """Launches chosen so that a rule left out gives another number: each hint is told for its own reason."""
    assert occupancy(gpu("H200"), 96, 100).warps == 15  # 18 if the quarters of an SM shared their registers
    assert occupancy(gpu("RTX 4060"), 64, 32, 13576).warps == 12  # 14 without whole units of 128 bytes


def test_a_number_that_is_no_usual_mistake_gets_the_formula():
    assert lab_07._mistake(12345.6, lab_07._operations(7, 5, 3)) == lab_07.WORK
    with pytest.raises(Unmet, match=r"returns \(1, 'fast'\)\. Return two numbers"):
        lab_07._pair((1, "fast"), "rates(1, 1, 1, 1.0) returns")


def test_the_goal_of_07_2_lies_between_two_and_four_rows_a_thread():
    """A warp's step of k: one sector of A for each row, four of B; and the stores of K = 64 steps."""
    flop = {rows: 2 * 32 * rows / (32 * (rows + 4 + 4 * rows / 64)) for rows in (1, 2, 4)}
    assert flop[2] < lab_07.FLOP_A_BYTE < flop[4]
    assert labkit.check("07.2", labkit.kernels.load("matmul/1_naive")).failure
