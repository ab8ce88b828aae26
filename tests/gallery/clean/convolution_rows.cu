// convolution_rows: separable filter along rows: several results per thread, a halo in shared memory, filter in constant memory
// launch: rows; grid 2 2; block 16 4
// args: out out float32[8,128] nan; in in float32[8,128] uniform; width int32 128; pitch int32 128
#define RADIUS 8
#define BLOCKDIM_X 16
#define BLOCKDIM_Y 4
#define RESULTS 4
#define HALO 1
__constant__ float filter[2 * RADIUS + 1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1};

extern "C" __global__ void rows(float* out, const float* in, int width, int pitch) {
    __shared__ float data[BLOCKDIM_Y][(RESULTS + 2 * HALO) * BLOCKDIM_X];
    const int baseX = (blockIdx.x * RESULTS - HALO) * BLOCKDIM_X + threadIdx.x, baseY = blockIdx.y * BLOCKDIM_Y + threadIdx.y;
    in += baseY * pitch + baseX, out += baseY * pitch + baseX;
#pragma unroll
    for (int i = HALO; i < HALO + RESULTS; i++) data[threadIdx.y][threadIdx.x + i * BLOCKDIM_X] = in[i * BLOCKDIM_X];
#pragma unroll
    for (int i = 0; i < HALO; i++)
        data[threadIdx.y][threadIdx.x + i * BLOCKDIM_X] = baseX >= -i * BLOCKDIM_X ? in[i * BLOCKDIM_X] : 0;
#pragma unroll
    for (int i = HALO + RESULTS; i < HALO + RESULTS + HALO; i++)
        data[threadIdx.y][threadIdx.x + i * BLOCKDIM_X] = width - baseX > i * BLOCKDIM_X ? in[i * BLOCKDIM_X] : 0;
    __syncthreads();
#pragma unroll
    for (int i = HALO; i < HALO + RESULTS; i++) {
        float sum = 0;
#pragma unroll
        for (int j = -RADIUS; j <= RADIUS; j++) sum += filter[RADIUS - j] * data[threadIdx.y][threadIdx.x + i * BLOCKDIM_X + j];
        out[i * BLOCKDIM_X] = sum;
    }
}
