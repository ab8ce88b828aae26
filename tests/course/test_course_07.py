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
from labkit.core.occupancy import gpu, gpus, occupancy
from labkit.course.exercise import Unmet
from labkit.course.exercises import lab_07

STARTERS = {
    "07.1": [
        "✗ GFLOP/s of square products",
        "rates(1024, 1024, 1024, 1.0) returns 2.048e-06 GFLOP/s; it should be 2147.48.",
        "That is 2 N over the time: but the work grows with the cube of the side.",
        "It is 1000 times too small. ms is a time in milliseconds",
    ],
    "07.2": [
        "✓ right for the right reason",
        "0.40 FLOP per byte; the goal is at least 0.9",
        "15 | sum += A[row * K + k] * B[k * N + col];    40960 sectors",
        "the loop over the rows stands inside that over k",
    ],
    "07.3": [
        "✓ limited by warp slots or by blocks",
        "warps(H200, threads=256, registers=128, shared=0) returns 64; it should be 16.",
        "A block has 8 warps. Blocks that fit an SM: 2 by registers,",
    ],
    "07.4": [
        "✓ at least 75 % occupancy on T4",
        "RTX 4060: 66.7 % occupancy, 32 of 48 warps",
        "A block has 1024 threads",
        "Blocks that fit an SM: 1 by registers, 2 by shared memory, 1 by warps, 24 by blocks.",
        "With 768 threads it would be 100 %.",
    ],
    "07.5": [
        "✓ limited by issue slots",
        "lowest(1, 4.61, 2, 0, 132, 1.98) returns",
        "its L1 cache looks up one line",
    ],
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)

RATE = "return operations / seconds / 1e9, needed / seconds / 1e9"
NEEDED = "4 * (M * K + K * N + M * N)"
WARP = "-(-32 * registers // gpu.register_unit) * gpu.register_unit"
TAKEN = "-(-(shared + gpu.reserved_shared_bytes) // gpu.shared_unit) * gpu.shared_unit"
SUMS = "    for (int k = 0; k < K; ++k) {"

