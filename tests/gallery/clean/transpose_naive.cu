// transpose_naive: out (C,R) = transpose of in (R,C); rows are read, columns are written
// launch: transpose; grid 2 2; block 32 32
// args: out out float32[50,40] nan; in in float32[40,50] uniform; R int32 40; C int32 50
extern "C" __global__ void transpose(float* out, const float* in, int R, int C) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < C && y < R) out[x * R + y] = in[y * C + x];
}
