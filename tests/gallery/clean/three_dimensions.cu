// three_dimensions: every thread of a three-dimensional grid writes where it is
// launch: where; grid 2 3 2; block 4 5 3
// args: out out int32[6,15,8] -1
extern "C" __global__ void where(int* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    out[(z * height + y) * width + x] = x + 100 * y + 10000 * z;
}
