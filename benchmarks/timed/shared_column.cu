// shared_column: columns of a 32 x 32 tile are scaled by their sum: conflicts of 32 ways without padding
// kind: shared memory
// set: held out
// launch: shared_column; grid 2; block 32 8; options -DPAD=0
// args: out out float32[2,32,32] nan; in x float32[2,32,32] uniform
// launch: shared_column; grid 4096; block 32 8; options -DPAD=0
// args: out out float32[4096,32,32] nan; in x float32[4096,32,32] uniform
// launch: shared_column; grid 65536; block 32 8; options -DPAD=0
// args: out out float32[65536,32,32] nan; in x float32[65536,32,32] uniform
// launch: shared_column; grid 65536; block 32 8; options -DPAD=1
// expect: out = close(x * wide(x).sum(1, keepdims=True), 40, 40)
#ifndef PAD
#define PAD 0
#endif
extern "C" __global__ void shared_column(float* out, const float* x) {
    __shared__ float tile[32][32 + PAD];
    int lane = threadIdx.x, first = threadIdx.y;
    for (int r = first; r < 32; r += 8) tile[r][lane] = x[blockIdx.x * 1024 + r * 32 + lane];
    __syncthreads();
    for (int c = first; c < 32; c += 8) {
        float sum = tile[lane][c];
        for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        tile[lane][c] *= sum;
    }
    __syncthreads();
    for (int r = first; r < 32; r += 8) out[blockIdx.x * 1024 + r * 32 + lane] = tile[r][lane];
}
