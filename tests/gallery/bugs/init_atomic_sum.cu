// init_atomic_sum: atomics on a sum that nobody set to zero
// launch: sum; grid 1; block 64
// args: out total int32[1] empty; in in int32[64] arange
extern "C" __global__ void sum(int* total, const int* in) {
    atomicAdd(total, in[threadIdx.x]);  // BUG initcheck uninitialised read
}
