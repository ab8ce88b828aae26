// crc32_table: CRC-32 of short messages; the table is made by the block in shared memory
// launch: crc; grid 2; block 32
// args: out out uint32[50] 0; in message uint8[50,9] integers(0,256); n int32 50
extern "C" __global__ void crc(unsigned* out, const unsigned char* message, int n) {
    __shared__ unsigned table[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) {
        unsigned c = i;
        for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
        table[i] = c;
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned c = ~0u;
    for (int k = 0; k < 9; ++k) c = table[(c ^ message[9 * i + k]) & 0xff] ^ c >> 8;
    out[i] = ~c;
}
