// floyd_warshall: all shortest paths in one block, a barrier between steps
// launch: paths; grid 1; block 20 20
// args: out d int32[20,20] integers(1,100); n int32 20
extern "C" __global__ void paths(int* d, int n) {
    int i = threadIdx.y, j = threadIdx.x;
    for (int k = 0; k < n; k++) {
        int through = d[i * n + k] + d[k * n + j];
        bool shorter = i != k && j != k && through < d[i * n + j];
        __syncthreads();
        if (shorter) d[i * n + j] = through;
        __syncthreads();
    }
}
