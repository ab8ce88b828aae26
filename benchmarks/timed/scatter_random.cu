// scatter_random: stores to random places, each to another
// kind: gather
// set: held out
// launch: scatter_random; grid 2; block 256
// args: out out float32[500] nan; in x float32[500] uniform; in index int32[500] permutation; n int32 500
// launch: scatter_random; grid 4096; block 256
// args: out out float32[1048576] nan; in x float32[1048576] uniform; in index int32[1048576] permutation; n int32 1048576
// launch: scatter_random; grid 16384; block 256
// args: out out float32[4194304] nan; in x float32[4194304] uniform; in index int32[4194304] permutation; n int32 4194304
// launch: scatter_random; grid 65536; block 256
// args: out out float32[16777216] nan; in x float32[16777216] uniform; in index int32[16777216] permutation; n int32 16777216
// expect: out = x[np.argsort(index)]
extern "C" __global__ void scatter_random(float* out, const float* x, const int* index, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[index[i]] = x[i];
}
