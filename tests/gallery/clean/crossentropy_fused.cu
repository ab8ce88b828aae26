// crossentropy_fused: loss of each row and the logits' gradient in place; rows longer than the block, read backwards
// launch: classifier; grid 5; block 64
// args: out logits float32[5,150] normal; out losses float32[5] nan; in target int32[5] integers(0,150); V int32 150; P int32 150
struct Params { float scale, offset; };

__device__ float block_reduce(float value, bool is_max) {
    __shared__ float warps[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int o = 16; o; o >>= 1) {
        float other = __shfl_xor_sync(0xffffffff, value, o);
        value = is_max ? fmaxf(value, other) : value + other;
    }
    if (lane == 0) warps[warp] = value;
    __syncthreads();
    value = lane < (blockDim.x >> 5) ? warps[lane] : is_max ? -INFINITY : 0.f;
    for (int o = 16; o; o >>= 1) {
        float other = __shfl_xor_sync(0xffffffff, value, o);
        value = is_max ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    return value;
}

__device__ Params prepare(const float* row, int V) {
    float largest = -INFINITY, sum = 0.f;
    for (int i = (V - 1) / blockDim.x * blockDim.x + threadIdx.x; i >= 0; i -= blockDim.x)
        if (i < V) largest = fmaxf(largest, row[i]);
    largest = block_reduce(largest, true);
    for (int i = threadIdx.x; i < V; i += blockDim.x) sum += expf(row[i] - largest);
    return {1.f / block_reduce(sum, false), largest};
}

extern "C" __global__ void classifier(float* logits, float* losses, const int* target, int V, int P) {
    int row = gridDim.x - (blockIdx.x + 1), right = target[row];
    float* x = logits + row * P;
    Params p = prepare(x, V);
    if (threadIdx.x == 0) losses[row] = -logf(expf(x[right] - p.offset) * p.scale);
    __syncthreads();
    for (int i = threadIdx.x; i < V; i += blockDim.x) {
        float probability = expf(x[i] - p.offset) * p.scale;
        x[i] = (probability - (i == right ? 1.f : 0.f)) / gridDim.x;
    }
}
