// atomics_float: sums in float and double, a maximum through compare-and-swap
// launch: atomics; grid 3; block 64
// args: out single float32[1] 0; out wide float64[1] 0; out largest float32[1] -100; in in float32[192] uniform
__device__ void atomic_max(float* address, float value) {
    int* bits = (int*)address;
    int old = *bits, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= value) break;
        old = atomicCAS(bits, assumed, __float_as_int(value));
    } while (assumed != old);
}

extern "C" __global__ void atomics(float* single, double* wide, float* largest, const float* in) {
    float value = in[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(single, value);
    atomicAdd(wide, (double)value);
    atomic_max(largest, value);
}
