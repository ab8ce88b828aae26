// pathfinder_ghost_zone: cheapest way down a grid; several rows per launch, blocks overlap by the rows they lose
// launch: paths; grid 4; block 32; options -DBLOCK=32 -DROWS=6
// args: out out int32[77] -1; in cost int32[6,77] integers(0,10); in above int32[77] integers(0,100); columns int32 77
#include <climits>
extern "C" __global__ void paths(int* out, const int* cost, const int* above, int columns) {
    __shared__ int prev[BLOCK], result[BLOCK];
    const int tx = threadIdx.x, small = BLOCK - ROWS * 2;
    const int column = small * blockIdx.x - ROWS + tx;
    const bool inside = 0 <= column && column < columns;
    if (inside) prev[tx] = above[column];
    __syncthreads();
    bool computed = false;
    for (int i = 0; i < ROWS; i++) {
        computed = false;
        if (tx >= i + 1 && tx <= BLOCK - i - 2 && inside) {
            computed = true;
            int left = column > 0 ? prev[tx - 1] : INT_MAX, right = column + 1 < columns ? prev[tx + 1] : INT_MAX;
            result[tx] = min(min(left, prev[tx]), right) + cost[columns * i + column];
        }
        __syncthreads();
        if (i == ROWS - 1) break;
        if (computed) prev[tx] = result[tx];
        __syncthreads();
    }
    if (computed) out[column] = result[tx];
}
