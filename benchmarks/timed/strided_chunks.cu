// strided_chunks: each thread walks through a chunk of its own: lanes are a chunk apart, and lines are read again from the L1
// kind: strided
// set: build
// launch: strided_chunks; grid 2; block 256
// args: out sums float32[500] nan; in x float32[500,12] uniform; chunk int32 12; n int32 500
// launch: strided_chunks; grid 256; block 256
// args: out sums float32[65536] nan; in x float32[65536,32] uniform; chunk int32 32; n int32 65536
// launch: strided_chunks; grid 2048; block 256
// args: out sums float32[524288] nan; in x float32[524288,64] uniform; chunk int32 64; n int32 524288
// launch: strided_chunks; grid 512; block 256
// args: out sums float32[131072] nan; in x float32[131072,512] uniform; chunk int32 512; n int32 131072
// expect: sums = summed(x, 1)
extern "C" __global__ void strided_chunks(float* sums, const float* x, int chunk, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < chunk; j++) sum += x[i * chunk + j];
    sums[i] = sum;
}
