// fft_stockham: complex transform of 64 points, radix 2, two buffers in shared memory that change places
// launch: fft; grid 3; block 32
// args: out out float32[3,64,2] nan; in in float32[3,64,2] normal
__device__ float2 operator*(float2 a, float2 b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
__device__ float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ float2 operator-(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }

extern "C" __global__ void fft(float2* out, const float2* in) {
    __shared__ float2 buffer[2][64];
    int t = threadIdx.x, now = 0;
    buffer[0][t] = in[blockIdx.x * 64 + t];
    buffer[0][t + 32] = in[blockIdx.x * 64 + t + 32];
    for (int span = 1; span < 64; span *= 2) {
        __syncthreads();
        int k = t & (span - 1);
        float2 w;
        sincospif(-(float)k / span, &w.y, &w.x);
        float2 a = buffer[now][t], b = w * buffer[now][t + 32];
        int to = ((t - k) << 1) + k;
        buffer[now ^ 1][to] = a + b;
        buffer[now ^ 1][to + span] = a - b;
        now ^= 1;
    }
    __syncthreads();
    out[blockIdx.x * 64 + t] = buffer[now][t];
    out[blockIdx.x * 64 + t + 32] = buffer[now][t + 32];
}
