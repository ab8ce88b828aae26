// oob_local_by_one: a loop of nine steps over a local array of eight
// launch: sums; grid 1; block 32
// args: out out int32[32] -1; n int32 9
extern "C" __global__ void sums(int* out, int n) {
    int mine[8];
#pragma unroll 1
    for (int k = 0; k < n; k++)
        mine[k] = k * threadIdx.x;  // BUG memcheck out of bounds
    out[threadIdx.x] = mine[n % 4] + mine[out[threadIdx.x] + 3];
}
