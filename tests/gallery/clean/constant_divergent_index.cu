// constant_divergent_index: a table in constant memory, a different entry in each lane
// launch: lookup; grid 1; block 64
// args: out out int32[64] -1; in index int32[64] integers(0,8)
// expect: out = np.array([3, 1, 4, 1, 5, 9, 2, 6])[index] + np.array([10, 20, 30, 40])[index % 4]
__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ const int more[4] = {10, 20, 30, 40};

extern "C" __global__ void lookup(int* out, const int* index) {
    int i = index[threadIdx.x];
    out[threadIdx.x] = table[i] + more[i % 4];
}
