// race_stencil_in_place: neighbours are read and written in the same step
// launch: stencil; grid 1; block 64
// args: out out float32[64] nan; in in float32[64] uniform
extern "C" __global__ void stencil(float* out, const float* in) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    float left = t > 0 ? s[t - 1] : 0.0f;  // BUG racecheck race
    s[t] = 0.5f * (left + s[t]);  // OTHER
    __syncthreads();
    out[t] = s[t];
}
