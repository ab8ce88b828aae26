// match_all: does the whole warp agree?
// launch: agree; grid 1; block 64
// args: out out int32[64] -1; in in int32[64] integers(0,30)
// expect: out = np.where(np.arange(64) < 32, 0, 32)
extern "C" __global__ void agree(int* out, const int* in) {
    int agreed;
    unsigned mask = __match_all_sync(0xffffffff, threadIdx.x < 32 ? in[threadIdx.x] : 5, &agreed);
    out[threadIdx.x] = agreed ? __popc(mask) : 0;
}
