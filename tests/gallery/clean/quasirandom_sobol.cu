// quasirandom_sobol: Sobol numbers by Gray code: direction numbers of a dimension in shared memory
// launch: sobol; grid 2 3; block 32
// args: out out float32[3,64] nan; in direction uint32[3,32] integers(0,4294967296); n int32 64
extern "C" __global__ void sobol(float* out, unsigned* direction, int n) {
    __shared__ unsigned v[32];
    direction += 32 * blockIdx.y;
    out += n * blockIdx.y;
    if (threadIdx.x < 32) v[threadIdx.x] = direction[threadIdx.x];
    __syncthreads();
    int first = threadIdx.x + blockIdx.x * blockDim.x, stride = gridDim.x * blockDim.x;
    for (int i = first; i < n; i += stride) {
        unsigned gray = i ^ (i >> 1), x = 0;
        for (unsigned k = 0; k < __ffs(stride) - 1 + 8; k++) x ^= (gray & 1 ? v[k] : 0), gray >>= 1;
        out[i] = (float)x * 2.3283064365387e-10f;
    }
}
