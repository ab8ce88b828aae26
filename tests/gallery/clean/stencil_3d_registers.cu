// stencil_3d_registers: seven-point stencil; a plane in shared memory, neighbours along z in registers
// launch: stencil; grid 2 2; block 8 8
// args: out out float32[9,14,13] 0; in in float32[9,14,13] uniform; nx int32 13; ny int32 14; nz int32 9; c0 float32 0.5; c1 float32 0.0833
extern "C" __global__ void stencil(float* out, const float* in, int nx, int ny, int nz, float c0, float c1) {
    __shared__ float plane[10][10];
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    bool inside = x < nx && y < ny, inner = x > 0 && y > 0 && x < nx - 1 && y < ny - 1;
    int step = nx * ny, at = y * nx + x;
    float below = 0, here = inside ? in[at] : 0, above = inside ? in[at + step] : 0;
    for (int z = 1; z < nz - 1; z++) {
        below = here, here = above;
        at += step;
        above = inside ? in[at + step] : 0;
        __syncthreads();
        plane[ty][tx] = here;
        if (threadIdx.x == 0) plane[ty][0] = inside && x > 0 ? in[at - 1] : 0;
        if (threadIdx.x == 7) plane[ty][9] = inside && x + 1 < nx ? in[at + 1] : 0;
        if (threadIdx.y == 0) plane[0][tx] = inside && y > 0 ? in[at - nx] : 0;
        if (threadIdx.y == 7) plane[9][tx] = inside && y + 1 < ny ? in[at + nx] : 0;
        __syncthreads();
        if (inner) out[at] = c0 * here + c1 * (below + above + plane[ty][tx - 1] + plane[ty][tx + 1] + plane[ty - 1][tx] + plane[ty + 1][tx]);
    }
}
