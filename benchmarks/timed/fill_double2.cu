// fill_double2: writes only, 16 bytes per step of a grid-stride loop
// kind: fill
// set: held out
// launch: fill_double2; grid 2; block 64
// args: out out float64[300,2] nan; value float64 1.5; n int32 300
// launch: fill_double2; grid 528; block 256
// args: out out float64[2097152,2] nan; value float64 1.5; n int32 2097152
// launch: fill_double2; grid 1056; block 512
// args: out out float64[52428800,2] nan; value float64 1.5; n int32 52428800
// expect: out = np.tile([value, -value], (n, 1))
extern "C" __global__ void fill_double2(double2* out, double value, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = make_double2(value, -value);
}
