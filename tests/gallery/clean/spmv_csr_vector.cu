// spmv_csr_vector: a sparse matrix in CSR times a vector, eight threads per row
// launch: spmv<8>; grid 1; block 64
// args: out y float32[10] nan; in start int32[11] = 0 2 2 5 9 19 33 40 44 47 50; in column int32[50] integers(0,12); in value float32[50] uniform; in x float32[12] uniform; rows uint32 10
template <unsigned LANES>
__global__ void spmv(float* y, const int* start, const int* column, const float* value, const float* x, unsigned rows) {
    const unsigned group = threadIdx.x / LANES, lane = threadIdx.x & (LANES - 1);
    for (unsigned row = group + blockIdx.x * (blockDim.x / LANES); row < (rows + 7) / 8 * 8; row += gridDim.x * (blockDim.x / LANES)) {
        float sum = 0;
        if (row < rows)
            for (int i = start[row] + lane; i < start[row + 1]; i += LANES) sum += value[i] * x[column[i]];
        for (unsigned o = LANES / 2; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffff, sum, o, LANES);
        if (lane == 0 && row < rows) y[row] = sum;
    }
}
