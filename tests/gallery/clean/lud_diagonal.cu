// lud_diagonal: LU decomposition of one 16 x 16 block in shared memory, without pivots
// launch: lud<16>; grid 1; block 16
// args: out m float32[16,16] = 40 3 1 2 5 3 2 1 4 1 2 3 1 2 4 5 2 41 3 1 2 1 4 5 2 3 1 2 3 4 1 2 3 1 42 2 1 3 5 2 1 2 4 3 1 2 3 1 4 2 1 43 3 1 2 3 4 1 2 5 2 1 3 2 1 3 2 4 44 2 1 3 2 5 1 2 3 4 1 2 5 1 3 2 1 45 2 4 1 3 2 1 5 2 3 1 2 4 1 3 2 5 46 1 3 2 1 4 2 3 1 5 3 1 2 4 1 2 3 47 5 1 2 3 1 4 2 1 1 2 3 1 4 2 1 5 48 3 2 1 4 1 2 3 2 1 4 3 1 5 2 1 3 49 1 2 3 1 4 2 4 3 1 2 5 1 3 2 1 4 50 3 2 1 5 1 1 2 5 3 1 4 2 1 3 2 1 51 4 3 1 2 3 1 2 1 4 3 1 2 5 1 3 2 52 1 4 3 2 4 1 5 2 1 3 4 1 2 3 1 2 53 5 1 1 3 2 4 1 2 5 3 1 4 2 1 3 2 54 1 2 1 4 3 5 1 2 3 4 1 2 5 3 1 2 55; stride int32 16
template <int SIZE>
__global__ void lud(float* m, int stride) {
    __shared__ float a[SIZE][SIZE + 1];
    int t = threadIdx.x;
    for (int i = 0; i < SIZE; i++) a[i][t] = m[i * stride + t];
    __syncthreads();
    for (int i = 0; i < SIZE - 1; i++) {
        if (t > i) {
            for (int j = 0; j < i; j++) a[t][i] -= a[t][j] * a[j][i];
            a[t][i] /= a[i][i];
        }
        __syncthreads();
        if (t > i)
            for (int j = 0; j < i + 1; j++) a[i + 1][t] -= a[i + 1][j] * a[j][t];
        __syncthreads();
    }
    for (int i = 0; i < SIZE; i++) m[i * stride + t] = a[i][t];
}
