// histogram.cu: how often each byte value occurs
//
// Two kernels. One adds straight to the counts in global memory, where all threads of the grid meet. The
// other counts in shared memory, one histogram per block, and adds each block's counts to the result.
//
// build:  nvcc -O2 histogram.cu -o histogram
// run:    ./histogram                1000000 random bytes
//         ./histogram 100000000      as many random bytes as given
//         ./histogram histogram.cu   the bytes of a file
// prints: each kernel's time and bandwidth, the five most frequent values, and PASS. Where a count is
//         wrong it prints FAIL, and the exit code is 1.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
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

constexpr int BINS = 256;  // values of a byte
constexpr int THREADS = 256;  // per block
constexpr int BYTES_PER_THREAD = 16;  // so that a block's own histogram pays

using Byte = unsigned char;
using Counts = std::array<unsigned, BINS>;

__global__ void count_in_global(const Byte* x, int n, unsigned* counts)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[x[i]], 1);
}

__global__ void count_in_shared(const Byte* x, int n, unsigned* counts)
{
    __shared__ unsigned block_counts[BINS];

    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        block_counts[bin] = 0;
    __syncthreads();  // all bins are 0 before anyone counts

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&block_counts[x[i]], 1);
    __syncthreads();  // the block has counted all its bytes

    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        atomicAdd(&counts[bin], block_counts[bin]);
}

// Calls `launch`, and returns how long the GPU took for what it started, in milliseconds.
template <typename Launch>
float gpu_ms(Launch launch)
{
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start));
    launch();
    CUDA_CHECK(cudaGetLastError());  // a launch returns nothing: a wrong configuration shows here
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    return ms;
}

// Products of two numbers from 0 to 15: small ones occur more often than large ones.
std::vector<Byte> random_bytes(int count)
{
    std::mt19937 generator(1);  // the same numbers everywhere
    std::vector<Byte> bytes(count);
    for (Byte& byte : bytes) {
        unsigned number = generator();
        byte = (number & 15) * (number >> 4 & 15);
    }
    return bytes;
}

std::vector<Byte> read_file(const char* name)
{
    FILE* file = fopen(name, "rb");
    if (!file) {
        perror(name);
        exit(EXIT_FAILURE);
    }
    std::vector<Byte> bytes;
    Byte buffer[4096];
    while (size_t got = fread(buffer, 1, sizeof buffer, file))
        bytes.insert(bytes.end(), buffer, buffer + got);
    fclose(file);
    return bytes;
}

// What the command line asks for: a number of random bytes, or a file.
std::vector<Byte> input(const char* text)
{
    char* end;
    long count = strtol(text, &end, 10);
    if (*end != '\0')
        return read_file(text);
    if (count < 1 || count > (1L << 30)) {
        fprintf(stderr, "'%s' bytes: give a number from 1 to %ld, or the name of a file\n", text, 1L << 30);
        exit(EXIT_FAILURE);
    }
    return random_bytes((int)count);
}

// Counts with the kernel, prints its time, and returns the counts.
Counts count_on_gpu(const char* name, void (*kernel)(const Byte*, int, unsigned*), const Byte* d_x, int n)
{
    int blocks = std::max(1, n / (THREADS * BYTES_PER_THREAD));
    unsigned* d_counts;
    CUDA_CHECK(cudaMalloc(&d_counts, sizeof(Counts)));
    float ms = 0;
    for (int run = 0; run < 2; ++run) {  // the first launch also loads the kernel: keep the second's time
        CUDA_CHECK(cudaMemset(d_counts, 0, sizeof(Counts)));
        ms = gpu_ms([&] { kernel<<<blocks, THREADS>>>(d_x, n, d_counts); });
    }
    Counts counts;
    CUDA_CHECK(cudaMemcpy(counts.data(), d_counts, sizeof(Counts), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(d_counts));
    printf("%-16s %9.4f ms %8.1f GB/s\n", name, ms, n / ms / 1e6);
    return counts;
}

void print_most_frequent(const Counts& counts, int how_many)
{
    std::array<int, BINS> values;
    std::iota(values.begin(), values.end(), 0);
    std::stable_sort(values.begin(), values.end(), [&](int a, int b) { return counts[a] > counts[b]; });
    for (int i = 0; i < how_many && counts[values[i]] > 0; ++i)
        printf("value %3d: %u\n", values[i], counts[values[i]]);
}

int main(int argc, char** argv)
{
    std::vector<Byte> x = argc > 1 ? input(argv[1]) : random_bytes(1000000);
    if (x.empty() || x.size() > (1u << 30)) {
        fprintf(stderr, "%s has %zu bytes: choose a file with 1 to %u\n", argv[1], x.size(), 1u << 30);
        return EXIT_FAILURE;
    }
    int n = (int)x.size();
    Counts expected{};
    for (Byte byte : x)
        ++expected[byte];

    Byte* d_x;
    CUDA_CHECK(cudaMalloc(&d_x, n));
    CUDA_CHECK(cudaMemcpy(d_x, x.data(), n, cudaMemcpyHostToDevice));
    printf("histogram: %d bytes\n", n);
    Counts in_global = count_on_gpu("in global memory", count_in_global, d_x, n);
    Counts in_shared = count_on_gpu("in shared memory", count_in_shared, d_x, n);
    CUDA_CHECK(cudaFree(d_x));

    print_most_frequent(in_shared, 5);
    bool good = in_global == expected && in_shared == expected;
    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
