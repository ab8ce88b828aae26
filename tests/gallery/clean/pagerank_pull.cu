// pagerank_pull: one iteration of PageRank over incoming edges, and the change summed by a warp and an atomic
// launch: pull; grid 2; block 32
// args: out rank float32[50] nan; out change float64[1] 0; in before float32[50] uniform(0,0.04); in degree int32[50] integers(1,9); in edge int32[50,4] integers(0,50); n int32 50; damping float32 0.85
extern "C" __global__ void pull(float* rank, double* change, const float* before, const int* degree, const int (*edge)[4], int n, float damping) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    float difference = 0;
    if (v < n) {
        float sum = 0;
        for (int u : edge[v]) sum += before[u] / degree[u];
        float now = (1.0f - damping) / n + damping * sum;
        difference = fabsf(now - before[v]);
        rank[v] = now;
    }
    for (int lanes = 16; lanes; lanes >>= 1) difference += __shfl_xor_sync(-1, difference, lanes);
    if (threadIdx.x % 32 == 0) atomicAdd(change, (double)difference);
}
