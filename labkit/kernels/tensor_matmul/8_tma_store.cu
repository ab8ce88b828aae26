// tensor_matmul_8_tma_store.cu: C (M,N) = alpha A (M,K) B (N,K)^T + beta C, on the tensor cores
// idea: 7_cluster with C on the way back as A and B came: each warpgroup lays rows out in shared memory, and
//       TMA writes them, in whole lines and up to the edges, while the warpgroup goes on
// launch: block (2*TILE_M + 128), grid (SMS / CLUSTER * CLUSTER); any M; rows of A, B, C of 16 n bytes
// tensor maps: A (TILE_M, TILE_K) swizzle 128, B (PART, TILE_K) swizzle 128, C_map (64, COLS) swizzle 128
// shared: STAGES * (TILE_M + TILE_N) * 128 + 2 * TILE_M * 128 + 1024
// needs: sm_90a
// small: TILE_M=64 TILE_N=64 STAGES=2 SMS=4
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
#ifndef GROUP  // rows of tiles that are worked through together
#define GROUP 8
#endif
#ifndef CLUSTER  // blocks that share a tile of B
#define CLUSTER 2
#endif
#include "element.h"
#include "hopper.h"
#include "tiles.h"
#include "results.h"
constexpr int PART = TILE_N / CLUSTER;  // rows of B that each block brings
static_assert(CLUSTER >= 1 && CLUSTER <= 8 && PART % 8 == 0, "choose 1, 2, 4 or 8 for CLUSTER");

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(128 * CONSUMERS + 128, 1)
tensor_matmul(
    const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, Out* C,
    int M, int N, int K, float alpha, float beta, const __grid_constant__ CUtensorMap C_map)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    Stage* stages = (Stage*)memory;
    Results* results = (Results*)&stages[STAGES];
    uint64_t* full = (uint64_t*)&results[CONSUMERS];  // their phases end when the tiles of a stage are there
    uint64_t* empty = &full[STAGES];  // and when all consumers have multiplied them
    int rows = ((M + TILE_M - 1) / TILE_M + CLUSTER - 1) / CLUSTER, cols = (N + TILE_N - 1) / TILE_N;
    int cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER, block = blockIdx.x % CLUSTER;
    int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32;
    int steps = (K + TILE_K - 1) / TILE_K;

    if (threadIdx.x == 0)
        init_stages(full, empty, 4 * CONSUMERS * CLUSTER);  // of warps of all blocks
    barrier_cluster();  // the barriers are there before anyone waits at them

    if (warpgroup == CONSUMERS) {
        setmaxnreg_dec<Registers::PRODUCER>();
        int count = 0;  // steps of all tiles: the stages go round from tile to tile
        for (int turn = cluster; threadIdx.x % 128 == 0 && turn < rows * cols; turn += clusters) {
            Tile tile = tile_of(turn, rows, cols, GROUP);
            int row0 = (tile.row * CLUSTER + block) * TILE_M, col0 = tile.col * TILE_N + block * PART;
            for (int step = 0; step < steps; ++step, ++count) {
                Stage& stage = stages[count % STAGES];
                uint64_t* barrier = &full[count % STAGES];
                mbarrier_wait(&empty[count % STAGES], count / STAGES % 2 ^ 1);  // in the first round, at once
                mbarrier_arrive_expect_tx(barrier, sizeof(Stage));
                cp_async_bulk_tensor(stage.A_tile, A, row0, step * TILE_K, barrier);
                cp_async_bulk_tensor_multicast(
                    stage.B_tile[block * PART], B, col0, step * TILE_K, barrier, (1 << CLUSTER) - 1);
            }
        }
        barrier_cluster();
        return;
    }
    setmaxnreg_inc<Registers::CONSUMER>();
    float sum[TILE_N / 2];
    int count = 0;
    for (int turn = cluster; turn < rows * cols; turn += clusters) {
        for (int step = 0; step < steps; ++step, ++count) {
            mbarrier_wait(&full[count % STAGES], count / STAGES % 2);
            start_products(sum, stages[count % STAGES], warpgroup, step > 0);
            wgmma_wait_group<1>();  // this step is at work, and the one before is done
            if (lane < CLUSTER && step > 0)
                mbarrier_arrive_cluster(&empty[(count - 1) % STAGES], lane);  // all blocks write to the stage
        }
        wgmma_wait_all(sum);
        if (lane < CLUSTER)
            mbarrier_arrive_cluster(&empty[(count - 1) % STAGES], lane);

        Tile tile = tile_of(turn, rows, cols, GROUP);
        int row0 = (tile.row * CLUSTER + block) * TILE_M + 64 * warpgroup, col0 = tile.col * TILE_N;
        store_rows(results[warpgroup], C_map, C, M, N, row0, col0, sum, alpha, beta);
    }
    if (threadIdx.x % 128 == 0)
        cp_async_bulk_wait_group_read<0>();  // shared memory is there until TMA has read it
    barrier_cluster();  // no block ends while another may arrive at its barriers
}
