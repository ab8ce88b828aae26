// stencil_3d_marching: the 7-point stencil: a thread marches through the planes and keeps three in registers
// kind: stencil
// set: held out
// launch: stencil_3d_marching; grid 2 3; block 32 4
// args: out out float32[8,10,34] 0.0; in x float32[8,10,34] uniform; depth int32 8; height int32 10; width int32 34
// launch: stencil_3d_marching; grid 8 32; block 32 8
// args: out out float32[64,256,256] 0.0; in x float32[64,256,256] uniform; depth int32 64; height int32 256; width int32 256
// launch: stencil_3d_marching; grid 16 64; block 32 8
// args: out out float32[256,512,512] 0.0; in x float32[256,512,512] uniform; depth int32 256; height int32 512; width int32 512
// launch: stencil_3d_marching; grid 32 256; block 32 4
// args: out out float32[64,1024,1024] 0.0; in x float32[64,1024,1024] uniform; depth int32 64; height int32 1024; width int32 1024
// expect: out = close(np.pad(sum(wide(x)[1 + i : 7 + i, 1 + j : 9 + j, 1 + l : 33 + l] for i, j, l in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))) - 6 * wide(x)[1:-1, 1:-1, 1:-1], 1), 9, 12)
extern "C" __global__ void stencil_3d_marching(float* out, const float* x, int depth, int height, int width) {
    int a = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y * blockDim.y + threadIdx.y;
    if (a < 1 || b < 1 || a >= width - 1 || b >= height - 1) return;
    int plane = height * width, i = b * width + a;
    float below = x[i], here = x[i + plane];
    for (int c = 1; c < depth - 1; c++) {
        i += plane;
        float above = x[i + plane];
        out[i] = x[i + 1] + x[i - 1] + x[i + width] + x[i - width] + above + below - 6 * here;
        below = here;
        here = above;
    }
}
