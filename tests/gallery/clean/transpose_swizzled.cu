// transpose_swizzled: columns of the tile permuted by XOR with the row: no conflict and no padding
// launch: transpose; grid 2 2; block 32 32
// args: out out float32[64,64] nan; in in float32[64,64] uniform; n int32 64
extern "C" __global__ void transpose(float* out, const float* in, int n) {
    __shared__ float tile[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    tile[ty][tx ^ ty] = in[(blockIdx.y * 32 + ty) * n + blockIdx.x * 32 + tx];
    __syncthreads();
    out[(blockIdx.x * 32 + ty) * n + blockIdx.y * 32 + tx] = tile[tx][ty ^ tx];
}
