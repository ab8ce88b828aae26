// stencil_1d_shared: sum of seven neighbours through shared memory with a halo of three
// launch: stencil; grid 4; block 64
// args: out out int32[230] -1; in in int32[230] integers(-20,20); n int32 230
#define R 3
extern "C" __global__ void stencil(int* out, const int* in, int n) {
    __shared__ int s[64 + 2 * R];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t + R] = i < n ? in[i] : 0;
    if (t < R) {
        s[t] = i >= R ? in[i - R] : 0;
        s[t + 64 + R] = i + 64 < n ? in[i + 64] : 0;
    }
    __syncthreads();
    if (i >= n) return;
    int sum = 0;
    for (int k = -R; k <= R; k++) sum += s[t + R + k];
    out[i] = sum;
}
