// printing: a line from one thread in eight
// launch: hello; grid 1; block 32
// args: out out int32[32] -1
// expect: out = np.arange(32)
#include <cstdio>
extern "C" __global__ void hello(int* out) {
    if (threadIdx.x % 8 == 0) printf("thread %d of %u: %s %.2f\n", threadIdx.x, blockDim.x, "hello", threadIdx.x / 3.0);
    out[threadIdx.x] = threadIdx.x;
}
