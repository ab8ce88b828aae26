// sum_of_five: five arrays are read and one is written: many streams at a time
// kind: stream
// set: build
// launch: sum_of_five; grid 2; block 512
// args: out out float32[700] nan; in a float32[700] uniform; in b float32[700] uniform; in c float32[700] uniform; in d float32[700] uniform; in e float32[700] uniform; n int32 700
// launch: sum_of_five; grid 2048; block 512
// args: out out float32[1048576] nan; in a float32[1048576] uniform; in b float32[1048576] uniform; in c float32[1048576] uniform; in d float32[1048576] uniform; in e float32[1048576] uniform; n int32 1048576
// launch: sum_of_five; grid 32768; block 512
// args: out out float32[16777216] nan; in a float32[16777216] uniform; in b float32[16777216] uniform; in c float32[16777216] uniform; in d float32[16777216] uniform; in e float32[16777216] uniform; n int32 16777216
// launch: sum_of_five; grid 131072; block 512
// args: out out float32[67108864] nan; in a float32[67108864] uniform; in b float32[67108864] uniform; in c float32[67108864] uniform; in d float32[67108864] uniform; in e float32[67108864] uniform; n int32 67108864
// expect: out = close(wide(a) + b + c + d + e, 5, 5)
extern "C" __global__ void sum_of_five(float* out, const float* a, const float* b, const float* c, const float* d, const float* e, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i] + c[i] + d[i] + e[i];
}
