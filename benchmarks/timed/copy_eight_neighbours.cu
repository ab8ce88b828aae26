// copy_eight_neighbours: a copy, eight neighbouring elements per thread: each access of a warp touches 8 lines
// kind: copy
// set: held out
// launch: copy_eight_neighbours; grid 2; block 256
// args: out out float32[3000] nan; in x float32[3000] uniform; n int32 3000
// launch: copy_eight_neighbours; grid 2048; block 256
// args: out out float32[4194304] nan; in x float32[4194304] uniform; n int32 4194304
// launch: copy_eight_neighbours; grid 16384; block 256
// args: out out float32[33554432] nan; in x float32[33554432] uniform; n int32 33554432
// expect: out = x
extern "C" __global__ void copy_eight_neighbours(float* out, const float* x, int n) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    for (int i = first; i < first + 8; i++)
        if (i < n) out[i] = x[i];
}
