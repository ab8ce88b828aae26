// argmax_rows: the largest value of each row and the first place it stands at, packed in 64 bits for one atomic
// launch: argmax; grid 3 4; block 32
// args: out packed uint64[4] 0; in in float32[4,90] integers(-20,20); n int32 90
__device__ unsigned ordered(float f) {
    unsigned bits = __float_as_uint(f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void argmax(unsigned long long* packed, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long best = 0;
    if (i < n) best = (unsigned long long)ordered(in[blockIdx.y * n + i]) << 32 | (0xffffffffu - i);
    for (int o = 16; o > 0; o >>= 1) {
        unsigned long long other = __shfl_xor_sync(0xffffffffu, best, o);
        best = other > best ? other : best;
    }
    if (threadIdx.x == 0) atomicMax(packed + blockIdx.y, best);
}
