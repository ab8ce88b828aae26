// clock: ticks do not go backwards
// launch: ticks; grid 1; block 32
// args: out forwards int32[32] -1; out sum float32[32] nan
// expect: forwards = np.ones(32)
// expect: sum = np.arange(32).cumsum()
extern "C" __global__ void ticks(int* forwards, float* sum) {
    long long start = clock64();
    float total = 0.0f;
    for (int i = 0; i <= threadIdx.x; i++) total += i;
    sum[threadIdx.x] = total;
    forwards[threadIdx.x] = clock64() >= start;
}
