// read_sum: reads only: a partial sum per thread, then one per block
// kind: read
// set: build
// launch: read_sum; grid 2; block 256
// args: out sums float32[2] nan; in x float32[2048] uniform; n int32 2048
// launch: read_sum; grid 264; block 256
// args: out sums float32[264] nan; in x float32[8388608] uniform; n int32 8388608
// launch: read_sum; grid 1056; block 256
// args: out sums float32[1056] nan; in x float32[134217728] uniform; n int32 134217728
// launch: read_sum; grid 132; block 256
// args: out sums float32[132] nan; in x float32[33554432] uniform; n int32 33554432
// expect: sums = summed(x.reshape(-1, 2, 256).swapaxes(0, 1).reshape(2, -1), 1)
extern "C" __global__ void read_sum(float* sums, const float* x, int n) {
    __shared__ float part[256];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
