// mma_assembly: one m16n8k8 product of tf32 on tensor cores, fragments laid out by hand; small integers, so exact
// launch: product; grid 1; block 32
// args: out C float32[16,8] nan; in A float32[16,8] integers(-8,9); in B float32[8,8] integers(-8,9)
// expect: C = A @ B
extern "C" __global__ void product(float* C, const float* A, const float* B) {
    int group = threadIdx.x / 4, lane = threadIdx.x % 4;
    unsigned a0 = __float_as_uint(A[group * 8 + lane]), a1 = __float_as_uint(A[(group + 8) * 8 + lane]);
    unsigned a2 = __float_as_uint(A[group * 8 + lane + 4]), a3 = __float_as_uint(A[(group + 8) * 8 + lane + 4]);
    unsigned b0 = __float_as_uint(B[lane * 8 + group]), b1 = __float_as_uint(B[(lane + 4) * 8 + group]);
    float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    C[group * 8 + 2 * lane] = c0;
    C[group * 8 + 2 * lane + 1] = c1;
    C[(group + 8) * 8 + 2 * lane] = c2;
    C[(group + 8) * 8 + 2 * lane + 1] = c3;
}
