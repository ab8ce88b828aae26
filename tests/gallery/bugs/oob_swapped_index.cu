// oob_swapped_index: row and column change places in the index of a matrix that is not square
// launch: scale; grid 3 1; block 16 16
// args: out out float32[10,40] nan; in in float32[10,40] uniform; rows int32 10; cols int32 40
extern "C" __global__ void scale(float* out, const float* in, int rows, int cols) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < cols && y < rows)
        out[x * cols + y] = 2.0f * in[y * cols + x];  // BUG memcheck out of bounds
}
