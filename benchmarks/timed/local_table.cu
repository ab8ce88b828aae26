// local_table: a table of 64 numbers per thread with computed indices: it lies in local memory
// kind: local memory
// set: build
// launch: local_table; grid 3; block 128
// args: out out int32[300] -1; in x int32[300] integers(0,64); rounds int32 1; n int32 300
// launch: local_table; grid 1024; block 128
// args: out out int32[131072] -1; in x int32[131072] integers(0,64); rounds int32 64; n int32 131072
// launch: local_table; grid 8192; block 128
// args: out out int32[1048576] -1; in x int32[1048576] integers(0,64); rounds int32 64; n int32 1048576
// launch: local_table; grid 256; block 128
// args: out out int32[32768] -1; in x int32[32768] integers(0,64); rounds int32 512; n int32 32768
// expect: out = x * 6 & 63
extern "C" __global__ void local_table(int* out, const int* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int counts[64], at = x[i];
    for (int j = 0; j < 64; j++) counts[j] = j;
    for (int j = 0; j < rounds; j++) {
        counts[at] += j;
        at = (at * 5 + counts[at]) & 63;
    }
    out[i] = at;
}
