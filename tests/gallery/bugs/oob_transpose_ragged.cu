// oob_transpose_ragged: the write has the guard of the read
// launch: transpose; grid 2 1; block 32 32
// args: out out float32[40,20] nan; in in float32[20,40] uniform; R int32 20; C int32 40
extern "C" __global__ void transpose(float* out, const float* in, int R, int C) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = x < C && y < R ? in[y * C + x] : 0.0f;
    __syncthreads();
    int u = blockIdx.y * 32 + threadIdx.x, v = blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x < R && threadIdx.y < 32)
        out[v * R + u] = tile[threadIdx.x][threadIdx.y];  // BUG memcheck out of bounds
}
