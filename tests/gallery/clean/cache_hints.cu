// cache_hints: loads and stores with words for the caches
// launch: copy; grid 1; block 64
// args: out out float32[4,64] nan; in in float32[4,64] uniform
extern "C" __global__ void copy(float* out, const float* in) {
    int t = threadIdx.x;
    __stcs(out + t, __ldcg(in + t));
    __stcg(out + 64 + t, __ldcs(in + 64 + t));
    __stwt(out + 128 + t, __ldca(in + 128 + t));
    __stwb(out + 192 + t, __ldg(in + 192 + t));
}
