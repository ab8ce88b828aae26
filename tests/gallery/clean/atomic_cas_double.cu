// atomic_cas_double: addition of doubles by compare-and-swap on their bits, as it was before compute capability 6
// launch: sum; grid 2; block 64
// args: out sum float64[1] 0; in in float64[128] uniform
__device__ double add(double* address, double value) {
    unsigned long long* bits = (unsigned long long*)address;
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

extern "C" __global__ void sum(double* sum, const double* in) { add(sum, in[blockIdx.x * 64 + threadIdx.x]); }
