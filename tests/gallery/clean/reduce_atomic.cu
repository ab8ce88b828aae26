// reduce_atomic: one sum of all, an atomic addition an element
// launch: reduce; grid 5; block 64
// args: out sum int32[1] 0; in values int32[300] integers(-100,100); n int32 300
extern "C" __global__ void reduce(int* sum, const int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, values[i]);
}
