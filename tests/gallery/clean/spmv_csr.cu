// spmv_csr: a sparse matrix in CSR times a vector, a thread a row
// launch: spmv; grid 1; block 32
// args: out y float32[10] nan; in start int32[11] = 0 2 2 5 9 10 14 14 17 19 20; in column int32[20] integers(0,12); in value float32[20] uniform; in x float32[12] uniform; rows int32 10
extern "C" __global__ void spmv(float* y, const int* start, const int* column, const float* value, const float* x, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
#pragma unroll 1
    for (int i = start[row]; i < start[row + 1]; i++) sum += value[i] * x[column[i]];
    y[row] = sum;
}
