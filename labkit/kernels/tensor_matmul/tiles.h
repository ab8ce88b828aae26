// tiles.h: stages of tiles in shared memory, and the order in which tiles of C are taken (rungs 4 to 9)
constexpr int TILE_K = 128 / T_BYTES;
constexpr int CONSUMERS = TILE_M / 64;  // warpgroups that multiply, each 64 rows
static_assert(TILE_M % 64 == 0 && TILE_M <= 256, "choose 64, 128, 192 or 256 for TILE_M");
static_assert(TILE_N % 64 == 0 && TILE_N <= 256, "choose 64, 128, 192 or 256 for TILE_N");
static_assert(STAGES >= 2, "choose at least 2 STAGES: one is multiplied while others come");
struct Stage { T A_tile[TILE_M][TILE_K], B_tile[TILE_N][TILE_K]; };
constexpr int MOST_SHARED = 227 * 1024;  // bytes, of a block
static_assert(STAGES * sizeof(Stage) + 1024 <= MOST_SHARED,
              "too large: choose fewer STAGES or smaller tiles");

// Have the tensor cores multiply the warpgroup's 64 rows of A by all of B. Without `add` the sums begin at 0.
__device__ void start_products(float (&sum)[TILE_N / 2], const Stage& stage, int warpgroup, bool add)
{
    wgmma_fence();
    #pragma unroll
    for (int k = 0; k < TILE_K; k += 32 / T_BYTES)  // one instruction takes 32 bytes of each row
        wgmma(sum, descriptor(&stage.A_tile[64 * warpgroup][k]), descriptor(&stage.B_tile[0][k]), add || k);
    wgmma_commit_group();
}

// Make the barriers of the stages. Each is full after one arrival and the bytes that it announces, and empty
// after `arrivals`.
__device__ void init_stages(uint64_t* full, uint64_t* empty, int arrivals)
{
    for (int i = 0; i < STAGES; ++i) {
        mbarrier_init(&full[i], 1);
        mbarrier_init(&empty[i], arrivals);
    }
    fence_mbarrier_init();
}

// The registers of a thread where one more warpgroup, the producer, brings the tiles: all begin with the same
// number, then the producer gives most of its own to the consumers, which hold the sums.
struct Registers {
    static constexpr int FIRST = 512 / (CONSUMERS + 1) / 8 * 8, PRODUCER = 40;
    static constexpr int CONSUMER = CONSUMERS == 1 ? 232 : (FIRST + (FIRST - PRODUCER) / CONSUMERS) / 8 * 8;
};

struct Tile { int row, col; };
// Return the tile that is taken as number `turn`. The rows of tiles in a group are worked through together,
// column by column: the tiles at work at a time form a square, and need few different rows of A and B.
__device__ Tile tile_of(int turn, int rows, int cols, int group)
{
    int above = turn / (group * cols) * group, height = min(group, rows - above);
    int within = turn - above * cols;
    return {above + within % height, within / height};
}
