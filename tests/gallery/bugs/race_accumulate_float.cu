// race_accumulate_float: every thread adds to the same shared float
// launch: sum; grid 1; block 64
// args: out out float32[1] nan; in in float32[64] uniform
extern "C" __global__ void sum(float* out, const float* in) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0.0f;
    __syncthreads();
    total += in[threadIdx.x];  // BUG racecheck race
    __syncthreads();
    if (threadIdx.x == 0) out[0] = total;
}
