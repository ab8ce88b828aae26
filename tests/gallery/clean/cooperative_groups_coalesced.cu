// cooperative_groups_coalesced: the threads that took a branch add their number with one atomic
// launch: pick; grid 1; block 96
// args: scratch count int32[1] 0; out kept int32[96] -1; out total int32[1] 0; in in int32[96] integers(0,100)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void pick(int* count, int* kept, int* total, const int* in) {
    int t = threadIdx.x;
    kept[t] = 0;
    if (in[t] % 3 == 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        int first = 0;
        if (active.thread_rank() == 0) first = atomicAdd(count, active.size());
        first = active.shfl(first, 0);
        kept[t] = 1 + active.thread_rank();
        atomicAdd(total, in[t]);
    }
}
