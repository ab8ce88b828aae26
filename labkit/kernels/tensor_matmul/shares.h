// shares.h: work in equal shares, and sums that go from one cluster to the next (rung 9)
struct Work { int tile, begin, end; };  // the steps of k from begin to end of a tile

// Return the work that a cluster takes as number `turn`; begin >= end: there is no more. At first a cluster takes
// whole tiles. The tiles of the last waves, fewer than two per cluster, are one long row of steps, of which each
// cluster takes an equal share. It begins with the last tile of its share: what it hands over is there soon.
__device__ Work work_of(int turn, int cluster, int clusters, int tiles, int steps)
{
    int waves = max(0, tiles / clusters - (tiles % clusters > 0));
    if (turn < waves)
        return {turn * clusters + cluster, 0, steps};
    long long left = (long long)(tiles - waves * clusters) * steps;
    int from = left * cluster / clusters, to = left * (cluster + 1) / clusters;
    int tile = (to - 1) / steps - (turn - waves), first = tile * steps;
    return {waves * clusters + tile, max(from, first) - first, min(to, first + steps) - first};
}

__device__ float handed[SMS][CONSUMERS][TILE_N / 2][128];  // sums of each block, warpgroup and thread
__device__ int is_handed[SMS][CONSUMERS];  // 0 before and after every launch

// Leave the sums to the same block of the next cluster.
__device__ void hand_over(const float (&sum)[TILE_N / 2])
{
    int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
    #pragma unroll
    for (int i = 0; i < TILE_N / 2; ++i)
        handed[blockIdx.x][warpgroup][i][thread] = sum[i];
    __threadfence();  // the sums are there before the sign that they are
    bar_sync(1 + warpgroup, 128);
    if (thread == 0)
        atomicExch(&is_handed[blockIdx.x][warpgroup], 1);
}

// Add the sums that the cluster before has left, once they are there.
__device__ void add_handed(float (&sum)[TILE_N / 2])
{
    int before = blockIdx.x - CLUSTER, warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
    if (thread == 0) {
        while (atomicExch(&is_handed[before][warpgroup], 0) == 0) {}
        __threadfence();
    }
    bar_sync(1 + warpgroup, 128);
    #pragma unroll
    for (int i = 0; i < TILE_N / 2; ++i)
        sum[i] += __ldcg(&handed[before][warpgroup][i][thread]);
}