# exercise, what is wrong, words of the answer, then what to replace in the solution
WRONG = [
    (
        "07.1",
        "ms taken for seconds",
        "It is 1000 times too small. ms is a time in milliseconds",
        (" / 1000", ""),
    ),
    ("07.1", "multiply-adds", "A multiply-add is two operations", ("2 * M", "M")),
    ("07.1", "the report's formula", "That is 2 N over the time", ("2 * M * N * K", "2 * N")),
    ("07.1", "one addition fewer", "Count K additions", ("2 * M * N * K", "M * N * (2 * K - 1)")),
    ("07.1", "cubes only", "takes all three sizes to be N", ("2 * M * N * K", "2 * N**3")),
    ("07.1", "elements of C", "Each of them is a sum of K products", ("2 * M * N * K", "2 * M * N")),
    (
        "07.1",
        "TFLOP/s",
        "It is 1000 times too small",
        ("operations / seconds / 1e9", "operations / seconds / 1e12"),
    ),
    (
        "07.1",
        "whole numbers",
        "It is rounded",
        (RATE, "return round(operations / seconds / 1e9), needed / seconds / 1e9"),
    ),
    ("07.1", "it exits", "SystemExit: 3", (RATE, "raise SystemExit(3)")),
    ("07.1", "GiB/s", "1 GB is 10^9 bytes, not 2^30", ("needed / seconds / 1e9", "needed / seconds / 2**30")),
    ("07.1", "elements, not bytes", "A float32 has 4 bytes", (NEEDED, "(M * K + K * N + M * N)")),
    ("07.1", "C left out", "C is part of it: it is written once", (NEEDED, "4 * (M * K + K * N)")),
    ("07.1", "C read, too", "C is written and not read", (NEEDED, "4 * (M * K + K * N + 2 * M * N)")),
    ("07.1", "all that naive reads", "is needed once", (NEEDED, "8 * M * N * K")),
    ("07.1", "square matrices", "A is M x K", (NEEDED, "12 * N * N")),
    ("07.1", "doubles", "Work over time", (NEEDED, "8 * (M * K + K * N + M * N)")),
    (
        "07.1",
        "one number",
        "Return two numbers: GFLOP/s, then GB/s",
        (RATE, "return operations / seconds / 1e9"),
    ),
    ("07.1", "nothing", "returns None", (RATE, "print(operations / seconds / 1e9)")),
    (
        "07.1",
        "words",
        "Return two numbers",
        (RATE, "return str(operations / seconds / 1e9), str(needed / seconds / 1e9)"),
    ),
    (
        "07.1",
        "the two exchanged",
        "return GFLOP/s first",
        (RATE, "return needed / seconds / 1e9, operations / seconds / 1e9"),
    ),
    (
        "07.1",
        "hard-coded",
        "rates(680, 680, 680, 0.154) returns",
        ("operations = 2 * M * N * K", "operations = 2**31"),
    ),
    (
        "07.2",
        "two rows",
        "0.65 FLOP per byte",
        (SUMS, "    for (int h = 0; h < 4; h += 2) for (int k = 0; k < K; ++k) {"),
        ("int i = 0; i < 4; ++i)\n            if", "int i = h; i < h + 2; ++i)\n            if"),
    ),
    (
        "07.2",
        "sums in memory",
        "FLOP per byte; the goal is at least 0.9",
        ("                sum[i] +=", "                C[(first + 8 * i) * N + col] = sum[i] +="),
        ("if (first + 8 * i < M)\n", "if (first + 8 * i < M && col < N)\n"),
    ),
    (
        "07.2",
        "together at one size alone",
        "M=32 N=96 K=40 float32, blocks of 32 x 8: 0.39 FLOP per byte",
        (SUMS, "    for (int h = 0; h < 4; h += M == 64 ? 4 : 1) for (int k = 0; k < K; ++k) {"),
        (
            "int i = 0; i < 4; ++i)\n            if",
            "int i = h; i < (M == 64 ? 4 : h + 1); ++i)\n            if",
        ),
    ),
    ("07.2", "one sum for all", "with a sum of its own", ("sum[i]", "sum[0]")),
    ("07.2", "neighbouring rows", "the rows y, y + 8, y + 16 and y + 24", ("8 * i", "i")),
    ("07.2", "no guard of the rows", "invalid global read", ("            if (first + 8 * i < M)\n", "")),
    (
        "07.2",
        "no guard of the columns",
        "columns from N on",
        ("col < N ? B[k * N + col] : 0", "B[k * N + col]"),
    ),
    ("07.2", "only the first row", "is nan", ("i < 4; ++i)\n        if", "i < 1; ++i)\n        if")),
    (
        "07.2",
        "returns early where a row is missing",
        "M=1 N=1 K=1",
        ("    float sum[4] = {};", "    if (first + 24 >= M || col >= N) return;\n    float sum[4] = {};"),
    ),
    (
        "07.2",
        "B loaded again for each row",
        "0.40 FLOP per byte; the goal is at least 0.9",
        ("        float b = col < N ? B[k * N + col] : 0;\n", ""),
        ("if (first + 8 * i < M)\n", "if (first + 8 * i < M && col < N)\n"),
        ("+ k] * b", "+ k] * B[k * N + col]"),
    ),
    (
        "07.3",
        "threads in place of warps",
        "it should be",
        ("min(blocks) * of_block", "min(blocks) * threads // 32"),
    ),
    ("07.3", "blocks returned", "returns 8; it should be 64", ("min(blocks) * of_block", "min(blocks)")),
    (
        "07.3",
        "no whole blocks",
        "it should be",
        ("gpu.warps_per_sm // of_block", "gpu.warps_per_sm / of_block"),
    ),
    ("07.3", "registers not in units", "rounded up to whole units", (WARP, "32 * registers")),
    (
        "07.3",
        "registers of a whole SM",
        "Each sub-partition of an SM",
        ("gpu.registers_per_sm // gpu.warp_unit // of_warp", "gpu.registers_per_sm // of_warp"),
        ("gpu.warp_unit * of_quarter", "of_quarter"),
    ),
    (
        "07.3",
        "registers of a block, not of warps",
        "registers=33",
        ("gpu.warp_unit * of_quarter // of_block", "gpu.registers_per_sm // (registers * threads)"),
    ),
    (
        "07.3",
        "the driver's part forgotten",
        "The driver's bytes",
        ("(shared + gpu.reserved_shared_bytes)", "shared"),
    ),
    ("07.3", "shared memory not in units", "shared=13576", (TAKEN, "shared + gpu.reserved_shared_bytes")),
    ("07.3", "shared memory forgotten", "shared=16384", ("if taken:", "if False:")),
    ("07.3", "division by nothing", "ZeroDivisionError", ("if taken:", "if True:")),
    ("07.3", "limits of one GPU", "RTX 4060, threads=1024", ("gpu.warps_per_sm", "64")),
    (
        "07.3",
        "a word",
        "returns '64'; it should be 64",
        ("min(blocks) * of_block", "str(min(blocks) * of_block)"),
    ),
    (
        "07.3",
        "labkit's own function, imported inside",
        "has labkit work it out, by its function blocks",
        (
            "return min(blocks) * of_block",
            "from labkit.model.blocks_per_sm import Block\n"
            "    held = Block(gpu, threads, registers, shared)\n    return held.blocks * held.warps",
        ),
    ),
    (
        "07.3",
        "labkit's own function, imported outside",
        "has labkit work it out, by its function occupancy",
        ("def warps", "from labkit.occupancy import occupancy as held\n\ndef warps"),
        ("min(blocks) * of_block", "held(gpu, threads, registers, shared).warps"),
    ),
    ("07.3", "no limit of blocks", "threads=32, registers=16", (", gpu.blocks_per_sm]", "]")),
    ("07.4", "large blocks", "RTX 4060: 66.7 %", ("TILE 16", "TILE 32")),
    ("07.4", "long rounds", "T4: 50 % occupancy, 16 of 32 warps", ("ROUND 152", "ROUND 192")),
    (
        "07.4",
        "long rounds: why",
        "The limit is shared memory. With at most 21760 bytes",
        ("ROUND 152", "ROUND 192"),
    ),
    ("07.4", "short rounds", "a warp comes to 38 barriers; the goal is at most 8", ("ROUND 152", "ROUND 32")),
    ("07.4", "rounds a little too long", "RTX 4060: 66.7 %", ("ROUND 152", "ROUND 153")),
    ("07.4", "small tiles", "the goal is at most 10000", ("TILE 16", "TILE 8")),
    (
        "07.4",
        "no tiles at all",
        "keep tiles of at least 16 x 16",
        (
            "sum += A_tile[y][k] * B_tile[k][x]",
            "if (k0 + k < K && row < M && col < N)\n"
            "                sum += A[row * K + k0 + k] * B[(k0 + k) * N + col]",
        ),
    ),
    (
        "07.4",
        "a launch that does not fit the kernel",
        "reads byte 512 of shared `B_tile`",
        ("block (TILE, TILE)", "block (TILE, 8)"),
    ),
    ("07.4", "no launch", "No line says how the kernel is launched", ("// launch:", "//")),
    (
        "07.4",
        "a loop that ends too soon",
        "The sum ends early",
        ("int i = x; i < ROUND; i += TILE", "int i = x; i < TILE; i += TILE"),
        ("k < ROUND; ++k", "k < TILE; ++k"),
    ),
    (
        "07.4",
        "no second barrier",
        "everyone has read them before anyone overwrites them",
        ("        __syncthreads();\n    }", "    }"),
    ),
    (
        "07.5",
        "shared memory left out",
        "its shared memory delivers one wavefront",
        (", wavefronts)\n", ")\n"),
    ),
    (
        "07.5",
        "the parts one after the other",
        "The part that needs most clocks decides",
        ("max(instructions / 4, lines, wavefronts)", "instructions / 4 + lines + wavefronts"),
    ),
    ("07.5", "one scheduler", "issues 4 instructions", ("instructions / 4", "instructions")),
    ("07.5", "multiply-adds of threads", "A multiply-add of a warp is 64 FLOP", ("64 * fmas", "2 * fmas")),
    ("07.5", "GFLOP/s", "It is 1000 times too large: mind the units", (" / 1e3", "")),
    ("07.5", "an H200 alone", "should be", ("sms * ghz", "132 * 1.98")),
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
