// assert_fails: an assertion that does not hold in one thread
// launch: check; grid 1; block 32
// args: out out int32[32] -1; in in int32[32] arange
#include <cassert>
extern "C" __global__ void check(int* out, const int* in) {
    assert(in[threadIdx.x] < 31);  // BUG memcheck assert
    out[threadIdx.x] = in[threadIdx.x];
}
