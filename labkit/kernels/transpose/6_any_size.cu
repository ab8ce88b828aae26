// transpose_6_any_size.cu: out (cols,rows) = transpose of in (rows,cols) through a shared-memory tile
// idea: 5_vectorised for rows that begin anywhere: a vector begins at a multiple of 16 bytes of the array,
//       not of its row, and goes to shared memory as it is; from there, elements go to registers one by one
//       rows k and k + V begin equally far from such a multiple: shared memory keeps these side by side, and
//       lanes that read every Vth element of a column then have few bank conflicts
//       a block writes whole sectors of 32 bytes; for these it also reads the first rows of the next tile
// launch: block (THREADS), grid (ceil(rows/TILE), ceil(cols/COLS)); any rows, cols
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef TILE
#define TILE 64
#endif
static_assert(TILE >= 16 && TILE <= 128 && (TILE & (TILE - 1)) == 0, "choose a TILE of 16, 32, 64 or 128");
using T = DTYPE;
static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "choose a DTYPE of 2, 4 or 8 bytes");
constexpr int THREADS = 256;
constexpr int V = 16 / sizeof(T);       // elements per vector
constexpr int SECTOR = 32 / sizeof(T);  // elements per sector
constexpr int COLS = 256 / sizeof(T);   // of a tile
constexpr int ROWS = TILE + SECTOR;     // of a tile, with those of the next one

extern "C" __global__ void transpose(const T* __restrict__ in, T* __restrict__ out, int rows, int cols)
{
    __shared__ alignas(16) T tile[V][ROWS / V][COLS + V];
    int row0 = blockIdx.x * TILE, col0 = blockIdx.y * COLS;
    int height = min(rows - row0, rows % SECTOR ? TILE + SECTOR - 1 : TILE);
    int right = min(cols, col0 + COLS);

    constexpr int ACROSS = COLS / V + 1;  // vectors that hold a row of the tile
    constexpr int ROUNDS = (ROWS * ACROSS + THREADS - 1) / THREADS;
    uint4 vectors[ROUNDS];
    bool loaded[ROUNDS];
    #pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {  // all loads before the first use: many bytes on their way
        int x = (i * THREADS + threadIdx.x) % ACROSS, k = (i * THREADS + threadIdx.x) / ACROSS;
        int row = (row0 + min(k, height - 1)) * cols, at = (row + col0) / V * V + V * x;
        loaded[i] = k < height && at < row + right && at + V <= rows * cols;
        if (loaded[i])
            vectors[i] = *(const uint4*)&in[at];
    }
    #pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
        int x = (i * THREADS + threadIdx.x) % ACROSS, k = (i * THREADS + threadIdx.x) / ACROSS;
        if (loaded[i])
            *(uint4*)&tile[k % V][k / V][V * x] = vectors[i];
    }

    // Element (k, y) of the tile: its row's first vector begins k * cols % V elements before the tile.
    auto element = [&](int k, int y) -> T& { return tile[k % V][k / V][k * (cols % V) % V + y]; };

    if (threadIdx.x < rows * cols % V) {  // the array's last elements, which are no whole vector
        int at = rows * cols - 1 - threadIdx.x, k = at / cols - row0, y = at % cols - col0;
        if (k >= 0 && k < height && y >= 0 && y < COLS)
            element(k, y) = in[at];
    }
    __syncthreads();  // the tile is complete before anyone reads it

    // How many elements of the tile's column y come before the first whole sector of that row of out.
    auto before_sector = [&](int y) { return (SECTOR - y * (rows % SECTOR) % SECTOR) % SECTOR; };

    constexpr int STEP = THREADS / (TILE / V);  // columns per round: a multiple of SECTOR
    int y = threadIdx.x / (TILE / V), k = before_sector(y) + threadIdx.x % (TILE / V) * V;
    const T* column[V];  // elements of a vector in column y; those in column y + i are i elements further on
    for (int j = 0; j < V; ++j)
        column[j] = &element(k + j, y);
    #pragma unroll
    for (int i = 0; i < COLS; i += STEP) {
        int out_row = col0 + y + i, out_col = row0 + k;
        if (out_row < cols && out_col + V <= rows) {
            alignas(16) T vector[V];
            for (int j = 0; j < V; ++j)
                vector[j] = column[j][i];
            *(uint4*)&out[out_row * rows + out_col] = *(const uint4*)vector;
        } else if (out_row < cols)
            for (int j = 0; j < V; ++j)
                if (out_col + j < rows)
                    out[out_row * rows + out_col + j] = column[j][i];
    }

    // A row of out begins with elements before its first whole sector.
    int last = threadIdx.x;
    if (row0 == 0 && last < COLS && col0 + last < cols)
        for (int k = 0; k < min(before_sector(last), rows); ++k)
            out[(col0 + last) * rows + k] = element(k, last);
}
