// gather_nearby: loads from random places of a window around the block: the L1 serves some again
// kind: gather
// set: build
// launch: gather_nearby; grid 2; block 256
// args: out out float32[512] nan; in x float32[512] uniform; in index int32[512] integers(0,64); window int32 64; n int32 512
// launch: gather_nearby; grid 8192; block 256
// args: out out float32[2097152] nan; in x float32[2097152] uniform; in index int32[2097152] integers(0,1024); window int32 1024; n int32 2097152
// launch: gather_nearby; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[16777216] uniform; in index int32[16777216] integers(0,1024); window int32 1024; n int32 16777216
// launch: gather_nearby; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[16777216] uniform; in index int32[16777216] integers(0,65536); window int32 65536; n int32 16777216
// expect: out = x[np.arange(n) // window * window + index]
extern "C" __global__ void gather_nearby(float* out, const float* x, const int* index, int window, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i / window * window + index[i]];
}
