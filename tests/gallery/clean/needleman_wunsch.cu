// needleman_wunsch: alignment scores of one tile; a block walks the anti-diagonals of its shared square
// launch: align; grid 1; block 16; options -DN=16
// args: out score int32[17,17] 0; in similarity int32[16,16] integers(-4,8); penalty int32 3
#define MAX3(a, b, c) max(max((a), (b)), (c))

extern "C" __global__ void align(int* score, const int* similarity, int penalty) {
    __shared__ int s[N + 1][N + 1], ref[N][N];
    int tid = threadIdx.x;
    for (int i = 0; i < N; ++i) ref[i][tid] = similarity[i * N + tid];
    if (tid == 0) s[0][0] = 0;
    s[tid + 1][0] = -penalty * (tid + 1);
    s[0][tid + 1] = -penalty * (tid + 1);
    __syncthreads();
    for (int m = 0; m < N; m++) {
        if (tid <= m) {
            int x = tid + 1, y = m - tid + 1;
            s[y][x] = MAX3(s[y - 1][x - 1] + ref[y - 1][x - 1], s[y][x - 1] - penalty, s[y - 1][x] - penalty);
        }
        __syncthreads();
    }
    for (int m = N - 2; m >= 0; m--) {
        if (tid <= m) {
            int x = tid + N - m, y = N - tid;
            s[y][x] = MAX3(s[y - 1][x - 1] + ref[y - 1][x - 1], s[y][x - 1] - penalty, s[y - 1][x] - penalty);
        }
        __syncthreads();
    }
    for (int i = tid; i < (N + 1) * (N + 1); i += N) score[i] = (&s[0][0])[i];
}
