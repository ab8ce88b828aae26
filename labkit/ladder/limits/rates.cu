// rates.cu: what one multiprocessor does per clock, with enough warps to be busy all the time
// One block works; each warp notes its first and its last cycle. The walk that is measured follows one of a single round,
// which fills the caches of instructions and data. `never` and `step` are 0, which the compiler does not know: it must
// keep the work whose result is stored if `never`, and cannot merge accesses that are `step` apart.
constexpr int CHAINS = 8;      // independent values per thread
constexpr int BODY = 256;      // instructions per iteration: 4 KiB, beside which the three of the loop hardly count
constexpr int ACCESSES = 8;    // loads or stores per iteration
constexpr int PATTERN = 4096;  // bytes that the 32 lanes of an access span at most

// x: a value of the thread; y: its neighbour, which keeps two additions from being merged; c, d: constants.
struct Single {
    static constexpr int KINDS = 1;
};
struct FFMA : Single {
    using T = float;
    static __device__ void step(T& x, T y, T c, T d) { asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(c), "f"(d)); }
};
struct DFMA : Single {
    using T = double;
    static __device__ void step(T& x, T y, T c, T d) { asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(x) : "d"(c), "d"(d)); }
};
struct HFMA2 : Single {
    using T = int;
    static __device__ void step(T& x, T y, T c, T d) { asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(c), "r"(d)); }
};
struct IADD : Single {
    using T = int;
    static __device__ void step(T& x, T y, T c, T d) { asm volatile("add.s32 %0, %0, %1;" : "+r"(x) : "r"(y)); }
};
struct IADD3 : Single {
    using T = int;
    static __device__ void step(T& x, T y, T c, T d) {
        asm volatile("{.reg .s32 t; add.s32 t, %0, %1; add.s32 %0, t, %2;}" : "+r"(x) : "r"(y), "r"(c));
    }
};
struct LOP3 : Single {
    using T = int;
    static __device__ void step(T& x, T y, T c, T d) {
        asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(x) : "r"(y), "r"(c));
    }
};
struct IMAD : Single {
    using T = int;
    static __device__ void step(T& x, T y, T c, T d) { asm volatile("mad.lo.s32 %0, %0, %1, %2;" : "+r"(x) : "r"(c), "r"(d)); }
};
struct IMAD_WIDE : Single {
    using T = long long;
    static __device__ void step(T& x, T y, T c, T d) {
        asm volatile("mul.wide.s32 %0, %1, %2;" : "=l"(x) : "r"((int)x), "r"((int)(x >> 32)));
    }
};
struct MUFU : Single {
    using T = float;
    static __device__ void step(T& x, T y, T c, T d) { asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x)); }
};
struct F2I : Single {
    using T = float;
    static __device__ void step(T& x, T y, T c, T d) {
        int i;
        asm volatile("cvt.rzi.s32.f32 %0, %1;" : "=r"(i) : "f"(x));
        x = __int_as_float(i);
    }
};
struct I2F : Single {
    using T = int;
    static __device__ void step(T& x, T y, T c, T d) {
        float f;
        asm volatile("cvt.rn.f32.s32 %0, %1;" : "=f"(f) : "r"(x));
        x = __float_as_int(f);
    }
};
struct SHFL : Single {
    using T = int;
    static __device__ void step(T& x, T y, T c, T d) { asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x)); }
};
struct POPC : Single {
    using T = int;
    static __device__ void step(T& x, T y, T c, T d) { asm volatile("popc.b32 %0, %0;" : "+r"(x)); }
};

// Two kinds of instructions in turn: two per step.
template <class Other>
struct FFMA_and {
    struct T {
        float f;
        typename Other::T other;
        __device__ T() {}
        __device__ explicit T(int i) : f(i), other(i) {}
        __device__ explicit operator long long() const { return (long long)f ^ (long long)other; }
    };
    static constexpr int KINDS = 2;
    static __device__ void step(T& x, const T& y, const T& c, const T& d) {
        FFMA::step(x.f, y.f, c.f, d.f);
        Other::step(x.other, y.other, c.other, d.other);
    }
};

