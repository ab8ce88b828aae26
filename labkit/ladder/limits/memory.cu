// memory.cu: what all multiprocessors together read, write and add per second
// n: elements of 16 bytes. What is read is combined, and stored where it is `never`, a number that does not come up: so
// the compiler must keep the loads.
constexpr int EACH = 4;   // elements per thread, under way at the same time
constexpr int ADDS = 16;  // additions per thread

__device__ uint4 load(const uint4* p)
{
    uint4 x;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(p) : "memory");
    return x;
}

__device__ uint4 load_l2(const uint4* p)  // past the L1 cache
{
    uint4 x;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(p) : "memory");
    return x;
}

__device__ void store(uint4* p, uint4 x)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(p), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}

__device__ uint4 operator^(uint4 a, uint4 b) { return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w); }

__device__ void keep(uint4* sink, uint4 x, unsigned never)
{
    if ((x.x ^ x.y ^ x.z ^ x.w) == never)
        sink[0] = x;
}

// Each block reads all n elements `passes` times, and begins at a place of its own.
extern "C" __global__ void read_all(const uint4* data, uint4* sink, int n, int passes, unsigned never)
{
    uint4 seen = make_uint4(0, 0, 0, 0);
    int first = (long long)n * blockIdx.x / gridDim.x / 32 * 32;  // so that a warp reads whole lines
    #pragma unroll 1
    for (int pass = 0; pass < passes; ++pass)
        #pragma unroll 1
        for (int i = threadIdx.x; i < n; i += EACH * blockDim.x) {
            uint4 x[EACH];
            #pragma unroll
            for (int k = 0; k < EACH; ++k) {
                int at = i + k * blockDim.x;
                at = first + (at < n ? at : i);
                x[k] = load_l2(data + (at < n ? at : at - n));
            }
            #pragma unroll
            for (int k = 0; k < EACH; ++k)
                seen = seen ^ x[k];
        }
    keep(sink, seen, never);
}

// All blocks together write the n elements `passes` times.
extern "C" __global__ void write_all(uint4* data, int n, int passes)
{
    #pragma unroll 1
    for (int pass = 0; pass < passes; ++pass)
        #pragma unroll 4
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            store(data + i, make_uint4(pass, i, pass, i));
}

// Each element once: READS arrays are read, WRITES arrays are written.
template <int READS, int WRITES>
__global__ void stream(const uint4* a, const uint4* b, uint4* out, uint4* sink, int n, unsigned never)
{
    uint4 seen = make_uint4(0, 0, 0, 0), x[EACH];
    int first = blockIdx.x * (EACH * blockDim.x) + threadIdx.x;
    #pragma unroll
    for (int k = 0; k < EACH; ++k) {
        int i = first + k * blockDim.x;
        x[k] = make_uint4(i, i, i, i);
        if (i < n && READS > 0)
            x[k] = load(a + i);
        if (i < n && READS > 1)
            x[k] = x[k] ^ load(b + i);
    }
    #pragma unroll
    for (int k = 0; k < EACH; ++k) {
        int i = first + k * blockDim.x;
        if (WRITES && i < n)
            store(out + i, x[k]);
        seen = seen ^ x[k];
    }
    if (!WRITES)
        keep(sink, seen, never);
}

__device__ unsigned mixed(unsigned x)  // another number for each x, without a pattern
{
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

// Two threads read a sector of 32 bytes. RANDOM: any of the `sectors`, a power of two; else every `stride`-th.
template <bool RANDOM>
__global__ void sectors(const uint4* data, uint4* sink, unsigned sectors, int stride, unsigned never)
{
    uint4 seen = make_uint4(0, 0, 0, 0), x[EACH];
    #pragma unroll
    for (int k = 0; k < EACH; ++k) {
        unsigned i = (blockIdx.x * EACH + k) * blockDim.x + threadIdx.x;
        unsigned sector = RANDOM ? mixed(i / 2) & (sectors - 1) : i / 2 * stride;
        x[k] = load(data + 2ull * (sector < sectors ? sector : 0) + i % 2);
    }
    #pragma unroll
    for (int k = 0; k < EACH; ++k)
        seen = seen ^ x[k];
    keep(sink, seen, never);
}

// One element of 16 bytes under way per thread.
extern "C" __global__ void copy_one_by_one(const uint4* a, uint4* out, int n)
{
    #pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        store(out + i, load(a + i));
}

struct S32 {
    static __device__ void add(unsigned* p) { asm volatile("red.global.add.u32 [%0], 1;" :: "l"(p) : "memory"); }
};
struct F32 {
    static __device__ void add(unsigned* p) { asm volatile("red.global.add.f32 [%0], %1;" :: "l"(p), "f"(1.0f) : "memory"); }
};

// Every `every`-th thread adds ADDS times, `stride` elements after its neighbour; elements: a power of two.
template <class Type>
__global__ void add(unsigned* data, unsigned elements, int every, int stride)
{
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread % every == 0)
        #pragma unroll
        for (int k = 0; k < ADDS; ++k)
            Type::add(data + ((thread / every + k * (gridDim.x * blockDim.x / every)) * stride & (elements - 1)));
}
