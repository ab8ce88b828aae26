// histogram_match_any: lanes with the same value elect one to add their number
// launch: histogram; grid 2; block 64
// args: out counts int32[8] 0; in data int32[128] integers(0,8)
extern "C" __global__ void histogram(int* counts, const int* data) {
    int value = data[blockIdx.x * blockDim.x + threadIdx.x];
    unsigned same = __match_any_sync(0xffffffff, value);
    if (threadIdx.x % 32 == __ffs(same) - 1) atomicAdd(&counts[value], __popc(same));
}
