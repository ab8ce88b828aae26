// chase: each thread follows a chain of dependent loads
// kind: latency
// set: build
// launch: chase; grid 2; block 32
// args: out out int32[64] 0; in next int32[500] permutation; steps int32 2; n int32 500
// launch: chase; grid 1; block 32
// args: out out int32[32] 0; in next int32[4096] permutation; steps int32 500; n int32 4096
// launch: chase; grid 132; block 32
// args: out out int32[4224] 0; in next int32[2097152] permutation; steps int32 500; n int32 2097152
// launch: chase; grid 132; block 32
// args: out out int32[4224] 0; in next int32[33554432] permutation; steps int32 200; n int32 33554432
// launch: chase; grid 528; block 256
// args: out out int32[135168] 0; in next int32[8388608] permutation; steps int32 100; n int32 8388608
// expect: out = next[next[np.arange(64)]]
extern "C" __global__ void chase(int* out, const int* next, int steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int at = i % n;
    for (int j = 0; j < steps; j++) at = next[at];
    out[i] = at;
}
