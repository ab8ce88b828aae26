"""Checks of notebook 11: wrong pieces, places, phases and proxies fail for that reason; right ones pass."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

STARTERS = {
    "11.1": ["out[0, 0] is 0; it should be", "In each round of 16 along K"],
    "11.2": ["bank conflicts; the goal is 0", "256 passes of 32 requests", "need 8 different places"],
    "11.3": ["before the copy of line 15 is complete", "after a wait for full[s]"],
    "11.4": ["through the asynchronous proxy", "needs fence_proxy_async before the barrier"],
    "11.5": ["most(64, 32, 2, 2048, 128) returns 1; it should be 0.666667", "The longer of the two times"],
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
    ("11.1", "one round", "sum begins at 0", ("k < K; k += 16", "k < 16; k += 16")),
    ("11.1", "rows of N elements", "&A[row * K + k]", ("&B[col * K + k], K", "&B[col * K + k], N")),
    ("11.1", "sum not from zero", "out[0, 0] is", ("fill_fragment(sum, 0)", "fill_fragment(sum, 1)")),
    ("11.1", "A for B", "out[0, 0] is", ("&B[col * K + k]", "&A[col * K + k]")),
    ("11.1", "rows of B", "out[0, 0] is", ("half, wmma::col_major", "half, wmma::row_major")),
    (
        "11.1",
        "each round twice",
        "out[0, 0] is",
        ("mma_sync(sum, a, b, sum);", "mma_sync(sum, a, b, sum);" * 2),
    ),
    ("11.1", "no tensor cores", "the tensor cores do 0 multiply-adds", (LOOP, ""), (STORE, ONE_BY_ONE)),
    ("11.1", "at most 64 steps", "K=160", ("k < K; k += 16", "k < min(K, 64); k += 16")),
    ("11.2", "the same place for 8 rows", "256 passes of 32 requests", (PLACE, "return chunk ^ row / 8;")),
    ("11.2", "four places", "bank conflicts; the goal is 0", (PLACE, "return chunk ^ row % 4;")),
    ("11.2", "one place per row", "must give each of 0 to 7 once", (PLACE, "return row % 8;")),
    ("11.2", "past the row", "The places of a row are 0 to 7", (PLACE, "return chunk ^ row;")),
    (
        "11.2",
        "padding",
        "the kernel takes 2304 bytes of shared memory",
        (PLACE, "return chunk;"),
        ("tile[16][8]", "tile[16][9]"),
    ),
    (
        "11.2",
        "written in place",
        "Write and read a chunk at the same place",
        ("[place(i / 8, i % 8)]", "[i % 8]"),
    ),
    ("11.3", "consumers do not wait", "is complete", (FULL, "")),
    ("11.3", "the producer does not wait", "phases pass before a consumer has seen them", (EMPTY, "")),
    ("11.3", "always parity 0", "The phases of an mbarrier", ("&full[s], i / 2 % 2)", "&full[s], 0)")),
    ("11.3", "the step's parity", "The phases of an mbarrier", ("&full[s], i / 2 % 2)", "&full[s], i % 2)")),
    ("11.3", "waits for the next phase", "parity 1", ("i / 2 % 2 ^ 1", "i / 2 % 2")),
    (
        "11.3",
        "empty too early",
        "The producer fills it again after a wait for empty[s]",
        (READ, "            mbarrier_arrive(&empty[s]);\n            out[64 * i + t] = tile[s][63 - t];\n"),
    ),
    ("11.3", "asks once", "may end early, with false", (FULL, FULL.replace("while", "if"))),
    (
        "11.3",
        "past the stages",
        "threads go to global memory themselves",
        ("= tile[s][63 - t];", "= in[64 * i + 63 - t];"),
    ),
    ("11.4", "no fence", "needs fence_proxy_async before the barrier", (FENCE, "")),
    ("11.4", "always parity 0", "names the parity", ("&full[s], i / 2 % 2)", "&full[s], 0)")),
    ("11.4", "no wait for what leaves", "cp_async_bulk_wait_group_read, in the thread", (DRAINED, "")),
    ("11.4", "the fence before the work", "fence_proxy_async", (TIMES + FENCE, FENCE + TIMES)),
    ("11.4", "no wait for what comes", "racecheck finds", (WAIT, "")),
    ("11.4", "no barrier", "while other threads may still change it", (FENCE + MET, FENCE)),
    ("11.4", "the last copy goes on", "while its last copy still reads", (LAST, "")),
    (
        "11.4",
        "threads copy",
        "threads go to global memory",
        (TIMES, "        tile[s][t] = 3 * in[32 * i + t];\n"),
    ),
    (
        "11.5",
        "no limit by the tensor cores",
        "it should be 1",
        ("min(1, compute / bring)", "compute / bring"),
    ),
    ("11.5", "A alone", "it should be 0.6666", ("(rows + cols) * size", "rows * size")),
    ("11.5", "elements, not bytes", "it should be 0.6666", ("(rows + cols) * size", "(rows + cols)")),
    ("11.5", "the other way round", "it should be 0.6666", ("compute / bring", "bring / compute")),
    ("11.5", "a truth value", "returns True; it should be 1", ("min(1,", "compute >= bring or min(1,")),
    (
        "11.5",
        "one after the other",
        "it should be 0.6666",
        ("compute / bring", "compute / (compute + bring)"),
    ),
]

OTHERS = [
    ("11.1", "from the end", ("int k = 0; k < K; k += 16", "int k = K - 16; k >= 0; k -= 16")),
    ("11.2", "turned round", (PLACE, "return (chunk + row) % 8;")),
    ("11.2", "downwards", (PLACE, "return chunk ^ 7 - row % 8;")),
    ("11.3", "bits", ("i / 2 % 2 ^ 1", "!(i >> 1 & 1)")),
    ("11.3", "waits in the first round only where it must", (EMPTY, "            if (i > 1)\n    " + EMPTY)),
    ("11.4", "lanes of the warp meet", (FENCE + MET, FENCE + "        __syncwarp();\n")),
    ("11.4", "waits for all that leaves", ("n32_t<1>", "n32_t<0>")),
    ("11.5", "as a fraction", ("min(1, compute / bring)", "compute / max(compute, bring)")),
]

test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)
test_another_right_answer_passes = checks_of_other_answers(OTHERS)
