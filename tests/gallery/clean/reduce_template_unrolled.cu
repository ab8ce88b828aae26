// reduce_template_unrolled: the block's size is a template parameter; the last warp works on without the block's barrier
// launch: reduce<128, true>; grid 2; block 128; shared 512
// args: out out int32[4] 0; in in int32[512] integers(-9,9); n uint32 512
// launch: reduce<64, false>; grid 4; block 64; shared 256
template <class T>
struct SharedMemory {
    __device__ inline operator T*() {
        extern __shared__ int memory[];
        return (T*)memory;
    }
};

template <unsigned BLOCK>
__device__ void last_warp(volatile int* s, unsigned t) {
    if (BLOCK >= 64) { s[t] += s[t + 32]; __syncwarp(); }
    int value = s[t];
#pragma unroll
    for (int o = 16; o > 0; o /= 2) value += __shfl_down_sync(0xffffffff, value, o);
    if (t == 0) s[0] = value;
}

template <unsigned BLOCK, bool POWER>
__global__ void reduce(int* out, const int* in, unsigned n) {
    int* s = SharedMemory<int>();
    unsigned t = threadIdx.x, i = blockIdx.x * BLOCK * 2 + t, stride = BLOCK * 2 * gridDim.x;
    int mine = 0;
    while (i < n) {
        mine += in[i];
        if (POWER || i + BLOCK < n) mine += in[i + BLOCK];
        i += stride;
    }
    s[t] = mine;
    __syncthreads();
    if (BLOCK >= 128) { if (t < 64) s[t] = mine = mine + s[t + 64]; __syncthreads(); }
    if (t < 32) last_warp<BLOCK>(s, t);
    if (t == 0) out[blockIdx.x] = s[0];
}
