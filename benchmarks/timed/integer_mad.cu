// integer_mad: rounds of a linear congruence in 4 independent chains: 32-bit multiply-adds
// kind: integer
// set: held out
// launch: integer_mad; grid 2; block 256
// args: out out uint32[500] 0; rounds int32 1; n int32 500
// launch: integer_mad; grid 4096; block 256
// args: out out uint32[1048576] 0; rounds int32 256; n int32 1048576
// launch: integer_mad; grid 256; block 256
// args: out out uint32[65536] 0; rounds int32 1024; n int32 65536
// launch: integer_mad; grid 65536; block 256
// args: out out uint32[16777216] 0; rounds int32 16; n int32 16777216
// expect: out = np.bitwise_xor.reduce([(np.arange(n, dtype=np.uint32) + np.uint32(c)) * np.uint32(1664525) + np.uint32(1013904223) for c in range(4)])
extern "C" __global__ void integer_mad(unsigned* out, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v[4] = {i, i + 1, i + 2, i + 3};
    for (int j = 0; j < rounds; j++)
        #pragma unroll
        for (int c = 0; c < 4; c++) v[c] = v[c] * 1664525u + 1013904223u;
    out[i] = v[0] ^ v[1] ^ v[2] ^ v[3];
}
