// race_global_neighbour: a block reads what its neighbour block writes
// launch: shift; grid 4; block 32
// args: out a int32[129] arange
extern "C" __global__ void shift(int* a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int next = a[i + 1];  // OTHER
    __syncthreads();
    a[i] = next;  // BUG racecheck race
}
