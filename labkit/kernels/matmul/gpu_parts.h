// gpu_parts.h: sums of which several warps of a block, and several blocks of a cluster, have a part each
#ifndef PARTS
#define PARTS 8  // warps of a block that share K: 1, 2, 4 or 8
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks that share K; more than 1 need compute capability 9.0
#endif
#ifndef PER_SM
#define PER_SM 2  // blocks that an SM holds: the compiler gives each thread so few registers
#endif
#if CLUSTER > 1
#include <cooperative_groups.h>
#define CLUSTERED __cluster_dims__(CLUSTER)
#else
#define CLUSTERED
#endif
constexpr int WARPS = 8;  // of a block: teams of PARTS that work on the same elements
static_assert(WARPS % PARTS == 0, "choose 1, 2, 4 or 8 for PARTS");

__device__ int part() { return blockIdx.x % CLUSTER * PARTS + threadIdx.y % PARTS; }  // of PARTS * CLUSTER
__device__ int team() { return blockIdx.x / CLUSTER * (WARPS / PARTS) + threadIdx.y / PARTS; }

// Adds the parts of all sums, in the same order in every run. Afterwards the warps of a team have the sums
// between them: bit i of the result says whether this warp has those of sum[i].
template <int R, int C> __device__ unsigned add_parts(float (&sum)[R][C])
{
    if (PARTS * CLUSTER == 1)
        return ~0u;
    __shared__ float parts[WARPS][R][C][32];
    int lane = threadIdx.x, warp = threadIdx.y % PARTS, first = threadIdx.y - warp;  // in, and of, the team
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < C; ++j)
            parts[threadIdx.y][i][j][lane] = sum[i][j];
    __syncthreads();
    unsigned has = 0;
    #pragma unroll
    for (int i = 0; i < R; ++i)
        if (i % PARTS == warp) {
            has |= 1u << i;
            for (int j = 0; j < C; ++j) {
                sum[i][j] = 0;
                for (int p = 0; p < PARTS; ++p)
                    sum[i][j] += parts[first + p][i][j][lane];
                parts[first][i][j][lane] = sum[i][j];
            }
        }
#if CLUSTER > 1
    auto cluster = cooperative_groups::this_cluster();
    cluster.sync();
    has = 0;
    #pragma unroll
    for (int i = 0; i < R; ++i)
        if (i % CLUSTER == blockIdx.x % CLUSTER && i / CLUSTER % PARTS == warp) {
            has |= 1u << i;
            for (int j = 0; j < C; ++j) {
                sum[i][j] = 0;
                for (int block = 0; block < CLUSTER; ++block)
                    sum[i][j] += *cluster.map_shared_rank(&parts[first][i][j][lane], block);
            }
        }
    cluster.sync();  // until then the other blocks read this one's
#endif
    return has;
}
