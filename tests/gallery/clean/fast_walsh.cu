// fast_walsh: Walsh-Hadamard transform, radix 4 in shared memory
// launch: walsh; grid 2; block 16; shared 256; options -DLOG2N=6
// args: out out float32[2,64] nan; in in float32[2,64] integers(-9,10)
extern "C" __global__ void walsh(float* out, const float* in) {
    const int N = 1 << LOG2N, base = blockIdx.x << LOG2N;
    extern __shared__ float s[];
    for (int i = threadIdx.x; i < N; i += blockDim.x) s[i] = in[base + i];
    for (int stride = N >> 2, pos = threadIdx.x; stride > 0; stride >>= 2) {
        int low = pos & (stride - 1), i0 = ((pos - low) << 2) + low, i1 = i0 + stride, i2 = i1 + stride, i3 = i2 + stride;
        __syncthreads();
        float d0 = s[i0], d1 = s[i1], d2 = s[i2], d3 = s[i3], t = d0;
        d0 += d2, d2 = t - d2, t = d1, d1 += d3, d3 = t - d3, t = d0;
        s[i0] = d0 + d1, s[i1] = t - d1, t = d2, s[i2] = d2 + d3, s[i3] = t - d3;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += blockDim.x) out[base + i] = s[i];
}
