// radix_sort_block: a block sorts its keys, one bit per pass, by a scan of the bits with ballots
// launch: sort; grid 2; block 128
// args: out out uint32[2,128] 0; in in uint32[2,128] integers(0,65536)
extern "C" __global__ void sort(unsigned* out, const unsigned* in) {
    __shared__ unsigned keys[128], warps[4];
    unsigned t = threadIdx.x, key = in[blockIdx.x * 128 + t], lane = t & 31, below = (1u << lane) - 1;
    for (int bit = 0; bit < 16; ++bit) {
        bool one = key >> bit & 1;
        unsigned zeros = __ballot_sync(0xffffffff, !one);
        if (lane == 0) warps[t >> 5] = __popc(zeros);
        __syncthreads();
        unsigned before = 0, total = 0;
#pragma unroll
        for (unsigned w = 0; w < 4; ++w) {
            if (w < (t >> 5)) before += warps[w];
            total += warps[w];
        }
        unsigned rank = before + __popc(zeros & below);
        keys[one ? total + t - rank : rank] = key;
        __syncthreads();
        key = keys[t];
    }
    out[blockIdx.x * 128 + t] = key;
}
