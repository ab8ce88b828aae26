// bfs_levels: breadth-first search in one block; each pass visits the frontier's neighbours until none is new
// launch: bfs; grid 1; block 64
// args: out level int32[40] -1; in start int32[41] = 0 2 5 7 7 9 12 13 15 18 20 21 24 26 26 28 31 33 34 36 39 41 43 44 46 49 51 52 54 57 59 60 60 62 64 66 69 71 72 75 80; in edge int32[80] integers(0,40); source int32 0; nodes int32 40
extern "C" __global__ void bfs(volatile int* level, const int* start, const int* edge, int source, int nodes) {
    __shared__ bool again;
    if (threadIdx.x == 0) level[source] = 0;
    for (int depth = 0;; ++depth) {
        if (threadIdx.x == 0) again = false;
        __syncthreads();
        for (int node = threadIdx.x; node < nodes; node += blockDim.x) {
            if (level[node] != depth) continue;
            for (int e = start[node]; e < start[node + 1]; ++e)
                if (atomicCAS((int*)&level[edge[e]], -1, depth + 1) == -1) again = true;
        }
        __syncthreads();
        bool more = again;
        __syncthreads();
        if (!more) break;
    }
}
