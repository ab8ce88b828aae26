// init_sum_never_set: the sum of a row, whose variable has no first value
// launch: row_sums; grid 1; block 32
// args: out out float32[32] 0; in in float32[32,16] uniform; n int32 16
extern "C" __global__ void row_sums(float* out, const float* in, int n) {
    float sum;
    for (int k = 0; k < n; ++k)
        sum += in[threadIdx.x * n + k];  // BUG initcheck unset variable
    out[threadIdx.x] = sum;
}
