// shared_stride: loads from shared memory STRIDE words apart: conflicts of as many ways
// kind: shared memory
// set: build
// launch: shared_stride; grid 2; block 256; options -DSTRIDE=2
// args: out out float32[2,256] nan; in x float32[2,256] uniform; rounds int32 1
// launch: shared_stride; grid 1056; block 256; options -DSTRIDE=1
// args: out out float32[1056,256] nan; in x float32[1056,256] uniform; rounds int32 512
// launch: shared_stride; grid 2112; block 256; options -DSTRIDE=2
// args: out out float32[2112,256] nan; in x float32[2112,256] uniform; rounds int32 512
// launch: shared_stride; grid 1056; block 256; options -DSTRIDE=8
// args: out out float32[1056,256] nan; in x float32[1056,256] uniform; rounds int32 512
// launch: shared_stride; grid 528; block 256; options -DSTRIDE=32
// args: out out float32[528,256] nan; in x float32[528,256] uniform; rounds int32 512
// launch: shared_stride; grid 132; block 256; options -DSTRIDE=4
// args: out out float32[132,256] nan; in x float32[132,256] uniform; rounds int32 1024
// expect: out = (x + np.arange(4, dtype=np.float32)[:, None, None]).swapaxes(0, 1).reshape(2, 1024)[:, np.arange(256) * 2 % 1024]
extern "C" __global__ void shared_stride(float* out, const float* x, int rounds) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    for (int j = 0; j < 4; j++) s[t + 256 * j] = x[blockIdx.x * 256 + t] + j;
    __syncthreads();
    float sum = 0;
    int at = t * STRIDE % 1024;
    for (int j = 0; j < rounds; j++) {
        sum += s[at];
        at = (at + 32) % 1024;
    }
    out[blockIdx.x * 256 + t] = sum;
}
