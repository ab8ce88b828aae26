// gpu_tiles.h: tiles of any size, of matrices whose rows begin and end anywhere (rungs 10 and 11)
#ifndef TILE_M
#define TILE_M 128
#endif
#ifndef TILE_N
#define TILE_N 256
#endif
#ifndef TILE_K
#define TILE_K 8
#endif
#ifndef THREAD_M
#define THREAD_M 8
#endif
#ifndef THREAD_N
#define THREAD_N 16
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef PER_SM
#define PER_SM 1  // blocks that an SM holds: the compiler gives each thread so few registers
#endif
constexpr int ROWS = 4, COLS = 8;  // of threads in a warp
constexpr int WARP_M = ROWS * THREAD_M, WARP_N = COLS * THREAD_N, WARPS = TILE_N / WARP_N;  // side by side
constexpr int SUMS = THREAD_M * THREAD_N, THREADS = TILE_M * TILE_N / SUMS;  // of a thread; of a block
constexpr int SECTOR = 8;  // floats of a row of A that as many threads copy
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0, "choose multiples of 4 THREAD_M and 8 THREAD_N");
static_assert(THREAD_M % 4 == 0 && THREAD_N % 4 == 0, "choose multiples of 4 for THREAD_M and THREAD_N");
static_assert(TILE_K % SECTOR == 0 && TILE_M * SECTOR % THREADS == 0 && TILE_K * TILE_N % (4 * THREADS) == 0,
              "every thread copies as much: choose powers of 2 that fit");
static_assert(STAGES >= 2, "choose at least 2 STAGES: two take turns");

__shared__ alignas(16) float A_tile[STAGES][TILE_K][TILE_M + 4];  // turned; + 4: fewer bank conflicts
__shared__ alignas(16) float B_tile[STAGES][TILE_K][TILE_N];

// Starts a copy of `width` floats, 4 or 1, to shared memory; of zeros, which add nothing, from outside.
// As __pipeline_memcpy_async, which has no such condition: where p is true, cp.async does not read (PTX ISA).
__device__ void copy(float* to, const float* from, int width, bool is_inside)
{
    unsigned at = __cvta_generic_to_shared(to);
    if (width == 4)
        asm volatile("{ .reg .pred p; setp.eq.u32 p, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, p; }"
                     :: "r"(at), "l"(from), "r"((unsigned)is_inside));
    else
        asm volatile("{ .reg .pred p; setp.eq.u32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }"
                     :: "r"(at), "l"(from), "r"((unsigned)is_inside));
}
