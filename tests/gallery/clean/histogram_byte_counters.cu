// histogram_byte_counters: 64 bins; each thread counts in bytes of its own, shuffled across banks, then merged
// launch: histogram; grid 2; block 64; shared 4096
// args: out counts uint32[64] 0; in data uint32[100] integers(0,4294967296); words int32 100
extern "C" __global__ void histogram(unsigned* counts, const unsigned* data, int words) {
    extern __shared__ unsigned char bins[];
    const int position = (threadIdx.x & ~63) | ((threadIdx.x & 15) << 2) | ((threadIdx.x & 48) >> 4);
    unsigned* clear = (unsigned*)bins;
    for (int i = 0; i < 16; i++) clear[threadIdx.x + i * 64] = 0;
    __syncthreads();
    unsigned char* own = bins + position;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        unsigned word = data[i];
        own[((word >> 2) & 0x3f) * 64]++;
        own[((word >> 10) & 0x3f) * 64]++;
        own[((word >> 18) & 0x3f) * 64]++;
        own[(word >> 26) * 64]++;
    }
    __syncthreads();
    unsigned char* row = bins + threadIdx.x * 64;
    unsigned sum = 0;
    for (int i = 0, at = 4 * (threadIdx.x & 15); i < 16; i++) {
        sum += row[at] + row[at + 1] + row[at + 2] + row[at + 3];
        at = (at + 4) & 63;
    }
    atomicAdd(counts + threadIdx.x, sum);
}
