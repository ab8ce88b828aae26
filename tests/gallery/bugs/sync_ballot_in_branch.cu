// sync_ballot_in_branch: the ballot names all lanes, the odd ones are elsewhere
// launch: votes; grid 1; block 32
// args: out out uint32[32] 0; in in int32[32] arange
extern "C" __global__ void votes(unsigned* out, const int* in) {
    if (in[threadIdx.x] % 2 == 0) {
        unsigned bits = __ballot_sync(0xffffffff, in[threadIdx.x] > 8);  // BUG synccheck divergent warp
        out[threadIdx.x] = bits;
    } else {
        out[threadIdx.x] = in[threadIdx.x];
    }
}
