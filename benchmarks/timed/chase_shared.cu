// chase_shared: chains of dependent loads from shared memory, few warps
// kind: latency
// set: held out
// launch: chase_shared; grid 2; block 32
// args: out out int32[64] 0; in next int32[1024] permutation; steps int32 2
// launch: chase_shared; grid 132; block 32
// args: out out int32[4224] 0; in next int32[1024] permutation; steps int32 2000
// launch: chase_shared; grid 264; block 256
// args: out out int32[67584] 0; in next int32[1024] permutation; steps int32 1000
// launch: chase_shared; grid 4000; block 64
// args: out out int32[256000] 0; in next int32[1024] permutation; steps int32 500
// expect: out = np.tile(next[next[np.arange(32)]], 2)
extern "C" __global__ void chase_shared(int* out, const int* next, int steps) {
    __shared__ int s[1024];
    for (int j = threadIdx.x; j < 1024; j += blockDim.x) s[j] = next[j];
    __syncthreads();
    int at = threadIdx.x;
    for (int j = 0; j < steps; j++) at = s[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
