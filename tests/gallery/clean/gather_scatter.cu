// gather_scatter: reads in permuted order, writes in permuted order
// launch: permute; grid 2; block 64
// args: out gathered float32[128] nan; out scattered float32[128] nan; in in float32[128] uniform; in order int32[128] permutation
extern "C" __global__ void permute(float* gathered, float* scattered, const float* in, const int* order) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    gathered[i] = in[order[i]];
    scattered[order[i]] = in[i];
}
