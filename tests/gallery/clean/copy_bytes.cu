// copy_bytes: a byte, two bytes and eight bytes a thread
// launch: copy<unsigned char>; grid 1; block 64
// args: out out uint8[64] 0; in in uint8[64] integers(0,256)
// launch: copy<short>; grid 1; block 64
// args: out out int16[64] 0; in in int16[64] integers(-3000,3000)
// launch: copy<double>; grid 1; block 64
// args: out out float64[64] nan; in in float64[64] uniform
template <typename T>
__global__ void copy(T* out, const T* in) {
    out[threadIdx.x] = in[threadIdx.x];
}
