// stencil_5_point: the 5-point stencil, from global memory
// kind: stencil
// set: build
// launch: stencil_5_point; grid 3 4; block 32 8
// args: out out float32[30,70] 0.0; in x float32[30,70] uniform; rows int32 30; cols int32 70
// launch: stencil_5_point; grid 32 128; block 32 8
// args: out out float32[1024,1024] 0.0; in x float32[1024,1024] uniform; rows int32 1024; cols int32 1024
// launch: stencil_5_point; grid 128 512; block 32 8
// args: out out float32[4096,4096] 0.0; in x float32[4096,4096] uniform; rows int32 4096; cols int32 4096
// launch: stencil_5_point; grid 256 2048; block 32 4
// args: out out float32[8192,8192] 0.0; in x float32[8192,8192] uniform; rows int32 8192; cols int32 8192
// launch: stencil_5_point; grid 256 512; block 16 16
// args: out out float32[8192,4096] 0.0; in x float32[8192,4096] uniform; rows int32 8192; cols int32 4096
// expect: out = close(np.pad(.5 * wide(x)[1:-1, 1:-1] + .125 * (wide(x)[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]), 1), 8, 1)
extern "C" __global__ void stencil_5_point(float* out, const float* x, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < 1 || col < 1 || row >= rows - 1 || col >= cols - 1) return;
    int i = row * cols + col;
    out[i] = 0.5f * x[i] + 0.125f * (x[i - 1] + x[i + 1] + x[i - cols] + x[i + cols]);
}
