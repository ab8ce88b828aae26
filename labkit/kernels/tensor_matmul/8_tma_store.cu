// tensor_matmul_8_tma_store.cu: C (M,N) = alpha A (M,K) B (N,K)^T + beta C, on the tensor cores
// idea: 7_cluster with C on the way back as A and B came: a warpgroup lays 64 rows of it out in shared memory, and
//       TMA writes them, whole lines at a time, while the warpgroup goes on with the next
// launch: block (2 * TILE_M + 128), grid (SMS / CLUSTER * CLUSTER); any M; rows of A, B and C of 16 n bytes
// tensor maps: A (TILE_M, TILE_K) swizzle 128, B (TILE_N / CLUSTER, TILE_K) swizzle 128, C_map (64, COLS) swizzle 128
// shared: STAGES * (TILE_M + TILE_N) * 128 + TILE_M * 2 * 128 + 1024
// needs: sm_90a
#ifndef DTYPE
#define DTYPE half
#endif
#ifndef TILE_M
#define TILE_M 128
#endif
#ifndef TILE_N
#define TILE_N 256
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef SMS  // multiprocessors of the GPU
#define SMS 132
#endif
#ifndef GROUP
#define GROUP 8
#endif
#ifndef CLUSTER
#define CLUSTER 2
#endif
#include "element.h"
#include "hopper.h"
constexpr int TILE_K = 128 / T_BYTES, STEP = 32 / T_BYTES;  // STEP: k of one instruction
constexpr int OUT_BYTES = sizeof(Out), COLS = 128 / OUT_BYTES;  // columns of C that go together
constexpr int PART = TILE_N / CLUSTER;  // rows of B that each block brings
constexpr int CONSUMERS = TILE_M / 64, THREADS = 128 * CONSUMERS + 128;  // warpgroups, each with 64 rows
static_assert(TILE_M % 64 == 0 && TILE_M <= 256, "choose 64, 128, 192 or 256 for TILE_M");
static_assert(TILE_N == 64 || TILE_N == 128 || TILE_N == 256, "choose 64, 128 or 256 for TILE_N");
static_assert(CLUSTER >= 1 && CLUSTER <= 8, "choose 1, 2, 4 or 8 for CLUSTER: the blocks of a cluster");
static_assert(TILE_N / CLUSTER % 8 == 0, "each block brings its part of B: choose CLUSTER to divide TILE_N / 8");
static_assert(STAGES >= 2, "choose at least 2 STAGES: one is multiplied while others come");
// Each thread of a block begins with REGISTERS. The producer gives most of its own to the consumers.
constexpr int REGISTERS = 65536 / THREADS / 8 * 8, PRODUCER_REGISTERS = 40, GIVEN = REGISTERS - PRODUCER_REGISTERS;
constexpr int CONSUMER_REGISTERS = CONSUMERS == 1 ? 232 : (REGISTERS + GIVEN / CONSUMERS) / 8 * 8;
struct Stage { T A_tile[TILE_M][TILE_K], B_tile[TILE_N][TILE_K]; };
struct Results { Out C_tile[2][64][COLS]; };  // of a warpgroup: one is written by TMA, one by the threads

struct Tile { int row, col; };

