// relax_in_shared: rounds of a 3-point mean on a row that stays in shared memory, one barrier per round
// kind: barriers
// set: held out
// launch: relax_in_shared; grid 2; block 64
// args: out out float32[2,64] nan; in x float32[2,64] uniform; rounds int32 1
// launch: relax_in_shared; grid 264; block 512
// args: out out float32[264,512] nan; in x float32[264,512] uniform; rounds int32 500
// launch: relax_in_shared; grid 4096; block 256
// args: out out float32[4096,256] nan; in x float32[4096,256] uniform; rounds int32 200
// launch: relax_in_shared; grid 132; block 128
// args: out out float32[132,128] nan; in x float32[132,128] uniform; rounds int32 2000
// expect: out = close(.25 * wide(np.pad(x, ((0, 0), (1, 1))))[:, :-2] + .5 * wide(x) + .25 * wide(np.pad(x, ((0, 0), (1, 1))))[:, 2:], 5, 1)
extern "C" __global__ void relax_in_shared(float* out, const float* x, int rounds) {
    __shared__ float s[2][514];
    int t = threadIdx.x, n = blockDim.x, i = blockIdx.x * n + t;
    s[0][t + 1] = x[i];
    if (t < 2) s[t][0] = s[t][n + 1] = 0;
    __syncthreads();
    for (int j = 0; j < rounds; j++) {
        s[1 - j % 2][t + 1] = 0.25f * s[j % 2][t] + 0.5f * s[j % 2][t + 1] + 0.25f * s[j % 2][t + 2];
        __syncthreads();
    }
    out[i] = s[rounds % 2][t + 1];
}
