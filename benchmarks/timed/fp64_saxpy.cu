// fp64_saxpy: y = a x + y in double precision
// kind: stream
// set: held out
// launch: fp64_saxpy; grid 4; block 256
// args: out y float64[1000] uniform; in x float64[1000] uniform; a float64 0.5; n int32 1000
// launch: fp64_saxpy; grid 8192; block 256
// args: out y float64[2097152] uniform; in x float64[2097152] uniform; a float64 0.5; n int32 2097152
// launch: fp64_saxpy; grid 65536; block 256
// args: out y float64[16777216] uniform; in x float64[16777216] uniform; a float64 0.5; n int32 16777216
// launch: fp64_saxpy; grid 262144; block 256
// args: out y float64[67108864] uniform; in x float64[67108864] uniform; a float64 0.5; n int32 67108864
// expect: y = close(a * x + y, 2, 2, EPS64)
extern "C" __global__ void fp64_saxpy(double* y, const double* x, double a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
