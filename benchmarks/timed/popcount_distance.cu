// popcount_distance: differing bits of each word and 32 keys: exclusive or, popc, add
// kind: integer
// set: build
// launch: popcount_distance; grid 2; block 256
// args: out out int32[500] 0; in x uint32[500] integers(0,4294967296); in keys uint32[32] integers(0,4294967296); n int32 500
// launch: popcount_distance; grid 4096; block 256
// args: out out int32[1048576] 0; in x uint32[1048576] integers(0,4294967296); in keys uint32[32] integers(0,4294967296); n int32 1048576
// launch: popcount_distance; grid 32768; block 256
// args: out out int32[8388608] 0; in x uint32[8388608] integers(0,4294967296); in keys uint32[32] integers(0,4294967296); n int32 8388608
// launch: popcount_distance; grid 196608; block 256
// args: out out int32[50331648] 0; in x uint32[50331648] integers(0,4294967296); in keys uint32[32] integers(0,4294967296); n int32 50331648
// expect: out = np.bitwise_count(x[:, None] ^ keys).sum(1)
extern "C" __global__ void popcount_distance(int* out, const unsigned* x, const unsigned* keys, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned mine = x[i];
    int sum = 0;
    #pragma unroll 8
    for (int j = 0; j < 32; j++) sum += __popc(mine ^ keys[j]);
    out[i] = sum;
}
