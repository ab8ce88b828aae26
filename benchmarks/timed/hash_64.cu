// hash_64: a 64-bit mixing hash in rounds: wide multiplications and shifts
// kind: integer
// set: held out
// launch: hash_64; grid 2; block 256
// args: out out uint64[500] 0; rounds int32 1; n int32 500
// launch: hash_64; grid 4096; block 256
// args: out out uint64[1048576] 0; rounds int32 64; n int32 1048576
// launch: hash_64; grid 256; block 256
// args: out out uint64[65536] 0; rounds int32 512; n int32 65536
// launch: hash_64; grid 65536; block 256
// args: out out uint64[16777216] 0; rounds int32 8; n int32 16777216
// expect: out = (lambda v: (v ^ (v >> np.uint64(27))) * np.uint64(0x81DADEF4BC2DD44D))((lambda v: (v ^ (v >> np.uint64(31))) * np.uint64(0x7FB5D329728EA185))(np.arange(n, dtype=np.uint64)))
extern "C" __global__ void hash_64(unsigned long long* out, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = i;
    for (int j = 0; j < rounds; j++) {
        v = (v ^ v >> 31) * 0x7fb5d329728ea185ull;
        v = (v ^ v >> 27) * 0x81dadef4bc2dd44dull;
    }
    out[i] = v;
}
