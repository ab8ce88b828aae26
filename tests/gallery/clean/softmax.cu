// softmax: each block makes a row: maximum, sum of exponentials, quotient
// launch: softmax; grid 5; block 64
// args: out out float32[5,100] nan; in in float32[5,100] normal; n int32 100
extern "C" __global__ void softmax(float* out, const float* in, int n) {
    __shared__ float s[64];
    const float* row = in + blockIdx.x * n;
    int t = threadIdx.x;
    float largest = -3.4e38f;
#pragma unroll 1
    for (int i = t; i < n; i += 64) largest = fmaxf(largest, row[i]);
    s[t] = largest;
    __syncthreads();
#pragma unroll 1
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) s[t] = fmaxf(s[t], s[t + half]);
        __syncthreads();
    }
    largest = s[0];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll 1
    for (int i = t; i < n; i += 64) sum += expf(row[i] - largest);
    s[t] = sum;
    __syncthreads();
#pragma unroll 1
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
#pragma unroll 1
    for (int i = t; i < n; i += 64) out[blockIdx.x * n + i] = expf(row[i] - largest) / s[0];
}
