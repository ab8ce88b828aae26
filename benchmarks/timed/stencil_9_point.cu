// stencil_9_point: the largest of 3 x 3 neighbours, from global memory
// kind: stencil
// set: build
// launch: stencil_9_point; grid 3 4; block 32 8
// args: out out float32[30,70] 0.0; in x float32[30,70] uniform; rows int32 30; cols int32 70
// launch: stencil_9_point; grid 64 128; block 32 8
// args: out out float32[1024,2048] 0.0; in x float32[1024,2048] uniform; rows int32 1024; cols int32 2048
// launch: stencil_9_point; grid 64 1024; block 64 4
// args: out out float32[4096,4096] 0.0; in x float32[4096,4096] uniform; rows int32 4096; cols int32 4096
// launch: stencil_9_point; grid 512 1024; block 16 8
// args: out out float32[8192,8192] 0.0; in x float32[8192,8192] uniform; rows int32 8192; cols int32 8192
// expect: out = np.pad(np.max([x[r : r + 28, c : c + 68] for r in range(3) for c in range(3)], 0), 1)
extern "C" __global__ void stencil_9_point(float* out, const float* x, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < 1 || col < 1 || row >= rows - 1 || col >= cols - 1) return;
    float most = -1e30f;
    for (int r = row - 1; r <= row + 1; r++)
        for (int c = col - 1; c <= col + 1; c++) most = fmaxf(most, x[r * cols + c]);
    out[row * cols + col] = most;
}
