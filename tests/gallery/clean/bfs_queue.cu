// bfs_queue: one level of a breadth-first search; the next frontier goes to a block's queue, then to the global one
// launch: expand; grid 2; block 32; options -DCAPACITY=128
// args: scratch next int32[128] -1; out size int32[1] 0; out queued int32[60] 0; out visited int32[60] = 1 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0; in frontier int32[10] = 9 3 5 1 7 0 2 4 6 8; count int32 10; in edge int32[10,6] integers(0,60); degree int32 6
extern "C" __global__ void expand(int* next, int* size, int* queued, int* visited, const int* frontier, int count, const int* edge, int degree) {
    __shared__ int queue[CAPACITY], tail, base;
    if (threadIdx.x == 0) tail = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int node = frontier[i];
        for (int e = 0; e < degree; ++e) {
            int neighbour = edge[node * degree + e];
            if (atomicExch(visited + neighbour, 1) == 0) {
                int slot = atomicAdd(&tail, 1);
                if (slot < CAPACITY) queue[slot] = neighbour;
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) base = atomicAdd(size, tail);
    __syncthreads();
    for (int k = threadIdx.x; k < tail; k += blockDim.x) {
        next[base + k] = queue[k];
        atomicAdd(queued + queue[k], 1);
    }
}
