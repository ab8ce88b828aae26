// sync_break: lanes that found nothing leave the loop before its barrier
// launch: search; grid 1; block 64
// args: out out int32[64] 0; in in int32[64] integers(0,5)
extern "C" __global__ void search(int* out, const int* in) {
    for (int i = 0; i < 5; i++) {
        if (in[threadIdx.x] == i) break;
        out[threadIdx.x] = i;
        __syncthreads();  // BUG synccheck divergent barrier
    }
}
