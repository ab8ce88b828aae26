// stencil_3d_27_point: the mean of 3 x 3 x 3 neighbours
// kind: stencil
// set: build
// launch: stencil_3d_27_point; grid 2 3 4; block 32 4 2
// args: out out float32[8,10,34] 0.0; in x float32[8,10,34] uniform; depth int32 8; height int32 10; width int32 34
// launch: stencil_3d_27_point; grid 4 32 64; block 32 4 2
// args: out out float32[128,128,128] 0.0; in x float32[128,128,128] uniform; depth int32 128; height int32 128; width int32 128
// launch: stencil_3d_27_point; grid 8 32 256; block 32 8 1
// args: out out float32[256,256,256] 0.0; in x float32[256,256,256] uniform; depth int32 256; height int32 256; width int32 256
// launch: stencil_3d_27_point; grid 16 128 64; block 32 2 4
// args: out out float32[256,256,512] 0.0; in x float32[256,256,512] uniform; depth int32 256; height int32 256; width int32 512
// expect: out = close(np.pad(sum(wide(x)[i : 6 + i, j : 8 + j, l : 32 + l] for i in range(3) for j in range(3) for l in range(3)) / 27, 1), 30, 1)
extern "C" __global__ void stencil_3d_27_point(float* out, const float* x, int depth, int height, int width) {
    int a = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.z * blockDim.z + threadIdx.z;
    if (a < 1 || b < 1 || c < 1 || a >= width - 1 || b >= height - 1 || c >= depth - 1) return;
    float sum = 0;
    for (int dc = -1; dc <= 1; dc++)
        for (int db = -1; db <= 1; db++)
            for (int da = -1; da <= 1; da++) sum += x[((c + dc) * height + b + db) * width + a + da];
    out[(c * height + b) * width + a] = sum * (1.0f / 27);
}
