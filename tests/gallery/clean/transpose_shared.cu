// transpose_shared: rows are read and written; the turn in shared memory costs 32-way bank conflicts
// launch: transpose; grid 2 2; block 32 32
// args: out out float32[64,64] nan; in in float32[64,64] uniform; n int32 64
extern "C" __global__ void transpose(float* out, const float* in, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
