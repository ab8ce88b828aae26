// binary_search: where each value would go in a sorted table
// launch: search; grid 2; block 50
// args: out out int32[100] -1; in table int32[33] arange; in values int32[100] integers(-5,40); n int32 33
// expect: out = np.searchsorted(table, values)
extern "C" __global__ void search(int* out, const int* table, const int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (table[middle] < values[i]) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}