// Return the tile that a cluster takes as number `turn`: CLUSTER tiles of C below each other. GROUP rows of tiles are worked through
// together, column by column: the tiles taken at a time form a square, and need few rows of A and B.
__device__ Tile tile_of(int turn, int rows, int cols)
{
    int above = turn / (GROUP * cols) * GROUP, height = min(GROUP, rows - above), within = turn - above * cols;
    return {above + within % height, within / height};
}

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1) tensor_matmul(
    const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, Out* C,
    int M, int N, int K, float alpha, float beta, const __grid_constant__ CUtensorMap C_map)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    Stage* stages = (Stage*)memory;
    Results* results = (Results*)&stages[STAGES];
    uint64_t* full = (uint64_t*)&results[CONSUMERS];  // whose phases end when a stage's tiles are there
    uint64_t* empty = &full[STAGES];  // and when every consumer warp has multiplied them
    int rows = (M + CLUSTER * TILE_M - 1) / (CLUSTER * TILE_M), cols = (N + TILE_N - 1) / TILE_N;  // of tiles of C
    int block = blockIdx.x % CLUSTER;  // of the cluster
    int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32;
    int y = threadIdx.x / 32 % 4 * 16 + lane / 4, x = lane % 4 * 2;  // the thread's first sum in its 64 rows
    int steps = (K + TILE_K - 1) / TILE_K;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            mbarrier_init(&full[i], 1);
            mbarrier_init(&empty[i], 4 * CONSUMERS * CLUSTER);
        }
        fence_mbarrier_init();
    }
    barrier_cluster();  // the barriers are there before anyone waits at them

    if (warpgroup == CONSUMERS) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        int count = 0;  // steps of all tiles: the stages go round from tile to tile
        for (int turn = blockIdx.x / CLUSTER; threadIdx.x % 128 == 0 && turn < rows * cols; turn += gridDim.x / CLUSTER) {
            Tile tile = tile_of(turn, rows, cols);
            for (int step = 0; step < steps; ++step, ++count) {
                Stage& stage = stages[count % STAGES];
                uint64_t* barrier = &full[count % STAGES];
                mbarrier_wait(&empty[count % STAGES], count / STAGES % 2 ^ 1);  // at first, at once
                mbarrier_arrive_expect_tx(barrier, sizeof(Stage));
                cp_async_bulk_tensor(stage.A_tile, A, (tile.row * CLUSTER + block) * TILE_M, step * TILE_K, barrier);
                cp_async_bulk_tensor_multicast(
                    stage.B_tile[block * PART], B, tile.col * TILE_N + block * PART, step * TILE_K, barrier,
                    (1 << CLUSTER) - 1);
            }
        }
        barrier_cluster();
        return;
    }
    setmaxnreg_inc<CONSUMER_REGISTERS>();
    float sum[TILE_N / 2];
    int count = 0;
    for (int turn = blockIdx.x / CLUSTER; turn < rows * cols; turn += gridDim.x / CLUSTER) {
        for (int step = 0; step < steps; ++step, ++count) {
            Stage& stage = stages[count % STAGES];
            mbarrier_wait(&full[count % STAGES], count / STAGES % 2);
            wgmma_fence();
            #pragma unroll
            for (int k = 0; k < TILE_K; k += STEP)
                wgmma(sum, descriptor(&stage.A_tile[64 * warpgroup][k]), descriptor(&stage.B_tile[0][k]), step + k);
            wgmma_commit_group();
            wgmma_wait_group<1>();  // the tensor cores go on with this step when the one before is done
            if (lane < CLUSTER && step > 0)
                mbarrier_arrive_cluster(&empty[(count - 1) % STAGES], lane);  // all blocks wrote to this stage
        }
        wgmma_wait_all(sum);
        if (lane < CLUSTER)
            mbarrier_arrive_cluster(&empty[(count - 1) % STAGES], lane);

        Tile tile = tile_of(turn, rows, cols);
        int row0 = (tile.row * CLUSTER + block) * TILE_M + 64 * warpgroup;
        #pragma unroll
        for (int col = 0; col < TILE_N; col += COLS) {
            auto& C_tile = results[warpgroup].C_tile[col / COLS % 2];
            int col0 = tile.col * TILE_N + col;
            if (threadIdx.x % 128 == 0)
                cp_async_bulk_wait_group_read<1>();  // TMA has read what the tile held before
            bar_sync(1 + warpgroup, 128);
            #pragma unroll
            for (int j = 0; j < COLS / 8; ++j)
                #pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float* pair = &sum[col / 2 + 4 * j + 2 * i];
                    int row = y + 8 * i, at = (x + 8 * j) ^ row % 8 * (16 / OUT_BYTES);  // swizzled
                    *(Pair*)&C_tile[row][at] = scaled_pair(
                        C, M, N, row0 + row, col0 + x + 8 * j, pair[0], pair[1], alpha, beta);
                }
            fence_proxy_async();
            bar_sync(1 + warpgroup, 128);  // the tile is complete before TMA reads it
            if (threadIdx.x % 128 == 0) {
                cp_async_bulk_tensor_store(C_map, row0, col0, C_tile);
                cp_async_bulk_commit_group();
            }
        }
    }
    if (threadIdx.x % 128 == 0)
        cp_async_bulk_wait_group_read<0>();  // shared memory is there until TMA has read it
    barrier_cluster();  // no block ends while others still arrive at its barriers
}
