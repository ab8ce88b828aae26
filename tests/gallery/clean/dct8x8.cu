// dct8x8: cosine transform of 8 x 8 blocks of an image: rows, then columns, coefficients in constant memory
// launch: dct; grid 3 2; block 8 8
// args: out out float32[16,24] nan; in in float32[16,24] uniform(-128,127); width int32 24
__constant__ float COS[64] = {
    0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f,
    0.49039264f, 0.41573481f, 0.27778512f, 0.09754516f, -0.09754516f, -0.27778512f, -0.41573481f, -0.49039264f,
    0.46193977f, 0.19134172f, -0.19134172f, -0.46193977f, -0.46193977f, -0.19134172f, 0.19134172f, 0.46193977f,
    0.41573481f, -0.09754516f, -0.49039264f, -0.27778512f, 0.27778512f, 0.49039264f, 0.09754516f, -0.41573481f,
    0.35355339f, -0.35355339f, -0.35355339f, 0.35355339f, 0.35355339f, -0.35355339f, -0.35355339f, 0.35355339f,
    0.27778512f, -0.49039264f, 0.09754516f, 0.41573481f, -0.41573481f, -0.09754516f, 0.49039264f, -0.27778512f,
    0.19134172f, -0.46193977f, 0.46193977f, -0.19134172f, -0.19134172f, 0.46193977f, -0.46193977f, 0.19134172f,
    0.09754516f, -0.27778512f, 0.41573481f, -0.49039264f, 0.49039264f, -0.41573481f, 0.27778512f, -0.09754516f};

extern "C" __global__ void dct(float* out, const float* in, int width) {
    __shared__ float a[8][8], b[8][8];
    const int tx = threadIdx.x, ty = threadIdx.y, at = (blockIdx.y * 8 + ty) * width + blockIdx.x * 8 + tx;
    a[ty][tx] = in[at];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += COS[ty * 8 + k] * a[k][tx];
    b[ty][tx] = sum;
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += b[ty][k] * COS[tx * 8 + k];
    out[at] = sum;
}
