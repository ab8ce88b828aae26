// gemv_int8_dp4a: int8 matrix times vector, four products per instruction, one warp per row
// launch: gemv; grid 2; block 32 4
// args: out y int32[7] -1; in A int8[7,144] integers(-128,128); in x int8[144] integers(-128,128); rows int32 7; K int32 144
extern "C" __global__ void gemv(int* y, const char4* A, const char4* x, int rows, int K) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    int sum = 0;
    for (int i = threadIdx.x; i < K / 4; i += warpSize) {
        char4 a = __ldg(A + row * (K / 4) + i), b = __ldg(x + i);
        sum = __dp4a(a, b, sum);
    }
    sum = __reduce_add_sync(0xffffffff, sum);
    if (threadIdx.x == 0) y[row] = sum;
}
