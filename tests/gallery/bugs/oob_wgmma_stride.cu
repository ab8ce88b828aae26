// oob_wgmma_stride: the stride byte offset counts bytes, not units of 16, so B's later columns lie too far away
// launch: product; grid 1; block 128
// args: out C float32[64,32] nan; in B float16[32,16] uniform
#include <cuda_fp16.h>

extern "C" __global__ void product(float* C, const half* B) {
    __shared__ __align__(128) half Bs[32 * 16];
    int t = threadIdx.x;
    float d[16] = {};
    for (int i = t; i < 32 * 16; i += 128) Bs[i / 128 * 128 + i % 16 / 8 * 64 + i / 16 % 8 * 8 + i % 8] = B[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    unsigned one = 0x3c003c00;
    unsigned long long start = __cvta_generic_to_shared(Bs);
    unsigned long long b = start >> 4 | 128ull >> 4 << 16 | 256ull << 32;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "  // BUG memcheck descriptor
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%16,%16,%16}, %17, 1, 1, 1, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
        : "r"(one), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
    for (int i = 0; i < 16; i++) C[(row + i / 2 % 2 * 8) * 32 + column + i / 4 * 8 + i % 2] = d[i];
}
