// matvec_transposed: y = transposed A times x, one thread per column: coalesced, and few threads
// kind: matvec
// set: build
// launch: matvec_transposed; grid 2; block 64
// args: out y float32[100] nan; in A float32[40,100] uniform; in x float32[40] uniform; rows int32 40; cols int32 100
// launch: matvec_transposed; grid 16; block 256
// args: out y float32[4096] nan; in A float32[512,4096] uniform; in x float32[512] uniform; rows int32 512; cols int32 4096
// launch: matvec_transposed; grid 256; block 128
// args: out y float32[32768] nan; in A float32[4096,32768] uniform; in x float32[4096] uniform; rows int32 4096; cols int32 32768
// launch: matvec_transposed; grid 1024; block 256
// args: out y float32[262144] nan; in A float32[1024,262144] uniform; in x float32[1024] uniform; rows int32 1024; cols int32 262144
// expect: y = product(A.T, x)
extern "C" __global__ void matvec_transposed(float* y, const float* A, const float* x, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    float sum = 0;
    for (int r = 0; r < rows; r++) sum += A[r * cols + col] * x[r];
    y[col] = sum;
}
