// transpose_5_vectorised.cu: out (cols,rows) = transpose of in (rows,cols) through a shared-memory tile
// idea: 4_unrolled with 16 bytes per load and store: V = 4 elements at once, 2 of 8 bytes, or 8 of 2 bytes
//       a thread turns V x V elements in registers; shared memory then holds whole vectors, swizzled, since
//       one unused element a row would leave the vectors of the next row askew
//       neighbouring blocks write neighbouring parts of out: long runs are quicker to write than short ones
//       tiles of 2-byte elements are twice as wide and high, or their rows would be half as long
// launch: block (TILE * TILE / 16), grid (ceil(rows/SIDE), ceil(cols/SIDE)); any rows, cols
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef TILE
#define TILE 64
#endif
static_assert(TILE >= 4 && TILE <= 64 && (TILE & (TILE - 1)) == 0, "choose a TILE of 4, 8, 16, 32 or 64");
using T = DTYPE;
static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "choose a DTYPE of 2, 4 or 8 bytes");
constexpr int THREADS = TILE * TILE / 16;
constexpr int SIDE = TILE + TILE * (2 / sizeof(T));  // of a tile, in elements: 2 TILE if they have 2 bytes
constexpr int PART = SIDE > TILE ? TILE / 2 : TILE;  // of a tile that is moved element by element

// Turn SIDE x SIDE elements, where each row of in and of out begins at a multiple of V elements.
template <int V, int SIDE>
__device__ void turn(const T* in, T* out, int rows, int cols, int row0, int col0, T* shared)
{
    struct alignas(V * sizeof(T)) Vector {
        T at[V];
    };
    constexpr int WIDTH = SIDE / V;  // of the tile, in vectors
    auto tile = (Vector(*)[WIDTH])shared;

    constexpr int SQUARES = WIDTH * WIDTH / THREADS;  // of V x V elements, for each thread
    Vector lines[SQUARES][V] = {};  // 0 beyond the edges, where nothing is loaded
    #pragma unroll
    for (int i = 0; i < SQUARES; ++i) {  // all loads before the first use: many bytes on their way
        int x = (i * THREADS + threadIdx.x) % WIDTH, y = (i * THREADS + threadIdx.x) / WIDTH;
        int col = col0 + V * x, row = row0 + V * y;
        for (int k = 0; k < V; ++k)
            if (row < rows && col < cols)
                lines[i][k] = *(const Vector*)&in[(row + k) * cols + col];
    }
    #pragma unroll
    for (int i = 0; i < SQUARES; ++i) {
        int x = (i * THREADS + threadIdx.x) % WIDTH, y = (i * THREADS + threadIdx.x) / WIDTH;
        for (int j = 0; j < V; ++j) {
            Vector column;
            for (int k = 0; k < V; ++k)
                column.at[k] = lines[i][k].at[j];
            tile[V * x + j][y ^ x] = column;
        }
    }
    __syncthreads();  // the tile is complete before anyone reads it

    // Here the tile is turned already: its rows are out's, and both sides move along them.
    #pragma unroll
    for (int i = 0; i < SIDE * WIDTH; i += THREADS) {
        int x = (i + threadIdx.x) % WIDTH, y = (i + threadIdx.x) / WIDTH;
        int out_col = row0 + V * x;
        int out_row = col0 + y;
        if (out_row < cols && out_col < rows)
            *(Vector*)&out[out_row * rows + out_col] = tile[y][x ^ (y / V)];
    }
}

extern "C" __global__ void transpose(const T* in, T* out, int rows, int cols)
{
    __shared__ alignas(16) T tile[SIDE * SIDE];
    int col0 = blockIdx.y * SIDE, row0 = blockIdx.x * SIDE;

    // A vector's address must be a multiple of its size. Where a row's is not, one element is a vector.
    constexpr int V = 16 / sizeof(T);
    if (rows % V == 0 && cols % V == 0)
        turn<V, SIDE>(in, out, rows, cols, row0, col0, tile);
    else
        #pragma unroll 1  // wide tiles go by parts: more elements at once would take too many registers
        for (int part = 0; part < SIDE / PART * SIDE; part += PART) {
            turn<1, PART>(in, out, rows, cols, row0 + part / SIDE * PART, col0 + part % SIDE, tile);
            if (SIDE > PART)
                __syncthreads();  // the part is read before the next one is written
        }
}
