// scatter_add: atomic additions to random places
// kind: gather
// set: build
// launch: scatter_add; grid 3; block 256
// args: out out int32[200] 0; in index int32[600] integers(0,200); n int32 600
// launch: scatter_add; grid 8192; block 256
// args: out out int32[1048576] 0; in index int32[2097152] integers(0,1048576); n int32 2097152
// launch: scatter_add; grid 32768; block 256
// args: out out int32[16777216] 0; in index int32[8388608] integers(0,16777216); n int32 8388608
// launch: scatter_add; grid 32768; block 256
// args: out out int32[65536] 0; in index int32[8388608] integers(0,65536); n int32 8388608
// expect: out = np.bincount(index, np.arange(n) % 7, len(out))
extern "C" __global__ void scatter_add(int* out, const int* index, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&out[index[i]], i % 7);
}
