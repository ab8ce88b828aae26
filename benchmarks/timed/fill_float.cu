// fill_float: writes only, 4 bytes per thread
// kind: fill
// set: build
// launch: fill_float; grid 4; block 256
// args: out out float32[1000] nan; value float32 1.5; n int32 1000
// launch: fill_float; grid 16384; block 256
// args: out out float32[4194304] nan; value float32 1.5; n int32 4194304
// launch: fill_float; grid 262144; block 256
// args: out out float32[67108864] nan; value float32 1.5; n int32 67108864
// launch: fill_float; grid 1048576; block 256
// args: out out float32[268435456] nan; value float32 1.5; n int32 268435456
// expect: out = np.full(n, value)
extern "C" __global__ void fill_float(float* out, float value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}
