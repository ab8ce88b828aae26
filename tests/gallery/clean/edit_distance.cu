// edit_distance: Levenshtein distance of two words by anti-diagonals; three rows of shared memory that rotate
// launch: distance; grid 3; block 32
// args: out out int32[3] -1; in a uint8[3,20] integers(97,101); in b uint8[3,25] integers(97,101)
extern "C" __global__ void distance(int* out, const unsigned char* a, const unsigned char* b) {
    const int n = 20, m = 25;
    __shared__ int rows[3][n + 1];
    a += blockIdx.x * n, b += blockIdx.x * m;
    int i = threadIdx.x, *now = rows[0], *last = rows[1], *older = rows[2];
    for (int diagonal = 0; diagonal <= n + m; ++diagonal) {
        int j = diagonal - i;
        if (i <= n && j >= 0 && j <= m) {
            if (i == 0 || j == 0) now[i] = i + j;
            else now[i] = min(min(last[i - 1], last[i]) + 1, older[i - 1] + (a[i - 1] != b[j - 1]));
        }
        __syncthreads();
        int* spare = older;
        older = last, last = now, now = spare;
    }
    if (i == n) out[blockIdx.x] = last[n];
}
