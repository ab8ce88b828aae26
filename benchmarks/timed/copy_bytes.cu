// copy_bytes: a copy, one byte per thread
// kind: copy
// set: held out
// launch: copy_bytes; grid 4; block 256
// args: out out uint8[1000] 0; in x uint8[1000] integers(0,255); n int32 1000
// launch: copy_bytes; grid 16384; block 256
// args: out out uint8[4194304] 0; in x uint8[4194304] integers(0,255); n int32 4194304
// launch: copy_bytes; grid 131072; block 256
// args: out out uint8[33554432] 0; in x uint8[33554432] integers(0,255); n int32 33554432
// launch: copy_bytes; grid 819200; block 256
// args: out out uint8[209715200] 0; in x uint8[209715200] integers(0,255); n int32 209715200
// expect: out = x
extern "C" __global__ void copy_bytes(unsigned char* out, const unsigned char* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}
