// topk_row: the K largest of each row, kept sorted in registers, then merged across the warp
// launch: topk<4>; grid 3; block 32
// args: out value float32[3,4] nan; out index int32[3,4] -1; in in float32[3,70] normal; n int32 70
template <int K>
__global__ void topk(float* value, int* index, const float* in, int n) {
    float best[K];
    int at[K];
#pragma unroll
    for (int k = 0; k < K; ++k) best[k] = -INFINITY, at[k] = -1;
    for (int i = threadIdx.x; i < n; i += 32) {
        float x = in[blockIdx.x * n + i];
        int here = i;
#pragma unroll
        for (int k = 0; k < K; ++k)
            if (x > best[k]) {
                float x2 = best[k]; best[k] = x; x = x2;
                int i2 = at[k]; at[k] = here; here = i2;
            }
    }
    for (int k = 0; k < K; ++k) {
        float x = best[0];
        int lane = threadIdx.x;
        for (int o = 16; o > 0; o >>= 1) {
            float other = __shfl_xor_sync(~0u, x, o);
            int theirs = __shfl_xor_sync(~0u, lane, o);
            if (other > x || (other == x && theirs < lane)) x = other, lane = theirs;
        }
        int winner = __shfl_sync(~0u, at[0], lane);
        if (threadIdx.x == 0) value[blockIdx.x * K + k] = x, index[blockIdx.x * K + k] = winner;
        if (threadIdx.x == lane) {
#pragma unroll
            for (int j = 0; j + 1 < K; ++j) best[j] = best[j + 1], at[j] = at[j + 1];
            best[K - 1] = -INFINITY;
        }
    }
}
