// odd_even_sort: neighbours change places, even pairs and odd pairs in turn
// launch: sort; grid 1; block 50
// args: out values int32[100] integers(-500,500); n int32 100
// expect: values = np.sort(values)
extern "C" __global__ void sort(int* values, int n) {
#pragma unroll 1
    for (int pass = 0; pass < n; pass++) {
        int i = 2 * threadIdx.x + pass % 2;
        if (i + 1 < n) {
            int a = values[i], b = values[i + 1];
            if (a > b) {
                values[i] = b;
                values[i + 1] = a;
            }
        }
        __syncthreads();
    }
}
