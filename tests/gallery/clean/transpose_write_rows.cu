// transpose_write_rows: columns are read, rows are written
// launch: transpose; grid 2 3; block 32 16
// args: out out float32[48,64] nan; in in float32[64,48] uniform; R int32 64; C int32 48
extern "C" __global__ void transpose(float* out, const float* in, int R, int C) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < R && y < C) out[y * R + x] = in[x * C + y];
}
