// reduce_cooperative: a sum by cooperative groups: strided loads, tiles of 32, one atomic per block
// launch: reduce; grid 3; block 96
// args: out sum float64[1] 0; in in float64[1000] uniform; n uint32 1000
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void reduce(double* sum, const double* in, unsigned n) {
    __shared__ double warps[32];
    auto grid = cg::this_grid();
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    double mine = 0;
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) mine += in[i];
    mine = cg::reduce(tile, mine, cg::plus<double>());
    if (tile.thread_rank() == 0) warps[tile.meta_group_rank()] = mine;
    cg::sync(block);
    if (block.thread_rank() == 0) {
        double total = 0;
        for (unsigned w = 0; w < tile.meta_group_size(); w++) total += warps[w];
        atomicAdd(sum, total);
    }
}
