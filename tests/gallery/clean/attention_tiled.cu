// attention_tiled: tiles of keys and values in shared memory; each thread keeps the maximum and sum of its query
// launch: attention; grid 2; block 16; options -DD=12 -DTILE=16
// args: out out float32[29,12] nan; in q float32[29,12] normal; in k float32[29,12] normal; in v float32[29,12] normal; T int32 29; scale float32 0.3
extern "C" __global__ void __launch_bounds__(TILE)
attention(float* __restrict__ out, const float* __restrict__ q, const float* __restrict__ k,
          const float* __restrict__ v, int T, float scale) {
    __shared__ float keys[TILE][D], values[TILE][D];
    const int row = blockIdx.x * TILE + threadIdx.x;
    float query[D], acc[D] = {}, m = -INFINITY, l = 0.f;
#pragma unroll
    for (int d = 0; d < D; ++d) query[d] = row < T ? q[row * D + d] : 0.f;
    for (int start = 0; start < T; start += TILE) {
        for (int i = threadIdx.x; i < TILE * D; i += TILE) {
            bool inside = start + i / D < T;
            keys[i / D][i % D] = inside ? k[start * D + i] : 0.f;
            values[i / D][i % D] = inside ? v[start * D + i] : 0.f;
        }
        __syncthreads();
        float s[TILE], tile_max = m;
#pragma unroll
        for (int j = 0; j < TILE; ++j) {
            float dot = 0.f;
#pragma unroll
            for (int d = 0; d < D; ++d) dot += query[d] * keys[j][d];
            s[j] = start + j < T ? dot * scale : -INFINITY;
            tile_max = fmaxf(tile_max, s[j]);
        }
        float correct = __expf(m - tile_max);
        l *= correct;
#pragma unroll
        for (int d = 0; d < D; ++d) acc[d] *= correct;
#pragma unroll
        for (int j = 0; j < TILE; ++j) {
            float p = __expf(s[j] - tile_max);
            l += p;
#pragma unroll
            for (int d = 0; d < D; ++d) acc[d] += p * values[j][d];
        }
        m = tile_max;
        __syncthreads();
    }
    if (row >= T) return;
#pragma unroll
    for (int d = 0; d < D; ++d) out[row * D + d] = acc[d] / l;
}
