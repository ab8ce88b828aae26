// noinline_function: a function that is called, with a pointer among its arguments
// launch: minmax; grid 1; block 64
// args: out out float32[64] nan; in in float32[70] uniform
__device__ __noinline__ float spread(const float* values, int n, float* largest) {
    float least = values[0];
    *largest = values[0];
    for (int i = 1; i < n; i++) {
        least = fminf(least, values[i]);
        *largest = fmaxf(*largest, values[i]);
    }
    return least;
}

extern "C" __global__ void minmax(float* out, const float* in) {
    float largest;
    float least = spread(in + threadIdx.x, 1 + threadIdx.x % 7, &largest);
    out[threadIdx.x] = largest - least;
}