// The clock after the barrier. "BAR.SYNC.DEFER_BLOCKING" lets the instruction behind it go first, and a warp that has
// ended its walk early would begin the next; so this asks for the barrier's result, and decides by it.
__device__ long long clock_behind_barrier()
{
    return __syncthreads_count(threadIdx.x + 1) ? clock64() : 0;
}

__device__ void note(long long* starts, long long* ends, long long start, long long end)
{
    if (threadIdx.x % 32 == 0) {
        int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
        starts[warp] = start;
        ends[warp] = end;
    }
}

template <class Op>
__global__ void issue(long long* starts, long long* ends, int constant, int rounds, int never)
{
    using T = typename Op::T;
    T x[CHAINS], c(constant), d(constant + 1);
    #pragma unroll
    for (int i = 0; i < CHAINS; ++i)
        x[i] = T((int)threadIdx.x + i);
    long long start = 0, end = 0;
    #pragma unroll 1
    for (int walk = 0; walk < 2; ++walk) {
        int last = walk ? rounds : 1;
        start = clock_behind_barrier();
        #pragma unroll 1
        for (int round = 0; round < last; ++round)
            #pragma unroll
            for (int k = 0; k < BODY / CHAINS / Op::KINDS; ++k)
                #pragma unroll
                for (int i = 0; i < CHAINS; ++i)
                    Op::step(x[i], x[(i + 1) % CHAINS], c, d);
        end = clock64();
    }
    note(starts, ends, start, end);
    if (never)
        #pragma unroll
        for (int i = 0; i < CHAINS; ++i)
            ends[i] = (long long)x[i];
}

struct B32 {
    static __device__ unsigned load(const char* p) {
        unsigned x;
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
        return x;
    }
    static __device__ void store(char* p, unsigned x) { asm volatile("st.global.u32 [%0], %1;" :: "l"(p), "r"(x) : "memory"); }
    static __device__ unsigned load_shared(unsigned p) {
        unsigned x;
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(x) : "r"(p) : "memory");
        return x;
    }
    static __device__ void store_shared(unsigned p, unsigned x) {
        asm volatile("st.volatile.shared.u32 [%0], %1;" :: "r"(p), "r"(x) : "memory");
    }
};
struct B64 {
    static __device__ unsigned load(const char* p) {
        unsigned x, y;
        asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(p) : "memory");
        return x ^ y;
    }
};
struct B128 {
    static __device__ unsigned load(const char* p) {
        unsigned x, y, z, w;
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(p) : "memory");
        return x ^ y ^ z ^ w;
    }
    static __device__ void store(char* p, unsigned x) {
        asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" :: "l"(p), "r"(x) : "memory");
    }
    static __device__ unsigned load_shared(unsigned p) {
        unsigned x, y, z, w;
        asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(p) : "memory");
        return x ^ y ^ z ^ w;
    }
    static __device__ void store_shared(unsigned p, unsigned x) {
        asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(p), "r"(x) : "memory");
    }
};
struct ADD_S32 {
    static __device__ void store_shared(unsigned p, unsigned x) {
        asm volatile("red.shared.add.u32 [%0], %1;" :: "r"(p), "r"(x) : "memory");
    }
};
struct ADD_F32 {
    static __device__ void store_shared(unsigned p, unsigned x) {
        asm volatile("red.shared.add.f32 [%0], %1;" :: "r"(p), "f"((float)x) : "memory");
    }
};

