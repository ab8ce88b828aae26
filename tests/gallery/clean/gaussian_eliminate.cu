// gaussian_eliminate: one step of Gaussian elimination on a 2D grid, with the right-hand side
// launch: eliminate; grid 2 3; block 8 8
// args: out a float32[18,12] uniform(1,2); out b float32[18] uniform; in multiplier float32[18] uniform; rows int32 18; columns int32 12; t int32 2
extern "C" __global__ void eliminate(float* a, float* b, const float* multiplier, int rows, int columns, int t) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows - 1 - t) return;
    if (column >= columns - t) return;
    float factor = multiplier[row + 1 + t];
    a[columns * (row + 1 + t) + column + t] -= factor * a[columns * t + column + t];
    if (column == 0) b[row + 1 + t] -= factor * b[t];
}
