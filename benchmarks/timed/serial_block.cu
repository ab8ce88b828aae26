// serial_block: one thread per block does the work in a loop, the others wait at a barrier
// kind: latency
// set: held out
// launch: serial_block; grid 2; block 64
// args: out out float32[2,64] nan; in x float32[2,3] uniform; cols int32 3
// launch: serial_block; grid 132; block 64
// args: out out float32[132,64] nan; in x float32[132,1000] uniform; cols int32 1000
// launch: serial_block; grid 1056; block 64
// args: out out float32[1056,64] nan; in x float32[1056,4000] uniform; cols int32 4000
// launch: serial_block; grid 16896; block 64
// args: out out float32[16896,64] nan; in x float32[16896,100] uniform; cols int32 100
// expect: out = close((wide(x) @ [.25, .5, 1])[:, None] + np.arange(64), 8, 70)
extern "C" __global__ void serial_block(float* out, const float* x, int cols) {
    __shared__ float sum;
    if (threadIdx.x == 0) {
        float mine = 0;
        for (int c = 0; c < cols; c++) mine = mine * 0.5f + x[blockIdx.x * cols + c];
        sum = mine;
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum + threadIdx.x;
}
