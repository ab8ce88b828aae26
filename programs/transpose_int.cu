// transpose_int.cu: the transpose of an int32 matrix, in four steps from naive to unrolled
//
// Each step changes one thing: naive writes columns; shared turns tiles in shared memory and writes rows;
// padded has one more column per tile, against bank conflicts; unrolled moves four elements per thread.
// Two times by events: from the first copy to the last, and of the kernels alone.
//
// build:  nvcc -O2 transpose_int.cu -o transpose_int
// run:    ./transpose_int             200 x 200 elements, 2 times
//         ./transpose_int 2048        as many rows and columns as given
//         ./transpose_int 2048 100    and as many times
// prints: for CPU and kernels the time, bandwidth and speed-up, and PASS. Where an element is wrong it
//         prints FAIL, and the exit code is 1.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Ends the program with file, line and CUDA's message when a runtime call fails.
#define CUDA_CHECK(call)                                                                              \
    do {                                                                                              \
        cudaError_t status = (call);                                                                  \
        if (status != cudaSuccess) {                                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(EXIT_FAILURE);                                                                       \
        }                                                                                             \
    } while (0)

constexpr int TILE = 32;
constexpr int ROWS = 8;  // threads of an unrolled block in y: each moves TILE / ROWS elements

__global__ void transpose_naive(const int* in, int* out, int n)
{
    int col = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
    if (row < n && col < n)
        out[col * n + row] = in[row * n + col];  // a warp reads along a row, and writes down a column
}

// PAD: unused columns of the tile.
template <int PAD>
__global__ void transpose_shared(const int* in, int* out, int n)
{
    __shared__ int tile[TILE][TILE + PAD];

    int col = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
    if (row < n && col < n)
        tile[threadIdx.y][threadIdx.x] = in[row * n + col];
    __syncthreads();  // the tile is complete before anyone reads it

    // The tile's place in out: the block indices are exchanged, while threadIdx.x still runs along a row.
    int out_col = blockIdx.y * TILE + threadIdx.x;
    int out_row = blockIdx.x * TILE + threadIdx.y;
    if (out_row < n && out_col < n)
        out[out_row * n + out_col] = tile[threadIdx.x][threadIdx.y];
}

__global__ void transpose_unrolled(const int* in, int* out, int n)
{
    __shared__ int tile[TILE][TILE + 1];

    int col = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
    #pragma unroll
    for (int i = 0; i < TILE; i += ROWS)
        if (row + i < n && col < n)
            tile[threadIdx.y + i][threadIdx.x] = in[(row + i) * n + col];
    __syncthreads();  // the tile is complete before anyone reads it

    int out_col = blockIdx.y * TILE + threadIdx.x;
    int out_row = blockIdx.x * TILE + threadIdx.y;
    #pragma unroll
    for (int i = 0; i < TILE; i += ROWS)
        if (out_row + i < n && out_col < n)
            out[(out_row + i) * n + out_col] = tile[threadIdx.x][threadIdx.y + i];
}

void transpose_on_cpu(const int* in, int* out, int n)
{
    for (int row = 0; row < n; ++row)
        for (int col = 0; col < n; ++col)
            out[col * n + row] = in[row * n + col];
}

struct Version {
    const char* name;
    void (*kernel)(const int*, int*, int);
    dim3 block;
};

const Version VERSIONS[] = {
    {"naive", transpose_naive, dim3(TILE, TILE)},
    {"shared", transpose_shared<0>, dim3(TILE, TILE)},
    {"padded", transpose_shared<1>, dim3(TILE, TILE)},
    {"unrolled", transpose_unrolled, dim3(TILE, ROWS)},
};

