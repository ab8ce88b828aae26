// cholesky_block: Cholesky factor of small matrices, one warp per matrix, columns by rank-one updates
// launch: cholesky; grid 2; block 32; options -DN=12
// args: out out float64[2,12,12] nan; in a float64[2,12,12] uniform
extern "C" __global__ void cholesky(double (*out)[N][N], const double (*a)[N][N]) {
    __shared__ double m[N][N + 1];
    int t = threadIdx.x;
    for (int i = t; i < N * N; i += 32) {
        int r = i / N, c = i % N;
        m[r][c] = 0.5 * (a[blockIdx.x][r][c] + a[blockIdx.x][c][r]) + (r == c ? N : 0);
    }
    __syncwarp();
    for (int k = 0; k < N; ++k) {
        if (t == 0) m[k][k] = sqrt(m[k][k]);
        __syncwarp();
        if (t > k && t < N) m[t][k] /= m[k][k];
        __syncwarp();
        for (int c = k + 1; c < N; ++c)
            if (t >= c && t < N) m[t][c] -= m[t][k] * m[c][k];
        __syncwarp();
    }
    for (int i = t; i < N * N; i += 32) out[blockIdx.x][i / N][i % N] = i % N <= i / N ? m[i / N][i % N] : 0.0;
}
