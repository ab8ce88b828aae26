"""Checks of 11 and 11b: wrong pieces, places, phases and proxies fail for that reason; right ones pass."""

from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters

from labkit.course.exercises import lab_11

STARTERS = {
    "11.1": (1, "out[0, 0]", "0", lab_11.BY_WMMA.usual),
    "11.2": (3, "0", "256", "32", "8"),
    "11.3": (1, "16", lab_11.PHASES.race),
    "11.4": (1, lab_11.MENDED.race),
    "11.5": (1, "1", "0.666667", lab_11.FED_HINT),
    "11.6": (1, "0", lab_11.DESCRIPTOR),
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

PROXY_6, FENCE_6, COMMIT_6, WAIT_6 = (
    f"        {name};\n"
    for name in ("fence_proxy_async()", "wgmma_fence(sum)", "wgmma_commit_group()", "wgmma_wait_all(sum)")
)
MET_6, END_6 = f"{PROXY_6}        __syncthreads();\n", f"{WAIT_6}        __syncthreads();\n"
STEPS_6 = """        for (int k = 0; k < 4; ++k)
            wgmma(sum, a + 2 * k, b + 2 * k);
"""
STEP_6, ALONG_6, ROWS_6 = (
    "wgmma(sum, a + 2 * k, b + 2 * k);",
    "k0 < K; k0 += 64",
    "1ull << 62 | 1024ull / 16 << 32",
)
FIRST_6, ELEMENT_6 = (
    "t / 32 * 16 + t % 32 / 4",
    "C[(row + i / 2 % 2 * 8) * N + col + i / 4 * 8 + i % 2] = sum[i];",
)
STORES_6 = f"    for (int i = 0; i < 8; ++i)\n        {ELEMENT_6}\n"
BY_THREADS_6 = """    for (int i = 0; i < 8; ++i) {
        float each = 0;
        for (int k = 0; k < K; ++k)
            each += __half2float(A[(row + i / 2 % 2 * 8) * K + k])
                    * __half2float(B[(col + i / 4 * 8 + i % 2) * K + k]);
        C[(row + i / 2 % 2 * 8) * N + col + i / 4 * 8 + i % 2] = each;
    }
"""
# The lane's four registers of A and two of B, straight from global memory.
MMA_6 = """        for (int k = k0; k < k0 + 64; k += 16)
            for (int j = 0; j < 2; ++j) {
                float* s = &sum[4 * j];
                const half* from_a = &A[(row0 + t / 32 * 16 + t % 32 / 4) * K + k + t % 4 * 2];
                const half* from_b = &B[(col0 + 8 * j + t % 32 / 4) * K + k + t % 4 * 2];
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3},"
                             " {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                             : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                             : "r"(*(unsigned*)from_a), "r"(*(unsigned*)(from_a + 8 * K)),
                               "r"(*(unsigned*)(from_a + 8)), "r"(*(unsigned*)(from_a + 8 * K + 8)),
                               "r"(*(unsigned*)from_b), "r"(*(unsigned*)(from_b + 8)));
            }
"""

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
    ("11.6", "no proxy fence", 1, lab_11.OF_WGMMA["missing proxy fence"], (PROXY_6, "")),
    (
        "11.6",
        "the proxy fence in one warp",
        1,
        lab_11.OF_WGMMA["missing proxy fence"],
        (PROXY_6, f"        if (t < 32){PROXY_6[7:]}"),
    ),
    ("11.6", "no barrier before wgmma", 1, lab_11.ROUNDS, (MET_6, PROXY_6)),
    ("11.6", "no fence", 5, lab_11.FENCED, "0", "12", (FENCE_6, "")),
    ("11.6", "the fence behind wgmma", 5, lab_11.FENCED, (FENCE_6, ""), (COMMIT_6, FENCE_6 + COMMIT_6)),
    (
        "11.6",
        "the fence in one warp",
        5,
        lab_11.FENCED,
        "3",
        "12",
        (FENCE_6, f"        if (t < 32){FENCE_6[7:]}"),
    ),
    (
        "11.6",
        "no fence in the first round",
        5,
        lab_11.FENCED,
        "0",
        "4",
        (FENCE_6, f"        if (k0 > 0){FENCE_6[7:]}"),
    ),
    ("11.6", "no commit", 1, lab_11.OF_WGMMA["read before wgmma completes"], (COMMIT_6, "")),
    ("11.6", "no wait", 1, lab_11.OF_WGMMA["read before wgmma completes"], (WAIT_6, "")),
    (
        "11.6",
        "neither commit nor wait",
        1,
        lab_11.OF_WGMMA["read before wgmma completes"],
        (COMMIT_6 + WAIT_6, ""),
    ),
    (
        "11.6",
        "a wait behind the loop alone",
        3,
        lab_11.ROUNDS,
        (WAIT_6, ""),
        ("    int row = ", "    wgmma_wait_all(sum);\n    int row = "),
    ),
    (
        "11.6",
        "sums that begin anywhere",
        1,
        lab_11.OF_WGMMA["unset variable"],
        ("float sum[8] = {};", "float sum[8];"),
    ),
    ("11.6", "bytes in a descriptor", 1, lab_11.DESCRIPTOR, (ROWS_6, "1ull << 62 | 1024ull << 32")),
    ("11.6", "no swizzle", 1, lab_11.DESCRIPTOR, (ROWS_6, "1024ull / 16 << 32")),
    ("11.6", "the swizzle of 64 bytes", 1, lab_11.DESCRIPTOR, (ROWS_6, "2ull << 62 | 1024ull / 16 << 32")),
    ("11.6", "groups of 4 rows", 1, "512", lab_11.DESCRIPTOR, ("1024ull", "512ull")),
    ("11.6", "the same piece four times", 1, lab_11.NOT_ALONG, (STEP_6, "wgmma(sum, a, b);")),
    ("11.6", "16 bytes further", 1, lab_11.BY_WGMMA.usual, (STEP_6, "wgmma(sum, a + k, b + k);")),
    (
        "11.6",
        "32 further, not 32 bytes",
        1,
        lab_11.DESCRIPTOR,
        (STEP_6, "wgmma(sum, a + 32 * k, b + 32 * k);"),
    ),
    ("11.6", "A alone goes along", 1, lab_11.BY_WGMMA.usual, (STEP_6, "wgmma(sum, a + 2 * k, b);")),
    ("11.6", "one wgmma per tile", 1, lab_11.ONCE_PER_TILE, ("k < 4;", "k < 1;")),
    ("11.6", "three wgmma per tile", 1, lab_11.BY_WGMMA.usual, ("k < 4;", "k < 3;")),
    ("11.6", "A and B exchanged", 1, lab_11.DESCRIPTOR, (STEP_6, "wgmma(sum, b + 2 * k, a + 2 * k);")),
    (
        "11.6",
        "sums anew in each round",
        2,
        lab_11.ANEW,
        (FENCE_6, f"        for (float& s : sum) s = 0;\n{FENCE_6}"),
    ),
    ("11.6", "the last tile of K missing", 1, lab_11.BY_WGMMA.usual, (ALONG_6, "k0 + 64 < K; k0 += 64")),
    ("11.6", "128 steps of K at most", 2, lab_11.ENDS, (ALONG_6, "k0 < min(K, 128); k0 += 64")),
    ("11.6", "the first tile of K alone", 2, lab_11.BEGINS, (ALONG_6, "k0 < 64; k0 += 64")),
    (
        "11.6",
        "8 rows below and 8 columns to the right exchanged",
        1,
        lab_11.PLACES,
        ("i / 2 % 2 * 8) * N + col + i / 4 * 8", "i / 4 * 8) * N + col + i / 2 % 2 * 8"),
    ),
    (
        "11.6",
        "lanes down the columns",
        1,
        lab_11.PLACES,
        (FIRST_6, "t / 32 * 16 + t % 8"),
        ("t % 4 * 2;", "t % 32 / 8 * 2;"),
    ),
    (
        "11.6",
        "as the rows of a thread",
        1,
        lab_11.PLACES,
        (ELEMENT_6, "C[(row0 + t / 2) * N + col0 + t % 2 * 8 + i] = sum[i];"),
    ),
    ("11.6", "warps upside down", 1, lab_11.PLACES, (FIRST_6, "(3 - t / 32) * 16 + t % 32 / 4")),
    ("11.6", "four of a thread's sums", 1, lab_11.UNSTORED, ("i < 8; ++i", "i < 4; ++i")),
    ("11.6", "the same rows in each warp", 1, lab_11.UNSTORED, (FIRST_6, "t % 32 / 4")),
    ("11.6", "the sums of CUDA cores", 4, "0", "589824", (STEPS_6, ""), (STORES_6, BY_THREADS_6)),
    ("11.6", "mma instead of wgmma", 4, "0", "589824", (STEPS_6, MMA_6)),
    ("11.6", "sums overwritten by CUDA cores", 4, lab_11.NOT_TWICE, (STORES_6, STORES_6 + BY_THREADS_6)),
    (
        "11.6",
        "each wgmma twice, and half of it",
        4,
        "1179648",
        (STEP_6, f"{{ {STEP_6} {STEP_6} }}"),
        ("= sum[i];", "= sum[i] / 2;"),
    ),
    ("11.6", "a constant", 1, lab_11.BY_WGMMA.usual, ("= sum[i];", "= 0;")),
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
    (
        "11.6",
        "one fence, before the loop",
        (FENCE_6, ""),
        ("    for (int k0", f"{FENCE_6[4:]}    for (int k0"),
    ),
    ("11.6", "a group per wgmma", (STEP_6, f"{{ {STEP_6} wgmma_commit_group(); }}"), (COMMIT_6, "")),
    (
        "11.6",
        "descriptors anew for each step, by a function",
        (
            'extern "C"',
            """__device__ size_t descriptor(const void* at) {
    return (__cvta_generic_to_shared(at) & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
extern "C\"""",
        ),
        (STEP_6, "wgmma(sum, descriptor(&A_tile[0][2 * k]), descriptor(&B_tile[0][2 * k]));"),
    ),
    (
        "11.6",
        "sums of a round, added by threads",
        ("    float sum[8] = {};\n    for (int k0", "    float total[8] = {};\n    for (int k0"),
        (FENCE_6, f"        float sum[8] = {{}};\n{FENCE_6}"),
        (
            END_6,
            f"{WAIT_6}        for (int i = 0; i < 8; ++i)\n            total[i] += sum[i];\n"
            "        __syncthreads();\n",
        ),
        ("i % 2] = sum[i];", "i % 2] = total[i];"),
    ),
    ("11.6", "the proxy fence behind the barrier", (MET_6, f"        __syncthreads();\n{PROXY_6}")),
    # The four warps multiply together: once the wait is over, each has read.
    ("11.6", "no barrier behind the wait", (END_6, WAIT_6)),
    (
        "11.6",
        "tiles without a swizzle: the chunks of a column one below the other",
        ("A_tile[64][8], B_tile[16][8]", "A_tile[8][64], B_tile[8][16]"),
        ("A_tile[i / 8][i % 8 ^ i / 8 % 8]", "A_tile[i % 8][i / 8]"),
        ("B_tile[t / 8][t % 8 ^ t / 8 % 8]", "B_tile[t % 8][t / 8]"),
        (ROWS_6, "128ull / 16 << 32"),
        ("shared(A_tile) / 16", "shared(A_tile) / 16 | 1024 / 16 << 16"),
        ("shared(B_tile) / 16", "shared(B_tile) / 16 | 256 / 16 << 16"),
        (STEP_6, "wgmma(sum, a + 2 * 1024 / 16 * k, b + 2 * 256 / 16 * k);"),
    ),
    (
        "11.6",
        "two stages: the next tiles come while wgmma works",
        ("A_tile[64][8], B_tile[16][8];", "A_tiles[2][64][8], B_tiles[2][16][8];"),
        (
            "        for (int i = t;",
            "        auto A_tile = A_tiles[k0 / 64 % 2], B_tile = B_tiles[k0 / 64 % 2];\n"
            "        for (int i = t;",
        ),
        (END_6, ""),
        (MET_6, f"{PROXY_6}{END_6}"),
        ("    int row = ", "    wgmma_wait_all(sum);\n    int row = "),
    ),
    (
        "11.6",
        "pairs of sums, and steps along K from the end",
        ("int k = 0; k < 4; ++k", "int k = 3; k >= 0; --k"),
        ("i < 8; ++i", "i < 8; i += 2"),
        (
            ELEMENT_6,
            "*(float2*)&C[(row + (i & 2) * 4) * N + col + (i & 4) * 2] = make_float2(sum[i], sum[i + 1]);",
        ),
    ),
    (
        "11.6",
        "through shared memory to C",
        (
            STORES_6,
            "    __shared__ float out[64][17];\n    for (int i = 0; i < 8; ++i)\n"
            "        out[row - row0 + i / 2 % 2 * 8][col - col0 + i / 4 * 8 + i % 2] = sum[i];\n"
            "    __syncthreads();\n    for (int i = t; i < 64 * 16; i += 128)\n"
            "        C[(row0 + i / 16) * N + col0 + i % 16] = out[i / 16][i % 16];\n",
        ),
    ),
    (
        "11.6",
        "the first wgmma begins at 0",
        (" = {};\n    for (int k0", ";\n    for (int k0"),
        ("size_t b) {  //", "size_t b, int add) {  //"),
        ('asm volatile("wgmma.mma', 'asm volatile("{ .reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma'),
        (
            '%9, 1, 1, 1, 0, 0;" : SUMS : "l"(a), "l"(b) :',
            '%9, p, 1, 1, 0, 0; }" : SUMS : "l"(a), "l"(b), "r"(add) :',
        ),
        (STEP_6, "wgmma(sum, a + 2 * k, b + 2 * k, k0 + k);"),
        ("wgmma_fence(sum)", 'asm volatile("wgmma.fence.sync.aligned;" ::: "memory")'),
    ),
    ("11.5", "as a fraction", ("min(1, compute / bring)", "compute / max(compute, bring)")),
]

test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)
test_another_right_answer_passes = checks_of_other_answers(OTHERS)
