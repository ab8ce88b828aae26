// bank_random: shared words picked by an index from memory
// launch: banks; grid 1; block 64
// args: out out int32[64] -1; in pick int32[64] integers(0,256)
// expect: out = pick * pick
extern "C" __global__ void banks(int* out, const int* pick) {
    __shared__ int s[256];
    for (int i = threadIdx.x; i < 256; i += 64) s[i] = i * i;
    __syncthreads();
    out[threadIdx.x] = s[pick[threadIdx.x]];
}
