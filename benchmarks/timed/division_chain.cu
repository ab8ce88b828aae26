// division_chain: rounds of a correctly rounded division
// kind: special functions
// set: held out
// launch: division_chain; grid 2; block 256
// args: out out float32[500] nan; in x float32[500] uniform; rounds int32 2; n int32 500
// launch: division_chain; grid 4096; block 256
// args: out out float32[1048576] nan; in x float32[1048576] uniform; rounds int32 64; n int32 1048576
// launch: division_chain; grid 256; block 256
// args: out out float32[65536] nan; in x float32[65536] uniform; rounds int32 256; n int32 65536
// launch: division_chain; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[16777216] uniform; rounds int32 16; n int32 16777216
// expect: out = close(1 / (1 / (wide(x) + 2) + 2), 10, 2)
extern "C" __global__ void division_chain(float* out, const float* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int j = 0; j < rounds; j++) v = 1.0f / (v + 2.0f);
    out[i] = v;
}
