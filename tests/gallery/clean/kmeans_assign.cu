// kmeans_assign: nearest centre of each point, and sums and counts of the clusters by shared, then global atomics
// launch: assign; grid 2; block 64
// args: out cluster int32[100] -1; out sums int32[5,3] 0; out counts int32[5] 0; in point int32[100,3] integers(-50,50); in centre int32[5,3] integers(-50,50); n int32 100
__constant__ int DIMENSIONS = 3, CLUSTERS = 5;

extern "C" __global__ void assign(int* cluster, int* sums, int* counts, const int* point, const int* centre, int n) {
    __shared__ int s_sums[15], s_counts[5];
    if (threadIdx.x < 15) s_sums[threadIdx.x] = 0;
    if (threadIdx.x < 5) s_counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int best = 0, least = 0x7fffffff;
        for (int c = 0; c < CLUSTERS; c++) {
            int distance = 0;
            for (int d = 0; d < DIMENSIONS; d++) {
                int difference = point[i * DIMENSIONS + d] - centre[c * DIMENSIONS + d];
                distance += difference * difference;
            }
            if (distance < least) least = distance, best = c;
        }
        cluster[i] = best;
        atomicAdd(&s_counts[best], 1);
        for (int d = 0; d < DIMENSIONS; d++) atomicAdd(&s_sums[best * DIMENSIONS + d], point[i * DIMENSIONS + d]);
    }
    __syncthreads();
    if (threadIdx.x < 15) atomicAdd(sums + threadIdx.x, s_sums[threadIdx.x]);
    if (threadIdx.x < 5) atomicAdd(counts + threadIdx.x, s_counts[threadIdx.x]);
}
