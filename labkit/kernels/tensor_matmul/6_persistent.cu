// tensor_matmul_6_persistent.cu: C (M,N) = alpha A (M,K) B (N,K)^T + beta C, on the tensor cores
// idea: 5_warp_specialised with one block per multiprocessor, which takes tile after tile: the producer
//       brings the next one while the consumers write C; the order of tiles keeps A and B in the L2
// launch: block (2*TILE_M + 128), grid (SMS); any M, N; rows of A, B of 16 n bytes
// tensor maps: A (TILE_M, TILE_K) swizzle 128, B (TILE_N, TILE_K) swizzle 128
// shared: STAGES * (TILE_M + TILE_N) * 128 + 1024
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
#define GROUP 16
#endif
#include "element.h"
#include "hopper.h"
#include "tiles.h"

extern "C" __global__ void __launch_bounds__(128 * CONSUMERS + 128, 1) tensor_matmul(
    const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, Out* C,
    int M, int N, int K, float alpha, float beta)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    Stage* stages = (Stage*)memory;
    uint64_t* full = (uint64_t*)&stages[STAGES];  // their phases end when the tiles of a stage are there
    uint64_t* empty = &full[STAGES];  // and when all consumers have multiplied them
    int rows = (M + TILE_M - 1) / TILE_M, cols = (N + TILE_N - 1) / TILE_N;  // of tiles
    int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32;
    int y = threadIdx.x / 32 * 16 + lane / 4, x = lane % 4 * 2;  // the thread's first sum in the tile
    int steps = (K + TILE_K - 1) / TILE_K;

    if (threadIdx.x == 0)
        init_stages(full, empty, 4 * CONSUMERS);  // of warps
    __syncthreads();  // the barriers are there before anyone waits at them

    if (warpgroup == CONSUMERS) {
        setmaxnreg_dec<Registers::PRODUCER>();
        int count = 0;  // steps of all tiles: the stages go round from tile to tile
        for (int turn = blockIdx.x; threadIdx.x % 128 == 0 && turn < rows * cols; turn += gridDim.x) {
            Tile tile = tile_of(turn, rows, cols, GROUP);
            int row0 = tile.row * TILE_M, col0 = tile.col * TILE_N;
            for (int step = 0; step < steps; ++step, ++count) {
                Stage& stage = stages[count % STAGES];
                uint64_t* barrier = &full[count % STAGES];
                mbarrier_wait(&empty[count % STAGES], count / STAGES % 2 ^ 1);  // in the first round, at once
                mbarrier_arrive_expect_tx(barrier, sizeof(Stage));
                cp_async_bulk_tensor(stage.A_tile, A, row0, step * TILE_K, barrier);
                cp_async_bulk_tensor(stage.B_tile, B, col0, step * TILE_K, barrier);
            }
        }
        return;
    }
    setmaxnreg_inc<Registers::CONSUMER>();
    float sum[TILE_N / 2];
    int count = 0;
    for (int turn = blockIdx.x; turn < rows * cols; turn += gridDim.x) {
        for (int step = 0; step < steps; ++step, ++count) {
            mbarrier_wait(&full[count % STAGES], count / STAGES % 2);
            start_products(sum, stages[count % STAGES], warpgroup, step > 0);
            wgmma_wait_group<1>();  // this step is at work, and the one before is done
            if (lane == 0 && step > 0)
                mbarrier_arrive(&empty[(count - 1) % STAGES]);
        }
        wgmma_wait_all(sum);
        if (lane == 0)
            mbarrier_arrive(&empty[(count - 1) % STAGES]);

        Tile tile = tile_of(turn, rows, cols, GROUP);
        int row0 = tile.row * TILE_M, col0 = tile.col * TILE_N;
        #pragma unroll
        for (int j = 0; j < TILE_N / 8; ++j)
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                float* pair = &sum[4 * j + 2 * i];
                int row = row0 + y + 8 * i, col = col0 + x + 8 * j;
                store_pair(C, M, N, row, col, pair[0], pair[1], alpha, beta);
            }
    }
}
