// reduce_strided_index: the sum of each block with packed threads and strided words: bank conflicts
// launch: reduce; grid 2; block 256
// args: out sums int32[2] -1; in values int32[512] integers(-50,50)
// expect: sums = values.reshape(2, 256).sum(1)
extern "C" __global__ void reduce(int* sums, const int* values) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = values[blockIdx.x * 256 + t];
    __syncthreads();
#pragma unroll 1
    for (int step = 1; step < 256; step *= 2) {
        int i = 2 * step * t;
        if (i < 256) s[i] += s[i + step];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