double host_ms()
{
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

void launch(const Version& version, const int* d_in, int* d_out, int n)
{
    int blocks = (n + TILE - 1) / TILE;
    version.kernel<<<dim3(blocks, blocks), version.block>>>(d_in, d_out, n);
    CUDA_CHECK(cudaGetLastError());  // a launch returns nothing: a wrong configuration shows here
}

struct Times {
    float total, kernels;  // in milliseconds: with the copies, and without them
};

// Copies in, transposes `times` times, copies out.
Times run(const Version& version, const std::vector<int>& in, std::vector<int>& out, int n, int times)
{
    size_t bytes = in.size() * sizeof(int);
    int *d_in, *d_out;
    CUDA_CHECK(cudaMalloc(&d_in, bytes));
    CUDA_CHECK(cudaMalloc(&d_out, bytes));
    CUDA_CHECK(cudaMemset(d_out, 0xff, bytes));  // what the kernel leaves out stays -1
    cudaEvent_t start, copied_in, computed, copied_out;
    for (cudaEvent_t* event : {&start, &copied_in, &computed, &copied_out})
        CUDA_CHECK(cudaEventCreate(event));

    CUDA_CHECK(cudaEventRecord(start));
    CUDA_CHECK(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaEventRecord(copied_in));
    for (int i = 0; i < times; ++i)
        launch(version, d_in, d_out, n);
    CUDA_CHECK(cudaEventRecord(computed));
    CUDA_CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));  // waits for the kernels
    CUDA_CHECK(cudaEventRecord(copied_out));
    CUDA_CHECK(cudaEventSynchronize(copied_out));

    Times ms;
    CUDA_CHECK(cudaEventElapsedTime(&ms.total, start, copied_out));
    CUDA_CHECK(cudaEventElapsedTime(&ms.kernels, copied_in, computed));
    for (cudaEvent_t event : {start, copied_in, computed, copied_out})
        CUDA_CHECK(cudaEventDestroy(event));
    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_out));
    return ms;
}

// Launches each kernel on one element: the first launch of a kernel also loads it.
void warm_up()
{
    int *d_in, *d_out;
    CUDA_CHECK(cudaMalloc(&d_in, sizeof(int)));
    CUDA_CHECK(cudaMalloc(&d_out, sizeof(int)));
    CUDA_CHECK(cudaMemset(d_in, 0, sizeof(int)));
    for (const Version& version : VERSIONS)
        launch(version, d_in, d_out, 1);
    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_out));
}

// Is each element where it should be? Says which one is not.
bool is_transpose(const std::vector<int>& in, const std::vector<int>& out, int n)
{
    for (int row = 0; row < n; ++row)
        for (int col = 0; col < n; ++col)
            if (out[col * n + row] != in[row * n + col]) {
                fprintf(stderr, "out[%d][%d] is %d, but should be %d\n", col, row, out[col * n + row],
                        in[row * n + col]);
                return false;
            }
    return true;
}

int parse_number(const char* text, int most)
{
    char* end;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < 1 || number > most) {
        fprintf(stderr, "'%s': give a whole number from 1 to %d\n", text, most);
        exit(EXIT_FAILURE);
    }
    return (int)number;
}

int main(int argc, char** argv)
{
    int n = argc > 1 ? parse_number(argv[1], 32768) : 200;
    int times = argc > 2 ? parse_number(argv[2], 1000000) : 2;
    std::vector<int> in(n * n), out(n * n);
    for (int i = 0; i < n * n; ++i)
        in[i] = i;  // all different: an element in a wrong place shows

    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    printf("transpose_int on %s: %d x %d, %d times\n", properties.name, n, n, times);
    warm_up();
    printf("                with copies           kernels alone         speed-up with copies\n");
    printf("             time/ms      GB/s     time/ms      GB/s    over the last  over the CPU\n");

    // each transpose reads and writes the whole matrix
    auto gb_per_s = [&](double ms) { return 2.0 * n * n * sizeof(int) * times / ms / 1e6; };
    double begin = host_ms();
    for (int i = 0; i < times; ++i)
        transpose_on_cpu(in.data(), out.data(), n);
    double cpu = host_ms() - begin, last = cpu;
    bool good = is_transpose(in, out, n);
    printf("%-9s %10.4f %9.2f\n", "CPU", cpu, gb_per_s(cpu));

    for (const Version& version : VERSIONS) {
        Times ms = run(version, in, out, n, times);
        printf("%-9s %10.4f %9.2f  %10.4f %9.2f    %11.2f x %11.2f x\n", version.name, ms.total,
               gb_per_s(ms.total), ms.kernels, gb_per_s(ms.kernels), last / ms.total, cpu / ms.total);
        last = ms.total;
        good = is_transpose(in, out, n) && good;
    }
    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
