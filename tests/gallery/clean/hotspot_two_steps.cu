// hotspot_two_steps: heat on a chip, two time steps in shared memory; the rim of each block is computed twice
// launch: hotspot; grid 4 3; block 16 16; options -DBLOCK=16 -DSTEPS=2
// args: out out float32[30,40] nan; in temperature float32[30,40] uniform(300,340); in power float32[30,40] uniform(0,1); rows int32 30; cols int32 40
extern "C" __global__ void hotspot(float* out, const float* temperature, const float* power, int rows, int cols) {
    __shared__ float old[BLOCK][BLOCK], heat[BLOCK][BLOCK], next[BLOCK][BLOCK];
    int tx = threadIdx.x, ty = threadIdx.y, inner = BLOCK - 2 * STEPS;
    int x = blockIdx.x * inner + tx - STEPS, y = blockIdx.y * inner + ty - STEPS;
    bool valid = x >= 0 && x < cols && y >= 0 && y < rows;
    if (valid) old[ty][tx] = temperature[y * cols + x], heat[ty][tx] = power[y * cols + x];
    __syncthreads();
    int N = y > 0 ? ty - 1 : ty, S = y < rows - 1 ? ty + 1 : ty, W = x > 0 ? tx - 1 : tx, E = x < cols - 1 ? tx + 1 : tx;
    for (int step = 1; step <= STEPS; ++step) {
        bool mine = valid && tx >= step && tx < BLOCK - step && ty >= step && ty < BLOCK - step;
        if (mine)
            next[ty][tx] = old[ty][tx] + 0.1f * (heat[ty][tx] + (old[S][tx] + old[N][tx] - 2.0f * old[ty][tx]) +
                                                 (old[ty][E] + old[ty][W] - 2.0f * old[ty][tx]));
        __syncthreads();
        if (mine) {
            if (step == STEPS) out[y * cols + x] = next[ty][tx];
            else old[ty][tx] = next[ty][tx];
        }
        __syncthreads();
    }
}
