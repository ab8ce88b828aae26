// saxpy_grid_stride: y = a * x + y; a thread takes every (grid * block)-th element
// launch: saxpy; grid 2; block 96
// args: out y float32[500] uniform; in x float32[500] uniform; a float32 2.5; n int32 500
// expect: y = close(wide(a) * wide(x) + wide(y), 2, np.abs(a * x) + np.abs(y))
extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}
