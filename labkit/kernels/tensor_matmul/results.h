// results.h: rows of C that go through shared memory, COLS columns at a time (rungs 8 and 9)
constexpr int OUT_BYTES = sizeof(Out), COLS = 128 / OUT_BYTES, BUFFERS = TILE_N / COLS % 2 ? 1 : 2;
struct Results { Out C_tile[BUFFERS][64][COLS]; };  // of a warpgroup: threads write one, TMA reads the other
static_assert(STAGES * sizeof(Stage) + 2 * TILE_M * 128 + 1024 <= MOST_SHARED,
              "too large with the rows of C: choose fewer STAGES or a smaller tile");

// Have TMA write the 64 rows of C from row0, col0 on whose sums the warpgroup has, as far as they are inside.
__device__ void store_rows(
    Results& results, const CUtensorMap& C_map, const Out* C, int M, int N, int row0, int col0,
    const float (&sum)[TILE_N / 2], float alpha, float beta)
{
    int thread = threadIdx.x % 128, barrier = 1 + threadIdx.x / 128;
    int y = thread / 32 * 16 + thread % 32 / 4, x = thread % 4 * 2;  // the thread's first sum
    #pragma unroll
    for (int part = 0; part < TILE_N; part += COLS) {
        auto& C_tile = results.C_tile[part / COLS % BUFFERS];
        if (thread == 0)
            cp_async_bulk_wait_group_read<BUFFERS - 1>();  // TMA has read what lay here before
        bar_sync(barrier, 128);
        #pragma unroll
        for (int j = 0; j < COLS / 8; ++j)
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float* pair = &sum[part / 2 + 4 * j + 2 * i];
                int row = y + 8 * i, col = x + 8 * j, swizzled = col ^ row % 8 * (16 / OUT_BYTES);
                *(Pair*)&C_tile[row][swizzled] = scaled_pair(
                    C, M, N, row0 + row, col0 + part + col, pair[0], pair[1], alpha, beta);
            }
        fence_proxy_async();
        bar_sync(barrier, 128);  // the rows are complete before TMA reads them
        if (thread == 0) {
            cp_async_bulk_tensor_store(C_map, row0, col0 + part, C_tile);
            cp_async_bulk_commit_group();
        }
    }
}
