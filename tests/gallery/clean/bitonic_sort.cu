// bitonic_sort: a block sorts 128 numbers in shared memory
// launch: sort; grid 2; block 128
// args: out out float32[256] nan; in in float32[256] uniform
extern "C" __global__ void sort(float* out, const float* in) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
#pragma unroll 1
    for (int size = 2; size <= 128; size *= 2)
#pragma unroll 1
        for (int step = size / 2; step > 0; step /= 2) {
            int other = t ^ step;
            if (other > t) {
                bool up = (t & size) == 0;
                float a = s[t], b = s[other];
                if ((a > b) == up) {
                    s[t] = b;
                    s[other] = a;
                }
            }
            __syncthreads();
        }
    out[blockIdx.x * 128 + t] = s[t];
}
