// divergent_branches: even and odd lanes do different work, nested
// launch: branches; grid 2; block 64
// args: out out int32[128] -1; in in int32[128] integers(-50,50)
extern "C" __global__ void branches(int* out, const int* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, value = in[i];
    if (i % 2) {
        if (value > 0) value = 3 * value + 1;
        else value = -value;
    } else if (value < -10) {
        value /= 2;
    } else {
        for (int k = 0; k < (i & 7); k++) value ^= k << 2;
    }
    out[i] = value;
}
