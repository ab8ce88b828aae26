// oob_loop_by_one: <= where < is meant
// launch: rows; grid 1; block 8
// args: out out float32[8] nan; in in float32[8,10] uniform; n int32 10
extern "C" __global__ void rows(float* out, const float* in, int n) {
    float sum = 0.0f;
    for (int k = 0; k <= n; k++)
        sum += in[threadIdx.x * n + k];  // BUG memcheck out of bounds
    out[threadIdx.x] = sum;
}
