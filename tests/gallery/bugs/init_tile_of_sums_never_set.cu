// init_tile_of_sums_never_set: four sums per thread in registers, none of which has a first value
// launch: sums; grid 1; block 32
// args: out out float32[32] 0; in in float32[32,16] uniform; n int32 16
extern "C" __global__ void sums(float* out, const float* in, int n) {
    float sum[2][2];
    for (int k = 0; k + 4 <= n; k += 4)
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j)
                sum[i][j] += in[threadIdx.x * n + k + 2 * i + j];  // BUG initcheck unset variable
    out[threadIdx.x] = sum[0][0] + sum[0][1] + sum[1][0] + sum[1][1];
}
