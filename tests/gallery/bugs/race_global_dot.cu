// race_global_dot: a dot product that adds without atomics
// launch: dot; grid 2; block 64
// args: out sum float32[1] 0; in a float32[128] uniform; in b float32[128] uniform
extern "C" __global__ void dot(float* sum, const float* a, const float* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    *sum += a[i] * b[i];  // BUG racecheck race
}
