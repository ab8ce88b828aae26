// function_pointer: the operation is chosen at run time from a table of functions
// launch: apply; grid 1; block 48
// args: out out float32[48] nan; in in float32[48] uniform
__device__ float twice(float x) { return 2 * x; }
__device__ float square(float x) { return x * x; }
__device__ float negative(float x) { return -x; }
typedef float (*Function)(float);

extern "C" __global__ void apply(float* out, const float* in) {
    Function functions[3] = {twice, square, negative};
    out[threadIdx.x] = functions[threadIdx.x % 3](in[threadIdx.x]);
}
