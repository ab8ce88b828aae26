// compact_ballot: the positive numbers of each warp, packed in order, with ballot and popc
// launch: compact; grid 1; block 96
// args: out out int32[96] 0; out counts int32[3] -1; in in int32[96] integers(-10,10)
extern "C" __global__ void compact(int* out, int* counts, const int* in) {
    int t = threadIdx.x, lane = t % 32, warp = t / 32, value = in[t];
    unsigned kept = __ballot_sync(0xffffffff, value > 0);
    int place = __popc(kept & ((1u << lane) - 1));
    if (value > 0) out[warp * 32 + place] = value;
    if (lane == 0) counts[warp] = __popc(kept);
}
