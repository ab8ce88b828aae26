// softmax_online: one warp per row; maximum and sum in a single pass, rescaled as the maximum grows
// launch: softmax; grid 3; block 64
// args: out out float32[5,77] nan; in in float32[5,77] uniform(-30,30); rows int32 5; n int32 77
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void softmax(float* out, const float* in, int rows, int n) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (row >= rows) return;
    const float* x = in + row * n;
    float largest = -INFINITY, sum = 0.0f;
    for (int i = warp.thread_rank(); i < n; i += warp.size()) {
        float before = largest;
        largest = fmaxf(largest, x[i]);
        sum = sum * expf(before - largest) + expf(x[i] - largest);
    }
    float all = cg::reduce(warp, largest, cg::greater<float>{});
    sum = cg::reduce(warp, sum * expf(largest - all), cg::plus<float>{});
    for (int i = warp.thread_rank(); i < n; i += warp.size()) __stcs(out + row * n + i, expf(__ldcs(x + i) - all) / sum);
}
