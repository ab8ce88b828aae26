// sort_network_warp: each warp sorts 32 elements by shuffles, without shared memory
// kind: sort
// set: held out
// launch: sort_network_warp; grid 3; block 64
// args: out out float32[3,64] nan; in x float32[3,64] uniform
// launch: sort_network_warp; grid 4096; block 256
// args: out out float32[4096,256] nan; in x float32[4096,256] uniform
// launch: sort_network_warp; grid 131072; block 256
// args: out out float32[131072,256] nan; in x float32[131072,256] uniform
// expect: out = np.sort(x.reshape(-1, 32), 1).reshape(x.shape)
extern "C" __global__ void sort_network_warp(float* out, const float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    float mine = x[i];
    #pragma unroll
    for (int size = 2; size <= 32; size *= 2)
        #pragma unroll
        for (int step = size / 2; step; step /= 2) {
            float other = __shfl_xor_sync(~0u, mine, step);
            bool low = ((lane & step) == 0) == ((lane & size) == 0 || size == 32);
            mine = low ? fminf(mine, other) : fmaxf(mine, other);
        }
    out[i] = mine;
}
