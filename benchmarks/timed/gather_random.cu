// gather_random: loads from random places
// kind: gather
// set: build
// launch: gather_random; grid 2; block 256
// args: out out float32[500] nan; in x float32[800] uniform; in index int32[500] integers(0,800); n int32 500
// launch: gather_random; grid 8192; block 256
// args: out out float32[2097152] nan; in x float32[1048576] uniform; in index int32[2097152] integers(0,1048576); n int32 2097152
// launch: gather_random; grid 32768; block 256
// args: out out float32[8388608] nan; in x float32[4194304] uniform; in index int32[8388608] integers(0,4194304); n int32 8388608
// launch: gather_random; grid 32768; block 256
// args: out out float32[8388608] nan; in x float32[67108864] uniform; in index int32[8388608] integers(0,67108864); n int32 8388608
// launch: gather_random; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[4096] uniform; in index int32[16777216] integers(0,4096); n int32 16777216
// expect: out = x[index]
extern "C" __global__ void gather_random(float* out, const float* x, const int* index, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[index[i]];
}
