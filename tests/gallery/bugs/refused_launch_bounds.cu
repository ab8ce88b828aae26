// refused_launch_bounds: a block larger than the kernel was compiled for
// launch: fill; grid 1; block 128
// args: out out int32[128] -1
// refused: launch_bounds
extern "C" __global__ void __launch_bounds__(64) fill(int* out) { out[threadIdx.x] = threadIdx.x; }
