// hgemm_ldmatrix: ldmatrix and mma.sync by inline PTX, tiles of shared memory swizzled against conflicts
// launch: hgemm; grid 1; block 32
// args: out C float32[16,8] nan; in A float16[16,64] uniform; in B float16[8,64] uniform; K int32 64
#include <cuda_fp16.h>
#define LDMATRIX_X4(r0, r1, r2, r3, at) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at))
#define LDMATRIX_X2(r0, r1, at) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(at))

__device__ int swizzled(int row, int chunk) { return row * 64 + ((chunk ^ (row & 7)) << 3); }

extern "C" __global__ void hgemm(float2* C, const half* A, const half* B, int K) {
    __shared__ __align__(128) half As[16 * 64], Bs[8 * 64];
    int lane = threadIdx.x;
    for (int i = lane; i < 16 * 8; i += 32) *(uint4*)&As[swizzled(i / 8, i % 8)] = ((const uint4*)A)[i];
    for (int i = lane; i < 8 * 8; i += 32) *(uint4*)&Bs[swizzled(i / 8, i % 8)] = ((const uint4*)B)[i];
    __syncthreads();
    float d[4] = {};
    for (int k = 0; k < K; k += 16) {
        unsigned a[4], b[2];
        LDMATRIX_X4(a[0], a[1], a[2], a[3], (unsigned)__cvta_generic_to_shared(&As[swizzled(lane % 16, k / 8 + lane / 16)]));
        LDMATRIX_X2(b[0], b[1], (unsigned)__cvta_generic_to_shared(&Bs[swizzled(lane % 8, k / 8 + lane / 8 % 2)]));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    C[lane / 4 * 4 + lane % 4] = make_float2(d[0], d[1]);
    C[(lane / 4 + 8) * 4 + lane % 4] = make_float2(d[2], d[3]);
}
