// collatz: loops of different lengths in one warp
// launch: steps; grid 2; block 64
// args: out out int32[128] -1; n int32 120
extern "C" __global__ void steps(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        out[i] = 0;
        return;
    }
    unsigned long long value = i + 1;
    int count = 0;
    while (value != 1) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        count++;
    }
    out[i] = count;
}
