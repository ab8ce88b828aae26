// inline_assembly: the lane, a three-input logic operation and a fused multiply-add in PTX
// launch: assembly; grid 1; block 64
// args: out out int32[3,64] -1; in a int32[64] integers(0,100000); in b int32[64] integers(0,100000)
extern "C" __global__ void assembly(int* out, const int* a, const int* b) {
    int t = threadIdx.x, lane, mixed, sum;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(mixed) : "r"(a[t]), "r"(b[t]), "r"(t));
    asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a[t]), "r"(7), "r"(b[t]));
    out[t] = lane;
    out[64 + t] = mixed;
    out[128 + t] = sum;
}
