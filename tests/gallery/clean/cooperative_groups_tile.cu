// cooperative_groups_tile: tiles of eight threads sum with shuffles, the block synchronises through its group
// launch: sums; grid 2; block 64
// args: out out int32[2,8] -1; out last int32[2] -1; in in int32[128] integers(-20,20)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void sums(int* out, int* last, const int* in) {
    __shared__ int s[8];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int value = in[blockIdx.x * 64 + block.thread_rank()];
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) value += tile.shfl_down(value, offset);
    if (tile.thread_rank() == 0) s[tile.meta_group_rank()] = value;
    block.sync();
    if (block.thread_rank() < 8) out[blockIdx.x * 8 + block.thread_rank()] = s[7 - block.thread_rank()];
    if (block.thread_rank() == block.size() - 1) last[blockIdx.x] = s[0] + tile.any(value > 1000);
}
