// latency.cu: cycles per step of a chain in which each step waits for the one before
// One thread (of OPERATIONS: one warp) walks each chain twice: the first walk brings code and data in, the second is measured. `never` is 0,
// which the compiler does not know: it must keep the work whose result is stored under that condition.
using Address = unsigned long long;

constexpr int UNROLLED = 256;  // steps per round, so that the loop's own instructions hardly count
constexpr int MEMORY_STEPS = 16;

struct FFMA {
    using T = float;
    static __device__ void step(T& x, T a, T b) { asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b)); }
};
struct DFMA {
    using T = double;
    static __device__ void step(T& x, T a, T b) { asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(x) : "d"(a), "d"(b)); }
};
struct IMAD {
    using T = int;
    static __device__ void step(T& x, T a, T b) { asm volatile("mad.lo.s32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b)); }
};
struct MUFU {
    using T = float;
    static __device__ void step(T& x, T, T) { asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x)); }
};
struct SHFL {
    using T = int;
    static __device__ void step(T& x, T, T) { asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x)); }
};

template <class Op>
__global__ void chain(long long* cycles, typename Op::T a, typename Op::T b, int rounds, int never)
{
    typename Op::T x = a + (typename Op::T)threadIdx.x;  // a shuffle of what all lanes share is left out
    long long start = 0, end = 0;
    #pragma unroll 1
    for (int walk = 0; walk < 2; ++walk) {
        start = clock64();
        #pragma unroll 1
        for (int round = 0; round < rounds; ++round)
            #pragma unroll
            for (int i = 0; i < UNROLLED; ++i)
                Op::step(x, a, b);
        end = clock64();
    }
    if (threadIdx.x == 0)
        cycles[0] = never ? (long long)x : end - start;
}

// A ring of `count` addresses, `stride` elements apart; each holds the address of the one `jump` further.
extern "C" __global__ void link(Address* memory, int count, int stride, int jump)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        memory[(long long)i * stride] = (Address)(memory + (long long)((i + jump) % count) * stride);
}

struct L1 {
    static __device__ void step(Address& p, Address) { asm volatile("ld.global.u64 %0, [%0];" : "+l"(p) :: "memory"); }
};
struct L2 {
    static __device__ void step(Address& p, Address) { asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(p) :: "memory"); }
};
struct ATOMIC {
    static __device__ void step(Address& p, Address zero) {
        asm volatile("atom.global.add.u64 %0, [%0], %1;" : "+l"(p) : "l"(zero) : "memory");
    }
};

// `warm` and `steps` are multiples of MEMORY_STEPS.
template <class Op>
__global__ void chase(long long* cycles, Address* first, Address zero, int warm, int steps, int never)
{
    Address p = (Address)first;
    #pragma unroll 1
    for (int i = 0; i < warm; i += MEMORY_STEPS)
        #pragma unroll
        for (int j = 0; j < MEMORY_STEPS; ++j)
            Op::step(p, zero);
    long long start = clock64();
    #pragma unroll 1
    for (int i = 0; i < steps; i += MEMORY_STEPS)
        #pragma unroll
        for (int j = 0; j < MEMORY_STEPS; ++j)
            Op::step(p, zero);
    if (never)
        cycles[1] = (long long)p;
    cycles[0] = clock64() - start;
}

struct LDS {
    static __device__ void step(unsigned& p, unsigned) { asm volatile("ld.shared.u32 %0, [%0];" : "+r"(p) :: "memory"); }
};
struct ATOMS {
    static __device__ void step(unsigned& p, unsigned zero) {
        asm volatile("atom.shared.add.u32 %0, [%0], %1;" : "+r"(p) : "r"(zero) : "memory");
    }
};

// The element of shared memory that holds its own address.
template <class Op>
__global__ void chase_shared(long long* cycles, unsigned zero, int rounds, int never)
{
    __shared__ unsigned ring[1];
    unsigned p = (unsigned)__cvta_generic_to_shared(ring);
    ring[0] = p;
    long long start = 0, end = 0;
    #pragma unroll 1
    for (int walk = 0; walk < 2; ++walk) {
        start = clock64();
        #pragma unroll 1
        for (int round = 0; round < rounds; ++round)
            #pragma unroll
            for (int i = 0; i < UNROLLED; ++i)
                Op::step(p, zero);
        end = clock64();
    }
    cycles[0] = end - start;
    if (never)
        cycles[0] = p;
}

// All threads of a block meet again and again.
extern "C" __global__ void barriers(long long* cycles, int rounds)
{
    long long start = 0, end = 0;
    #pragma unroll 1
    for (int walk = 0; walk < 2; ++walk) {
        __syncthreads();
        start = clock64();
        #pragma unroll 1
        for (int round = 0; round < rounds; ++round)
            #pragma unroll
            for (int i = 0; i < MEMORY_STEPS; ++i)
                __syncthreads();
        end = clock64();
    }
    if (threadIdx.x == 0)
        cycles[0] = end - start;
}
