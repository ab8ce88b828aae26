// transpose_padded: a column more in the tile, and no bank conflict
// launch: transpose; grid 2 2; block 32 32
// args: out out float32[45,60] nan; in in float32[60,45] uniform; R int32 60; C int32 45
extern "C" __global__ void transpose(float* out, const float* in, int R, int C) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (x < C && y < R) tile[threadIdx.y][threadIdx.x] = in[y * C + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    if (x < R && y < C) out[y * R + x] = tile[threadIdx.x][threadIdx.y];
}
