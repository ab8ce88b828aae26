// integer_intrinsics: popc, clz, ffs, brev, mulhi, byte_perm, funnel shift, sad
// launch: bits; grid 1; block 64
// args: out out uint32[10,64] 7; in a uint32[64] integers(0,4294967296); in b uint32[64] integers(0,4294967296)
extern "C" __global__ void bits(unsigned* out, const unsigned* a, const unsigned* b) {
    int t = threadIdx.x;
    unsigned x = a[t], y = b[t];
    out[t] = __popc(x);
    out[64 + t] = __clz(x >> (t % 32));
    out[128 + t] = __ffs(x << (t % 32));
    out[192 + t] = __brev(x);
    out[256 + t] = __umulhi(x, y);
    out[320 + t] = __byte_perm(x, y, 0x3715);
    out[384 + t] = __funnelshift_l(x, y, t);
    out[448 + t] = __usad(x, y, 5);
    out[512 + t] = __mulhi((int)x, (int)y);
    out[576 + t] = __popcll(((unsigned long long)x << 32) | y) + __clzll(y);
}