// All warps load the same ACCESSES * PATTERN bytes, which the L1 cache holds; offsets: bytes, one per lane.
template <class Width>
__global__ void load(long long* starts, long long* ends, const char* data, const int* offsets, int step, int rounds, int never)
{
    const char* p = data + offsets[threadIdx.x % 32];
    unsigned seen = 0;
    long long start = 0, end = 0;
    #pragma unroll 1
    for (int walk = 0; walk < 2; ++walk) {
        int last = walk ? rounds : 1;
        start = clock_behind_barrier();
        #pragma unroll 1
        for (int round = 0; round < last; ++round, p += step)
            #pragma unroll
            for (int i = 0; i < ACCESSES; ++i)
                seen ^= Width::load(p + i * PATTERN);
        end = clock64();
    }
    note(starts, ends, start, end);
    if (never)
        ends[0] = seen;
}

// Each warp stores to ACCESSES * PATTERN bytes of its own.
template <class Width>
__global__ void store(long long* starts, long long* ends, char* data, const int* offsets, int step, int rounds)
{
    char* p = data + threadIdx.x / 32 * (ACCESSES * PATTERN) + offsets[threadIdx.x % 32];
    long long start = 0, end = 0;
    #pragma unroll 1
    for (int walk = 0; walk < 2; ++walk) {
        int last = walk ? rounds : 1;
        start = clock_behind_barrier();
        #pragma unroll 1
        for (int round = 0; round < last; ++round, p += step)
            #pragma unroll
            for (int i = 0; i < ACCESSES; ++i)
                Width::store(p + i * PATTERN, round + i);
        end = clock64();
    }
    note(starts, ends, start, end);
}

constexpr int SHARED_WARPS = 8;  // each has PATTERN bytes; loads are of more warps, which share them

// The places of a thread: offsets[lane] of its warp's part, each `shift` bytes after the one before. They stay the same:
// to add to 8 addresses would take more time than 8 accesses.
__device__ void places(unsigned* at, unsigned first, const int* offsets, int shift)
{
    #pragma unroll
    for (int i = 0; i < ACCESSES; ++i)
        at[i] = first + threadIdx.x / 32 % SHARED_WARPS * PATTERN + offsets[threadIdx.x % 32] + i * shift;
}

template <class Width>
__global__ void load_shared(long long* starts, long long* ends, const int* offsets, int shift, int rounds, int never)
{
    __shared__ uint4 tile[SHARED_WARPS * PATTERN / 16];
    for (int i = threadIdx.x; i < SHARED_WARPS * PATTERN / 16; i += blockDim.x)
        tile[i] = make_uint4(i, i, i, i);
    unsigned at[ACCESSES], seen = 0;
    places(at, (unsigned)__cvta_generic_to_shared(tile), offsets, shift);
    long long start = 0, end = 0;
    #pragma unroll 1
    for (int walk = 0; walk < 2; ++walk) {
        int last = walk ? rounds : 1;
        start = clock_behind_barrier();
        #pragma unroll 1
        for (int round = 0; round < last; ++round)
            #pragma unroll
            for (int i = 0; i < ACCESSES; ++i)
                seen ^= Width::load_shared(at[i]);
        end = clock64();
    }
    note(starts, ends, start, end);
    if (never)
        ends[0] = seen;
}

template <class Width>
__global__ void store_shared(long long* starts, long long* ends, const int* offsets, int shift, int rounds)
{
    __shared__ uint4 tile[SHARED_WARPS * PATTERN / 16];
    for (int i = threadIdx.x; i < SHARED_WARPS * PATTERN / 16; i += blockDim.x)
        tile[i] = make_uint4(0, 0, 0, 0);
    unsigned at[ACCESSES];
    places(at, (unsigned)__cvta_generic_to_shared(tile), offsets, shift);
    long long start = 0, end = 0;
    #pragma unroll 1
    for (int walk = 0; walk < 2; ++walk) {
        int last = walk ? rounds : 1;
        start = clock_behind_barrier();
        #pragma unroll 1
        for (int round = 0; round < last; ++round)
            #pragma unroll
            for (int i = 0; i < ACCESSES; ++i)
                Width::store_shared(at[i], threadIdx.x);
        end = clock64();
    }
    note(starts, ends, start, end);
}
