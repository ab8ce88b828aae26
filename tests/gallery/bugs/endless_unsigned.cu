// endless_unsigned: an unsigned number is never below zero
// launch: sums; grid 1; block 32
// args: out out int32[32] 0; in in int32[8] 1
// timeout: 0.2
extern "C" __global__ void sums(int* out, const volatile int* in) {
    int sum = 0;
    for (unsigned i = 7; i >= 0; i--)  // BUG timeout time limit
        sum += in[i % 8];  // OR
    out[threadIdx.x] = sum;
}
