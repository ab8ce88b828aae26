// early_return: threads leave one after another, with no barrier behind
// launch: leave; grid 2; block 48
// args: out out int32[96] 0; in in int32[96] integers(0,40)
extern "C" __global__ void leave(int* out, const int* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] < 5) return;
    out[i] = 1;
#pragma unroll 1
    for (int k = 0; k < 30; k++) {
        if (in[i] < k) return;
        out[i] += k;
    }
    out[i] = -1;
}
