// sum.cu: the sum of an array, in two launches
//
// Each thread adds every grid-size-th element. The lanes of a warp then add up by shuffles, and the
// warps of a block through shared memory: one partial sum per block. A second launch with one block adds
// the partial sums. Nothing is atomic, so the same launch always gives the same bits.
//
// build:  nvcc -O2 sum.cu -o sum
// run:    ./sum             1000000 elements
//         ./sum 100000000   as many elements as given
// prints: the launch's shape, the time and bandwidth, the sum on GPU and CPU, and PASS. Where the sums
//         differ by more than rounding explains it prints FAIL, and the exit code is 1.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
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

constexpr int THREADS = 256;  // per block, whole warps
constexpr int WARP = 32;

// The sum over the warp's lanes, in lane 0.
__device__ float warp_sum(float sum)
{
    for (int apart = WARP / 2; apart > 0; apart /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, apart);
    return sum;
}

// partial[b] = the sum of block b's share of x
__global__ void block_sums(const float* x, int n, float* partial)
{
    __shared__ float warp_sums[THREADS / WARP];

    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];

    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        warp_sums[threadIdx.x / WARP] = sum;
    __syncthreads();  // the sums of all warps are there

    if (threadIdx.x < WARP) {
        sum = warp_sum(threadIdx.x < THREADS / WARP ? warp_sums[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0)
            partial[blockIdx.x] = sum;
    }
}

// As many blocks as the GPU holds at once, but none without work.
int blocks_for(int n)
{
    int device, multiprocessors, blocks_per_multiprocessor;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_multiprocessor, block_sums,
                                                             THREADS, 0));
    return std::min(multiprocessors * blocks_per_multiprocessor, (n + THREADS - 1) / THREADS);
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

// Numbers from 0 to 1. std::mt19937 gives the same ones everywhere, unlike the standard's distributions.
std::vector<float> random_floats(int count, unsigned seed)
{
    std::mt19937 generator(seed);
    std::vector<float> numbers(count);
    for (float& number : numbers)
        number = (generator() >> 8) / 16777216.0f;  // 24 bits: all that a float holds
    return numbers;
}

int parse_count(const char* text)
{
    char* end;
    long count = strtol(text, &end, 10);
    if (end == text || *end != '\0' || count < 1 || count > (1L << 30)) {
        fprintf(stderr, "'%s' is no number of elements: give one from 1 to %ld\n", text, 1L << 30);
        exit(EXIT_FAILURE);
    }
    return (int)count;
}

int main(int argc, char** argv)
{
    int n = argc > 1 ? parse_count(argv[1]) : 1000000;
    std::vector<float> x = random_floats(n, 1);
    int blocks = blocks_for(n);

    float *d_x, *d_partial, *d_sum;
    CUDA_CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_partial, blocks * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_sum, sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    float ms = 0;
    for (int run = 0; run < 2; ++run)  // the first launch also loads the kernel: keep the second's time
        ms = gpu_ms([&] {
            block_sums<<<blocks, THREADS>>>(d_x, n, d_partial);
            block_sums<<<1, THREADS>>>(d_partial, blocks, d_sum);  // begins when the first has ended
        });
    float sum;
    CUDA_CHECK(cudaMemcpy(&sum, d_sum, sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_partial));
    CUDA_CHECK(cudaFree(d_sum));

    double expected = 0;
    for (float number : x)
        expected += number;
    double error = fabs(sum - expected) / expected;

    printf("sum: %d elements, %d blocks of %d threads\n", n, blocks, THREADS);
    printf("both kernels: %.4f ms, %.1f GB/s\n", ms, n * sizeof(float) / ms / 1e6);
    printf("sum on the GPU: %.3f\n", sum);
    printf("sum on the CPU: %.3f\n", expected);
    printf("relative error: %.2g\n", error);
    // All terms are positive. No element takes part in more additions than these, and each rounds once.
    int additions = n / (blocks * THREADS) + blocks / THREADS + 22;
    bool good = error <= additions * FLT_EPSILON;
    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
