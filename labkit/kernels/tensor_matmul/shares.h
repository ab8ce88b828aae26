// shares.h: work in equal shares, and sums that go from one cluster to the next (rung 9)
constexpr int LEAST = 16;  // steps: to hand sums over takes about as long
struct Work { int tile, begin, end; };  // the steps of k from begin to end of a tile

// Return the work that a cluster takes as number `turn`; begin >= end: there is no more. A cluster takes whole
// tiles. Where the last wave would leave the average cluster idle for LEAST steps or more, the tiles of the last
// two waves become one long row of steps, of which each cluster takes an equal share, of LEAST steps or more.
// It begins with the last tile of its share: what it hands over is there soon.
__device__ Work work_of(int turn, int cluster, int clusters, int tiles, int steps)
{
    int waves = (tiles + clusters - 1) / clusters, idle = waves * clusters - tiles;
    if ((long long)idle * steps >= (long long)LEAST * clusters)
        waves = max(0, waves - 2);
    int whole = turn * clusters + cluster;
    if (turn < waves)
        return {whole, 0, whole < tiles ? steps : 0};
    long long left = (long long)max(0, tiles - waves * clusters) * steps;
    int shares = max(1, (int)min((long long)clusters, left / LEAST));
    int from = left * min(cluster, shares) / shares, to = left * min(cluster + 1, shares) / shares;
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
