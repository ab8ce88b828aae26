// race_global_same_word: all threads write different values to one word
// launch: write; grid 2; block 64
// args: out out int32[1] -1
extern "C" __global__ void write(int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[0] = i;  // BUG racecheck race
}
