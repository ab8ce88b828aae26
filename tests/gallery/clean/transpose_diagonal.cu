// transpose_diagonal: blocks numbered along diagonals; a square matrix
// launch: transpose; grid 3 3; block 16 16
// args: out out int32[48,48] -1; in in int32[48,48] integers(0,1000); n int32 48
extern "C" __global__ void transpose(int* out, const int* in, int n) {
    __shared__ int tile[16][17];
    int by = blockIdx.x, bx = (blockIdx.x + blockIdx.y) % gridDim.x;
    tile[threadIdx.y][threadIdx.x] = in[(by * 16 + threadIdx.y) * n + bx * 16 + threadIdx.x];
    __syncthreads();
    out[(bx * 16 + threadIdx.y) * n + by * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
