// stencil_3d_7_point: the 7-point stencil in three dimensions, one point per thread
// kind: stencil
// set: held out
// launch: stencil_3d_7_point; grid 2 3 4; block 32 4 2
// args: out out float32[8,10,34] 0.0; in x float32[8,10,34] uniform; depth int32 8; height int32 10; width int32 34
// launch: stencil_3d_7_point; grid 4 32 64; block 32 4 2
// args: out out float32[128,128,128] 0.0; in x float32[128,128,128] uniform; depth int32 128; height int32 128; width int32 128
// launch: stencil_3d_7_point; grid 8 32 256; block 32 8 1
// args: out out float32[256,256,256] 0.0; in x float32[256,256,256] uniform; depth int32 256; height int32 256; width int32 256
// launch: stencil_3d_7_point; grid 8 128 256; block 32 4 2
// args: out out float32[512,512,256] 0.0; in x float32[512,512,256] uniform; depth int32 512; height int32 512; width int32 256
// launch: stencil_3d_7_point; grid 32 32 64; block 8 8 4
// args: out out float32[256,256,256] 0.0; in x float32[256,256,256] uniform; depth int32 256; height int32 256; width int32 256
// expect: out = close(np.pad(sum(wide(x)[1 + i : 7 + i, 1 + j : 9 + j, 1 + l : 33 + l] for i, j, l in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))) - 6 * wide(x)[1:-1, 1:-1, 1:-1], 1), 9, 12)
extern "C" __global__ void stencil_3d_7_point(float* out, const float* x, int depth, int height, int width) {
    int a = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.z * blockDim.z + threadIdx.z;
    if (a < 1 || b < 1 || c < 1 || a >= width - 1 || b >= height - 1 || c >= depth - 1) return;
    int i = (c * height + b) * width + a, plane = height * width;
    out[i] = x[i + 1] + x[i - 1] + x[i + width] + x[i - width] + x[i + plane] + x[i - plane] - 6 * x[i];
}
