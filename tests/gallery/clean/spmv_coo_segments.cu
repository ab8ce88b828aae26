// spmv_coo_segments: entries sorted by row; a segmented sum within the warp, an atomic at the end of each segment
// launch: spmv; grid 2; block 64
// args: out y float32[12] 0; in row int32[100] = 0 0 0 0 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 3 3 3 3 3 3 3 3 5 5 5 5 5 5 5 5 5 6 6 6 6 6 7 7 7 7 7 7 7 7 7 7 7 8 9 9 9 9 9 9 9 10 10 10 10 11 11 11 11; in column int32[100] integers(0,20); in value float32[100] uniform; in x float32[20] uniform; n int32 100
extern "C" __global__ void spmv(float* y, const int* row, const int* column, const float* value, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int r = i < n ? row[i] : -1;
    float sum = i < n ? value[i] * x[column[i]] : 0.f;
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
        float other = __shfl_up_sync(0xffffffff, sum, o);
        int theirs = __shfl_up_sync(0xffffffff, r, o);
        if (lane >= o && theirs == r) sum += other;
    }
    int next = __shfl_down_sync(0xffffffff, r, 1);
    if (r >= 0 && (lane == 31 || next != r)) atomicAdd(&y[r], sum);
}
