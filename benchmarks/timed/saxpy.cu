// saxpy: y = a x + y, one element per thread
// kind: stream
// set: build
// launch: saxpy; grid 4; block 256
// args: out y float32[1000] uniform; in x float32[1000] uniform; a float32 0.5; n int32 1000
// launch: saxpy; grid 4096; block 256
// args: out y float32[1048576] uniform; in x float32[1048576] uniform; a float32 0.5; n int32 1048576
// launch: saxpy; grid 32768; block 256
// args: out y float32[8388608] uniform; in x float32[8388608] uniform; a float32 0.5; n int32 8388608
// launch: saxpy; grid 524288; block 256
// args: out y float32[134217728] uniform; in x float32[134217728] uniform; a float32 0.5; n int32 134217728
// expect: y = close(a * wide(x) + y, 2, 2)
extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
