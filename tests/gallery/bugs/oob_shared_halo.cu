// oob_shared_halo: a tile without room for its halo
// launch: stencil; grid 1; block 16 16
// args: out out float32[16,16] nan; in in float32[18,18] uniform
extern "C" __global__ void stencil(float* out, const float* in) {
    __shared__ float s[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    s[ty + 1][tx] = in[(ty + 1) * 18 + tx];  // BUG memcheck out of bounds
    if (ty == 0) s[0][tx] = in[tx];
    __syncthreads();
    out[ty * 16 + tx] = s[ty][tx];
}
