// refused_shared_memory: more dynamic shared memory than a launch may have
// launch: fill; grid 1; block 32; shared 60000
// args: out out int32[32] -1
// refused: 60000
extern "C" __global__ void fill(int* out) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x];
}
