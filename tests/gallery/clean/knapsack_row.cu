// knapsack_row: dynamic programming over items; two rows that change places, one block for all capacities
// launch: knapsack; grid 1; block 64; shared 1608
// args: out best int32[201] -1; in weight int32[12] integers(5,60); in value int32[12] integers(1,100); items int32 12; capacity int32 200
extern "C" __global__ void knapsack(int* best, const int* weight, const int* value, int items, int capacity) {
    extern __shared__ int rows[];
    int *old = rows, *now = rows + capacity + 1;
    for (int c = threadIdx.x; c <= capacity; c += blockDim.x) old[c] = 0;
    for (int i = 0; i < items; i++) {
        __syncthreads();
        int w = weight[i], v = value[i];
        for (int c = threadIdx.x; c <= capacity; c += blockDim.x) now[c] = c >= w ? max(old[c], old[c - w] + v) : old[c];
        int* swap = old;
        old = now, now = swap;
    }
    __syncthreads();
    for (int c = threadIdx.x; c <= capacity; c += blockDim.x) best[c] = old[c];
}
