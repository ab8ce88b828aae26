// ampere.h: instructions that C++ has no words for, each under its name in PTX: ldmatrix, mma, cp.async
// Rows of shared memory have 128 bytes, 8 chunks of 16. Chunk c of row r lies at place c ^ r % 8, so that the
// same chunk of 8 rows lies in different banks: the swizzle that 4_wgmma has the hardware do.
__device__ T* swizzled(T (*tile)[128 / T_BYTES], int row, int chunk)
{
    return &tile[row][(chunk ^ row % 8) * CHUNK];
}

// Read four matrices of 8 rows by 16 bytes. Lane l names row l % 8 of matrix l / 8, and gets of each matrix
// bytes 4 * (l % 4) … of row l / 4: what mma takes.
__device__ void ldmatrix(unsigned (&four)[4], const T* row)
{
    unsigned address = __cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3]) : "r"(address) : "memory");
}

// sum (16,8) += a (16,k) b (8,k)^T, with k of 32 bytes
#define MMA_half "m16n8k16.row.col.f32.f16.f16.f32"
#define MMA___nv_bfloat16 "m16n8k16.row.col.f32.bf16.bf16.f32"
#define MMA_tf32 "m16n8k8.row.col.f32.tf32.tf32.f32"
#define MMA___nv_fp8_e4m3 "m16n8k32.row.col.f32.e4m3.e4m3.f32"
#define MMA_OF(type) MMA_##type
#define MMA(type) MMA_OF(type)
__device__ void mma(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned." MMA(DTYPE) " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copy `bytes` of 16 to shared memory while the thread goes on, and fill the rest of the 16 with 0.
__device__ void cp_async(T* to, const T* from, int bytes)
{
    unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(address), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ void cp_async_commit_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int PENDING> __device__ void cp_async_wait_group()  // until at most PENDING groups are on the way
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}
