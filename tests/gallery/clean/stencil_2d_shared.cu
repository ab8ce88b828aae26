// stencil_2d_shared: five-point Laplacian, a tile with its halo in shared memory
// launch: stencil; grid 3 3; block 16 16
// args: out out float32[40,45] nan; in in float32[40,45] uniform; rows int32 40; cols int32 45
#define T 16
extern "C" __global__ void stencil(float* out, const float* in, int rows, int cols) {
    __shared__ float s[T + 2][T + 2];
    int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    bool inside = x < cols && y < rows;
    s[ty][tx] = inside ? in[y * cols + x] : 0.0f;
    if (threadIdx.x == 0) s[ty][0] = x > 0 && y < rows ? in[y * cols + x - 1] : 0.0f;
    if (threadIdx.x == T - 1) s[ty][T + 1] = x + 1 < cols && y < rows ? in[y * cols + x + 1] : 0.0f;
    if (threadIdx.y == 0) s[0][tx] = y > 0 && x < cols ? in[(y - 1) * cols + x] : 0.0f;
    if (threadIdx.y == T - 1) s[T + 1][tx] = y + 1 < rows && x < cols ? in[(y + 1) * cols + x] : 0.0f;
    __syncthreads();
    if (inside) out[y * cols + x] = s[ty - 1][tx] + s[ty + 1][tx] + s[ty][tx - 1] + s[ty][tx + 1] - 4.0f * s[ty][tx];
}
