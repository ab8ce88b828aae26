// device_variables: a table and a counter that belong to the module
// launch: count; grid 2; block 32
// args: out out int32[64] -1
__device__ int offsets[4] = {100, 200, 300, 400};

extern "C" __global__ void count(int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = offsets[i % 4] + i;
}
