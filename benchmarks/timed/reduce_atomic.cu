// reduce_atomic: one sum: a shuffle per warp, then an atomic addition per warp to the same place
// kind: reduction
// set: held out
// launch: reduce_atomic; grid 4; block 256
// args: out total int32[1] 0; in x int32[1000] integers(0,9); n int32 1000
// launch: reduce_atomic; grid 4096; block 256
// args: out total int32[1] 0; in x int32[1048576] integers(0,9); n int32 1048576
// launch: reduce_atomic; grid 32768; block 256
// args: out total int32[1] 0; in x int32[8388608] integers(0,9); n int32 8388608
// launch: reduce_atomic; grid 131072; block 256
// args: out total int32[1] 0; in x int32[33554432] integers(0,9); n int32 33554432
// expect: total = x.sum(keepdims=True)
extern "C" __global__ void reduce_atomic(int* total, const int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = i < n ? x[i] : 0;
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}
