// tridiagonal_pcr: tridiagonal systems by parallel cyclic reduction, one system per block
// launch: solve; grid 3; block 32
// args: out x float32[3,32] nan; in lower float32[3,32] uniform(-1,1); in diagonal float32[3,32] uniform(3,4); in upper float32[3,32] uniform(-1,1); in right float32[3,32] uniform
extern "C" __global__ void solve(float* x, const float* lower, const float* diagonal, const float* upper, const float* right) {
    __shared__ float a[32], b[32], c[32], d[32];
    int i = threadIdx.x, at = blockIdx.x * 32 + i;
    a[i] = i > 0 ? lower[at] : 0.f, b[i] = diagonal[at], c[i] = i < 31 ? upper[at] : 0.f, d[i] = right[at];
    for (int delta = 1; delta < 32; delta *= 2) {
        __syncthreads();
        int l = i - delta, r = i + delta;
        float alpha = l >= 0 ? a[i] / b[l] : 0.f, gamma = r < 32 ? c[i] / b[r] : 0.f;
        float b2 = b[i], d2 = d[i], a2 = 0.f, c2 = 0.f;
        if (l >= 0) b2 -= c[l] * alpha, d2 -= d[l] * alpha, a2 = -a[l] * alpha;
        if (r < 32) b2 -= a[r] * gamma, d2 -= d[r] * gamma, c2 = -c[r] * gamma;
        __syncthreads();
        a[i] = a2, b[i] = b2, c[i] = c2, d[i] = d2;
    }
    x[at] = d[i] / b[i];
}
