// race_global_transpose: a transpose in place between blocks
// launch: transpose; grid 2 2; block 16 16
// args: out a float32[32,32] uniform; n int32 32
extern "C" __global__ void transpose(float* a, int n) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float value = a[y * n + x];  // OTHER
    a[x * n + y] = value;  // BUG racecheck race
}
