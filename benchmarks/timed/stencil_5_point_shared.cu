// stencil_5_point_shared: the 5-point stencil, from a tile of 32 x 8 with its rims in shared memory
// kind: stencil
// set: held out
// launch: stencil_5_point_shared; grid 3 4; block 32 8
// args: out out float32[30,70] 0.0; in x float32[30,70] uniform; rows int32 30; cols int32 70
// launch: stencil_5_point_shared; grid 32 128; block 32 8
// args: out out float32[1024,1024] 0.0; in x float32[1024,1024] uniform; rows int32 1024; cols int32 1024
// launch: stencil_5_point_shared; grid 128 512; block 32 8
// args: out out float32[4096,4096] 0.0; in x float32[4096,4096] uniform; rows int32 4096; cols int32 4096
// launch: stencil_5_point_shared; grid 256 1024; block 32 8
// args: out out float32[8192,8192] 0.0; in x float32[8192,8192] uniform; rows int32 8192; cols int32 8192
// expect: out = close(.5 * wide(x) + .125 * sum(np.pad(wide(x), 1)[r : r + 30, c : c + 70] for r, c in ((1, 0), (1, 2), (0, 1), (2, 1))), 8, 1)
extern "C" __global__ void stencil_5_point_shared(float* out, const float* x, int rows, int cols) {
    __shared__ float tile[10][34];
    int first = blockIdx.y * 8 - 1, left = blockIdx.x * 32 - 1, thread = threadIdx.y * 32 + threadIdx.x;
    for (int j = thread; j < 340; j += 256) {
        int r = first + j / 34, c = left + j % 34;
        tile[j / 34][j % 34] = r >= 0 && r < rows && c >= 0 && c < cols ? x[r * cols + c] : 0;
    }
    __syncthreads();
    int row = first + 1 + threadIdx.y, col = left + 1 + threadIdx.x, y = threadIdx.y + 1, z = threadIdx.x + 1;
    if (row >= rows || col >= cols) return;
    out[row * cols + col] =
        0.5f * tile[y][z] + 0.125f * (tile[y][z - 1] + tile[y][z + 1] + tile[y - 1][z] + tile[y + 1][z]);
}
