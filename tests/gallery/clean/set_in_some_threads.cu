// set_in_some_threads: a variable that half the threads set, and that only these use after a barrier
// launch: some; grid 2; block 64
// args: out out float32[128] 0; in a float32[128] uniform
// expect: out = np.where(np.arange(128) % 64 < 40, 2 * a, 1)
extern "C" __global__ void some(float* out, const float* a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float mine;
    if (threadIdx.x < 40)
        mine = a[i];
    __syncthreads();
    float result = 1;
    if (threadIdx.x < 40)
        result = mine + a[i];
    out[i] = result;
}
