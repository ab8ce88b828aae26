// spmv_ell: a sparse matrix in ELLPACK, column by column so that a warp reads neighbours; -1 fills
// launch: spmv<double>; grid 2; block 32
// args: out y float64[40] nan; in column int32[5,40] integers(-1,30); in value float64[5,40] uniform; in x float64[30] uniform; rows int32 40; width int32 5
template <typename Real>
__global__ void spmv(Real* y, const int* column, const Real* value, const Real* __restrict__ x, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    Real sum{};
    for (int k = 0; k < width; ++k) {
        int c = column[k * rows + row];
        if (c >= 0) sum += value[k * rows + row] * __ldg(&x[c]);
    }
    y[row] = sum;
}
