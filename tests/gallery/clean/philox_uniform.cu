// philox_uniform: Philox 4x32-10, four uniform numbers per counter
// launch: philox; grid 2; block 32
// args: out out uint32[64,4] 0; key uint64 81985529216486895; n uint32 64
struct Philox {
    uint4 counter;
    uint2 key;
    __device__ explicit Philox(unsigned i, unsigned long long seed) : counter{i, 0u, 7u, 0u}, key{(unsigned)seed, (unsigned)(seed >> 32)} {}
    __device__ uint4 operator()() {
        uint4 c = counter;
        uint2 k = key;
#pragma unroll
        for (int round = 0; round < 10; ++round, k.x += 0x9E3779B9u, k.y += 0xBB67AE85u) {
            unsigned high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
            unsigned high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
            c = uint4{high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0};
        }
        return c;
    }
};

extern "C" __global__ void philox(uint4* out, unsigned long long key, unsigned n) {
    unsigned i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n) out[i] = Philox(i, key)();
}
