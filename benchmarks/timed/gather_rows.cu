// gather_rows: random rows of 64 floats, a row per half-warp and a float4 per lane
// kind: gather
// set: held out
// launch: gather_rows; grid 3; block 256
// args: out out float32[40,64] nan; in x float32[30,64] uniform; in index int32[40] integers(0,30); n int32 40
// launch: gather_rows; grid 4096; block 256
// args: out out float32[65536,64] nan; in x float32[32768,64] uniform; in index int32[65536] integers(0,32768); n int32 65536
// launch: gather_rows; grid 32768; block 256
// args: out out float32[524288,64] nan; in x float32[2097152,64] uniform; in index int32[524288] integers(0,2097152); n int32 524288
// launch: gather_rows; grid 65536; block 256
// args: out out float32[1048576,64] nan; in x float32[1000,64] uniform; in index int32[1048576] integers(0,1000); n int32 1048576
// expect: out = x[index]
extern "C" __global__ void gather_rows(float4* out, const float4* x, const int* index, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int row = i / 16, part = i % 16;
    if (row < n) out[row * 16 + part] = x[index[row] * 16 + part];
}
