// float_of_lane_bits: a float addition whose operand is a register of bits that rises from lane to lane
// launch: add_bits; grid 1; block 32
// args: out out int32[32] 0; in a float32[32] uniform
// expect: out = (a + np.arange(32, dtype=np.int32).view(np.float32)).view(np.int32)
extern "C" __global__ void add_bits(int *out, const float *a) {
    int t = threadIdx.x, sum;
    asm("add.f32 %0, %1, %2;" : "=r"(sum) : "r"(__float_as_int(a[t])), "r"(t));
    out[t] = sum;
}
