// copy_reinterpreted: floats are moved as int4, 16 bytes at a time, and once as bits
// launch: move; grid 1; block 32
// args: out out float32[132] nan; in in float32[132] uniform
extern "C" __global__ void move(float* out, const float* in) {
    reinterpret_cast<int4*>(out)[threadIdx.x] = reinterpret_cast<const int4*>(in)[threadIdx.x];
    if (threadIdx.x < 4) ((unsigned*)out)[128 + threadIdx.x] = ((const unsigned*)in)[128 + threadIdx.x] & 0x7fffffff;
}
