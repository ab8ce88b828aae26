// init_accumulate: results are added to an output that nobody set to zero
// launch: accumulate; grid 1; block 64
// args: out out float32[64] empty; in in float32[64] uniform
extern "C" __global__ void accumulate(float* out, const float* in) {
    out[threadIdx.x] += in[threadIdx.x];  // BUG initcheck uninitialised read
}
