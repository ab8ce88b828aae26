// hgemm_wgmma: one warpgroup multiplies from shared memory by wgmma; A K-major, B MN-major, swizzles of 128 bytes
// launch: hgemm; grid 2; block 128
// args: out C float32[64,128] nan; in A float16[64,128] uniform; in B float16[128,128] uniform; K int32 128
#include <cuda_fp16.h>
#define N 64
typedef unsigned long long u64;

// Pieces of 16 bytes lie in rows of 128 bytes; the row's number is combined with the piece's.
__device__ int swizzled(int row, int piece) { return row * 8 + (piece ^ row % 8); }

__device__ u64 descriptor(const void* at, u64 leading, u64 stride) {
    u64 start = __cvta_generic_to_shared(at);
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1ull << 62;
}

extern "C" __global__ void hgemm(float* C, const half* A, const half* B, int K) {
    __shared__ __align__(1024) uint4 As[64 * 8], Bs[64 * 8];
    int t = threadIdx.x, columns = N * gridDim.x;
    float d[32];
    for (int k = 0; k < K; k += 64) {
        __syncthreads();
        for (int i = t; i < 64 * 8; i += 128) {
            int row = i / 8, piece = i % 8;
            As[swizzled(row, piece)] = *(const uint4*)&A[row * K + k + 8 * piece];
            Bs[swizzled(row, piece)] = *(const uint4*)&B[(k + row) * columns + N * blockIdx.x + 8 * piece];
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int step = 0; step < 4; step++) {
            u64 a = descriptor((const char*)As + 32 * step, 16, 1024), b = descriptor(Bs + 16 * 8 * step, 16, 1024);
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1, 0, 1;\n}"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                  "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                : "l"(a), "l"(b), "r"(k + step));  // the first product starts at zero
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    int row = t / 32 * 16 + t % 32 / 4, column = N * blockIdx.x + t % 4 * 2;
    for (int i = 0; i < 32; i += 2)
        *(float2*)&C[(row + i / 2 % 2 * 8) * columns + column + i / 4 * 8] = make_float2(d[i], d[i + 1]);
}
