// init_local_partly: five of eight elements of a local array are set
// launch: sums; grid 1; block 32
// args: out out int32[32] -1; in in int32[8] arange; n int32 5
extern "C" __global__ void sums(int* out, const int* in, int n) {
    int mine[8], sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; k++) mine[in[k]] = in[k];
#pragma unroll 1
    for (int k = 0; k < 8; k++)
        sum += mine[in[k]];  // BUG initcheck uninitialised read
    out[threadIdx.x] = sum;
}
