// endless_step: steps of two pass an odd end by
// launch: sums; grid 1; block 32
// args: out out uint32[32] 0; in in uint32[2] 1; n uint32 7
// timeout: 0.2
extern "C" __global__ void sums(unsigned* out, const volatile unsigned* in, unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i != n; i += 2)  // BUG timeout time limit
        sum += in[0];  // OR
    out[threadIdx.x] = sum;
}
