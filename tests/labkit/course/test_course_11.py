"""Checks of notebook 11: wrong pieces, places, phases and proxies fail for that reason; right ones pass."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

from labkit.course.exercises import lab_11

STARTERS = {
    "11.1": (1, "out[0, 0]", "0", lab_11.BY_WMMA.usual),
    "11.2": (3, "0", "256", "32", "8"),
    "11.3": (1, "16", lab_11.PHASES.race),
    "11.4": (1, lab_11.MENDED.race),
    "11.5": (1, "1", "0.666667", lab_11.FED_HINT),
}

test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)

LOOP = """    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, &A[row * K + k], K);
        wmma::load_matrix_sync(b, &B[col * K + k], K);
        wmma::mma_sync(sum, a, b, sum);
    }
"""
STORE = "    wmma::store_matrix_sync(&C[row * N + col], sum, N, wmma::mem_row_major);\n"
ONE_BY_ONE = """    __syncwarp();
    for (int e = threadIdx.x; e < 256; e += 32) {
        float each = 0;
        for (int k = 0; k < K; ++k)
            each += __half2float(A[(row + e / 16) * K + k]) * __half2float(B[(col + e % 16) * K + k]);
        C[(row + e / 16) * N + col + e % 16] = each;
    }
"""
PLACE = "return chunk ^ row % 8;"
LDMATRIX = "uint4* from = &tile[lane % 16][place(lane % 16, chunk + lane / 16)];"
EMPTY = "            while (!mbarrier_try_wait_parity(&empty[s], i / 2 % 2 ^ 1));\n"
FULL = "            while (!mbarrier_try_wait_parity(&full[s], i / 2 % 2));\n"
READ = "            out[64 * i + t] = tile[s][63 - t];\n            mbarrier_arrive(&empty[s]);\n"
DRAINED = "            cp_async_bulk_wait_group_read(n32_t<1>());\n"
WAIT = "        while (!mbarrier_try_wait_parity(&full[s], i / 2 % 2));\n"
TIMES = "        tile[s][t] *= 3;\n"
FENCE = "        fence_proxy_async(space_shared);\n"
MET = "        __syncthreads();\n"
LAST = "    cp_async_bulk_wait_group_read(n32_t<0>());\n"

WRONG = [
    ("11.1", "one round", 1, lab_11.BY_WMMA.usual, ("k < K; k += 16", "k < 16; k += 16")),
    ("11.1", "rows of N elements", 1, lab_11.BY_WMMA.usual, ("&B[col * K + k], K", "&B[col * K + k], N")),
    ("11.1", "sum not from zero", 1, "out[0, 0]", ("fill_fragment(sum, 0)", "fill_fragment(sum, 1)")),
    ("11.1", "A for B", 1, "out[0, 0]", ("&B[col * K + k]", "&A[col * K + k]")),
    ("11.1", "rows of B", 1, "out[0, 0]", ("half, wmma::col_major", "half, wmma::row_major")),
    (
        "11.1",
        "each round twice",
        1,
        "out[0, 0]",
        ("mma_sync(sum, a, b, sum);", "mma_sync(sum, a, b, sum);" * 2),
    ),
    ("11.1", "no tensor cores", 4, (LOOP, ""), (STORE, ONE_BY_ONE)),
    ("11.1", "at most 64 steps", 2, "K=160", ("k < K; k += 16", "k < min(K, 64); k += 16")),
    ("11.2", "the same place for 8 rows", 3, "256", "32", (PLACE, "return chunk ^ row / 8;")),
    ("11.2", "four places", 3, (PLACE, "return chunk ^ row % 4;")),
    ("11.2", "one place per row", 1, lab_11.IN_PLACE.twice, (PLACE, "return row % 8;")),
    ("11.2", "past the row", 1, lab_11.IN_PLACE.out_of_bounds, (PLACE, "return chunk ^ row;")),
    (
        "11.2",
        "padding",
        3,
        "2304",
        (PLACE, "return chunk;"),
        ("tile[16][8]", "tile[16][9]"),
    ),
    (
        "11.2",
        "written in place",
        1,
        lab_11.IN_PLACE.usual,
        ("[place(i / 8, i % 8)]", "[i % 8]"),
    ),
    ("11.3", "consumers do not wait", 1, lab_11.PHASES.race, (FULL, "")),
    ("11.3", "the producer does not wait", 2, lab_11.PHASES.sync, (EMPTY, "")),
    ("11.3", "always parity 0", 2, lab_11.PHASES.sync, ("&full[s], i / 2 % 2)", "&full[s], 0)")),
    ("11.3", "the step's parity", 1, lab_11.PHASES.sync, ("&full[s], i / 2 % 2)", "&full[s], i % 2)")),
    ("11.3", "waits for the next phase", 1, lab_11.PHASES.sync, ("i / 2 % 2 ^ 1", "i / 2 % 2")),
    (
        "11.3",
        "empty too early",
        3,
        lab_11.PHASES.race,
        (READ, "            mbarrier_arrive(&empty[s]);\n            out[64 * i + t] = tile[s][63 - t];\n"),
    ),
    ("11.3", "asks once", 4, (FULL, FULL.replace("while", "if"))),
    (
        "11.3",
        "past the stages",
        4,
        ("= tile[s][63 - t];", "= in[64 * i + 63 - t];"),
    ),
    ("11.4", "no fence", 1, lab_11.MENDED.race, (FENCE, "")),
    ("11.4", "always parity 0", 2, lab_11.PARITY, ("&full[s], i / 2 % 2)", "&full[s], 0)")),
    ("11.4", "no wait for what leaves", 3, lab_11.MENDED.race, (DRAINED, "")),
    ("11.4", "the fence before the work", 1, lab_11.MENDED.race, (TIMES + FENCE, FENCE + TIMES)),
    ("11.4", "no wait for what comes", 1, "racecheck", (WAIT, "")),
    ("11.4", "no barrier", 4, (FENCE + MET, FENCE)),
    ("11.4", "the last copy goes on", 4, (LAST, "")),
    (
        "11.4",
        "threads copy",
        4,
        (TIMES, "        tile[s][t] = 3 * in[32 * i + t];\n"),
    ),
    (
        "11.5",
        "no limit by the tensor cores",
        2,
        lab_11.FED_HINT,
        ("min(1, compute / bring)", "compute / bring"),
    ),
    ("11.5", "A alone", 1, lab_11.FED_HINT, ("(rows + cols) * size", "rows * size")),
    ("11.5", "elements, not bytes", 1, lab_11.FED_HINT, ("(rows + cols) * size", "(rows + cols)")),
    ("11.5", "the other way round", 1, lab_11.FED_HINT, ("compute / bring", "bring / compute")),
    ("11.5", "a truth value", 2, ("min(1,", "compute >= bring or min(1,")),
    (
        "11.5",
        "one after the other",
        1,
        lab_11.FED_HINT,
        ("compute / bring", "compute / (compute + bring)"),
    ),
]

INITS_FENCED = "    fence_mbarrier_init(sem_release, scope_cluster);  // TMA must see the mbarriers, too\n"
INIT_FENCED = ", fence_mbarrier_init(sem_release, scope_cluster)"
OTHERS = [
    ("11.1", "from the end", ("int k = 0; k < K; k += 16", "int k = K - 16; k >= 0; k -= 16")),
    ("11.2", "turned round", (PLACE, "return (chunk + row) % 8;")),
    ("11.2", "downwards", (PLACE, "return chunk ^ 7 - row % 8;")),
    ("11.3", "bits", ("i / 2 % 2 ^ 1", "!(i >> 1 & 1)")),
    ("11.3", "waits in the first round only where it must", (EMPTY, "            if (i > 1)\n    " + EMPTY)),
    ("11.3", "made of the cell as it was handed out until edition 3", (INITS_FENCED, "")),
    ("11.4", "made of the cell as it was handed out until edition 3", (INIT_FENCED, "")),
    ("11.4", "lanes of the warp meet", (FENCE + MET, FENCE + "        __syncwarp();\n")),
    ("11.4", "waits for all that leaves", ("n32_t<1>", "n32_t<0>")),
    ("11.5", "as a fraction", ("min(1, compute / bring)", "compute / max(compute, bring)")),
]

test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)
test_another_right_answer_passes = checks_of_other_answers(OTHERS)
