// matvec_thread_per_row: y = A x, one thread per row: the matrix is read uncoalesced
// kind: matvec
// set: build
// launch: matvec_thread_per_row; grid 2; block 64
// args: out y float32[100] nan; in A float32[100,40] uniform; in x float32[40] uniform; rows int32 100; cols int32 40
// launch: matvec_thread_per_row; grid 32; block 128
// args: out y float32[4096] nan; in A float32[4096,1024] uniform; in x float32[1024] uniform; rows int32 4096; cols int32 1024
// launch: matvec_thread_per_row; grid 512; block 256
// args: out y float32[131072] nan; in A float32[131072,512] uniform; in x float32[512] uniform; rows int32 131072; cols int32 512
// launch: matvec_thread_per_row; grid 64; block 128
// args: out y float32[8192] nan; in A float32[8192,8192] uniform; in x float32[8192] uniform; rows int32 8192; cols int32 8192
// expect: y = product(A, x)
extern "C" __global__ void matvec_thread_per_row(float* y, const float* A, const float* x, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int c = 0; c < cols; c++) sum += A[row * cols + c] * x[c];
    y[row] = sum;
}
