// local_array: insertion sort of eight numbers a thread in a local array
// launch: sort; grid 2; block 32
// args: out out int32[64,8] -1; in in int32[64,8] integers(0,100)
extern "C" __global__ void sort(int* out, const int* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, mine[8];
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        int value = in[8 * i + k], at = k;
        while (at > 0 && mine[at - 1] > value) {
            mine[at] = mine[at - 1];
            at--;
        }
        mine[at] = value;
    }
    for (int k = 0; k < 8; k++) out[8 * i + k] = mine[k];
}
