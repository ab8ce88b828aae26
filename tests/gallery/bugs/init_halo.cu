// init_halo: the right halo of the tile is missing
// launch: stencil; grid 2; block 32
// args: out out float32[66] 0; in in float32[66] uniform
extern "C" __global__ void stencil(float* out, const float* in) {
    __shared__ float s[34];
    int t = threadIdx.x, i = blockIdx.x * 32 + t + 1;
    s[t + 1] = in[i];
    if (t == 0) s[0] = in[i - 1];
    __syncthreads();
    out[i] = s[t] + s[t + 1] + s[t + 2];  // BUG initcheck uninitialised read
}
