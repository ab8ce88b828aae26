// soa_two_fields: the same from a structure of arrays
// kind: layout
// set: held out
// launch: soa_two_fields; grid 2; block 256
// args: out out float32[500] nan; in fields float32[8,500] uniform; n int32 500
// launch: soa_two_fields; grid 4096; block 256
// args: out out float32[1048576] nan; in fields float32[8,1048576] uniform; n int32 1048576
// launch: soa_two_fields; grid 32768; block 256
// args: out out float32[8388608] nan; in fields float32[8,8388608] uniform; n int32 8388608
// launch: soa_two_fields; grid 98304; block 256
// args: out out float32[25165824] nan; in fields float32[8,25165824] uniform; n int32 25165824
// expect: out = fields[0] * fields[3]
extern "C" __global__ void soa_two_fields(float* out, const float* fields, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fields[i] * fields[3 * n + i];
}
