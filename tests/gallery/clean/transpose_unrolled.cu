// transpose_unrolled: 32 x 8 threads move a tile of 32 x 32, four elements each
// launch: transpose; grid 3 2; block 32 8
// args: out out float32[70,50] nan; in in float32[50,70] uniform; R int32 50; C int32 70
extern "C" __global__ void transpose(float* out, const float* in, int R, int C) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (int j = 0; j < 32; j += 8)
        if (x < C && y + j < R) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * C + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (int j = 0; j < 32; j += 8)
        if (x < R && y + j < C) out[(y + j) * R + x] = tile[threadIdx.x][threadIdx.y + j];
}
