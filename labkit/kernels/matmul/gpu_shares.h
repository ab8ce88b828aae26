// gpu_shares.h: the sum of what several blocks have of one tile, the same in every run (rung 11)
// The steps of all tiles, one after another, of which each block takes an equal share.
struct Line {
    long long steps;
    int blocks;  // that have a share
    __device__ Line(long long steps) : steps(steps), blocks(min(steps, (long long)gridDim.x)) {}
    __device__ long long begin(int block) const { return steps * block / blocks; }  // of the block's share
    __device__ int block_of(long long step) const { return ((step + 1) * blocks - 1) / steps; }
};

constexpr int FAN = 16;  // most shares that one block adds
__device__ float shares[2][BLOCKS][SUMS][THREADS];  // of the tile that a block continues, and begins
__device__ unsigned arrived[3][BLOCKS];  // blocks of a group, at each level of the sum; 0 between launches

// Adds the sums of the blocks that share the tile of these steps. FAN neighbouring blocks form a group; its
// last block to arrive adds their sums, in the order of the blocks. Then the groups' sums are added likewise.
// Returns true in the block that ends up with the sum of all.
__device__ bool add_shares(float (&sum)[SUMS], const Line& line, long long begin, int steps)
{
    int first = line.block_of(begin), count = line.block_of(begin + steps - 1) - first + 1;
    for (int level = 0, stride = 1; count > 1; ++level, stride *= FAN, count = (count + FAN - 1) / FAN) {
        int place = ((int)blockIdx.x - first) / stride, group = place / FAN * FAN;
        int members = min(FAN, count - group);
        if (members == 1)
            continue;
        auto share = [&](int i) { return &shares[i == 0][first + i * stride][0][threadIdx.x]; };
        #pragma unroll
        for (int e = 0; e < SUMS; ++e)
            share(place)[e * THREADS] = sum[e];
        __threadfence();  // all blocks see the share before the arrival
        __syncthreads();  // atomicInc: the last arrival sets the counter to 0 again
        bool is_last = threadIdx.x == 0
                       && atomicInc(&arrived[level][first + group * stride], members - 1) == members - 1;
        if (!__syncthreads_or(is_last))
            return false;
        __threadfence();
        #pragma unroll
        for (int e = 0; e < SUMS; ++e)
            sum[e] = 0;
        #pragma unroll (SUMS < 128 ? 128 / SUMS : 1)
        for (int i = group; i < group + members; ++i)
            #pragma unroll
            for (int e = 0; e < SUMS; ++e)
                sum[e] += __ldcg(&share(i)[e * THREADS]);  // from the L2 cache, which all SMs share
    }
    return true;
}
