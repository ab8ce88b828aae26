// init_global_read: an array that was made with empty is read
// launch: copy; grid 1; block 64
// args: out out float32[64] nan; in in float32[64] empty
extern "C" __global__ void copy(float* out, const float* in) {
    out[threadIdx.x] = in[threadIdx.x];  // BUG initcheck uninitialised read
}
