// dtype_views: arrays whose NumPy type is another name for the kernel's: complex64 as float2, bool as bytes
// launch: choose; grid 1; block 40
// args: out out complex64[40] nan; in a complex64[40] uniform; in b complex64[40] uniform; in which bool[40] integers(0,2)
// expect: out = np.where(which, a, b)
extern "C" __global__ void choose(float2* out, const float2* a, const float2* b, const bool* which) {
    int t = threadIdx.x;
    out[t] = which[t] ? a[t] : b[t];
}
