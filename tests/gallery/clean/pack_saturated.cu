// pack_saturated: two numbers clamped to bytes, above them the lower half of a third
// launch: pack; grid 1; block 32
// args: out out uint32[32] 0; in a int32[32] integers(-300,300); in b int32[32] integers(-300,300); in c uint32[32] integers(0,1000000)
// expect: out = (c << 16 | (a.clip(-128, 127) & 255).astype(np.uint32) << 8 | (b.clip(-128, 127) & 255).astype(np.uint32)).astype(np.uint32)
extern "C" __global__ void pack(unsigned *out, const int *a, const int *b, const unsigned *c) {
    int t = threadIdx.x;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(out[t]) : "r"(a[t]), "r"(b[t]), "r"(c[t]));
}
