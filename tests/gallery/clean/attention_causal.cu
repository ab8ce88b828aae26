// attention_causal: one block per query; scores in shared memory, softmax, then the weighted sum of the values
// launch: attention; grid 13 2; block 32; shared 64
// args: out out float32[2,13,8] nan; in q float32[2,13,8] normal; in k float32[2,13,8] normal; in v float32[2,13,8] normal; T int32 13; D int32 8
extern "C" __global__ void attention(float* out, const float* q, const float* k, const float* v, int T, int D) {
    extern __shared__ float score[];  // T of them; the compiler reads up to 3 more
    int t = blockIdx.x, head = blockIdx.y, base = head * T * D;
    float largest = -1e30f;
    for (int s = threadIdx.x; s <= t; s += blockDim.x) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += q[base + t * D + d] * k[base + s * D + d];
        score[s] = dot * rsqrtf((float)D);
        largest = max(largest, score[s]);
    }
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 16));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 8));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 4));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    __syncthreads();
    float sum = 0.0f;
    for (int s = 0; s <= t; ++s) sum += expf(score[s] - largest);
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float acc = 0.0f;
        for (int s = 0; s <= t; ++s) acc += expf(score[s] - largest) * v[base + s * D + d];
        out[base + t * D + d] = acc / sum;
    }
}
