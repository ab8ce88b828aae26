// low_occupancy_copy: a copy in loops by few warps: the launch's dynamic shared memory keeps other blocks away
// kind: latency
// set: build
// launch: low_occupancy_copy; grid 3; block 64; shared 1024
// args: out out float32[700] nan; in x float32[700] uniform; n int32 700
// launch: low_occupancy_copy; grid 528; block 64; shared 49152
// args: out out float32[4194304] nan; in x float32[4194304] uniform; n int32 4194304
// launch: low_occupancy_copy; grid 4096; block 64; shared 49152
// args: out out float32[33554432] nan; in x float32[33554432] uniform; n int32 33554432
// launch: low_occupancy_copy; grid 132; block 128; shared 40000
// args: out out float32[8388608] nan; in x float32[8388608] uniform; n int32 8388608
// expect: out = x
extern __shared__ float s[];

extern "C" __global__ void low_occupancy_copy(float* out, const float* x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        s[threadIdx.x] = x[i];
        out[i] = s[threadIdx.x];
    }
}
