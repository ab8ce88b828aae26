// triangle_count: triangles of a graph: rows of a bit matrix, ANDed and counted, one pair of nodes per thread
// launch: triangles; grid 3 3; block 16 16
// args: out count uint64[1] 0; in bits uint32[40,2] integers(0,4294967296); n int32 40
extern "C" __global__ void triangles(unsigned long long* count, const uint2* bits, int n) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    int common = 0;
    if (i < j && j < n) {
        uint2 a = bits[i], b = bits[j];
        bool joined = (j < 32 ? a.x >> j : a.y >> (j - 32)) & 1;
        if (joined) common = __popc(a.x & b.x) + __popc(a.y & b.y);
    }
    int total = __syncthreads_or(common) ? common : 0;
    unsigned sum = __reduce_add_sync(__activemask(), (unsigned)total);
    if (((threadIdx.y * blockDim.x + threadIdx.x) & 31) == 0 && sum) atomicAdd(count, (unsigned long long)sum);
}
