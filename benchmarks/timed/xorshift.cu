// xorshift: rounds of xorshift: shifts and exclusive ors, one chain per thread
// kind: integer
// set: build
// launch: xorshift; grid 2; block 256
// args: out out uint32[500] 0; rounds int32 1; n int32 500
// launch: xorshift; grid 4096; block 256
// args: out out uint32[1048576] 0; rounds int32 256; n int32 1048576
// launch: xorshift; grid 256; block 256
// args: out out uint32[65536] 0; rounds int32 1024; n int32 65536
// launch: xorshift; grid 65536; block 256
// args: out out uint32[16777216] 0; rounds int32 64; n int32 16777216
// expect: out = (lambda v: v ^ (v << np.uint32(5)))((lambda v: v ^ (v >> np.uint32(17)))((lambda v: v ^ (v << np.uint32(13)))(np.arange(1, n + 1, dtype=np.uint32))))
extern "C" __global__ void xorshift(unsigned* out, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = i + 1;
    for (int j = 0; j < rounds; j++) {
        v ^= v << 13;
        v ^= v >> 17;
        v ^= v << 5;
    }
    out[i] = v;
}
