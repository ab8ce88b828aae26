// saxpy.cu: y = a x + y, the smallest whole CUDA program
//
// Host arrays, device arrays, copies, one launch, and a check of every element: all other programs in
// this folder have these parts. The kernel does two operations per 12 bytes, so memory bounds its speed.
//
// build:  nvcc -O2 saxpy.cu -o saxpy
// run:    ./saxpy            262144 elements
//         ./saxpy 67108864   as many elements as given
// prints: the kernel's time and bandwidth, the sum of y, the largest error, and PASS. Where an element
//         is wrong it prints FAIL, and the exit code is 1.

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

constexpr float FACTOR = 2.5f;
constexpr int THREADS = 256;  // per block

__global__ void saxpy(int n, float a, const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)  // the last block may stick out over the end
        y[i] = a * x[i] + y[i];
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
    int n = argc > 1 ? parse_count(argv[1]) : 1 << 18;
    size_t bytes = n * sizeof(float);
    std::vector<float> x = random_floats(n, 1), y = random_floats(n, 2), result(n);

    float *d_x, *d_y;
    CUDA_CHECK(cudaMalloc(&d_x, bytes));
    CUDA_CHECK(cudaMalloc(&d_y, bytes));
    CUDA_CHECK(cudaMemcpy(d_x, x.data(), bytes, cudaMemcpyHostToDevice));

    int blocks = (n + THREADS - 1) / THREADS;
    float ms = 0;
    for (int run = 0; run < 2; ++run) {  // the first launch also loads the kernel: keep the second's time
        CUDA_CHECK(cudaMemcpy(d_y, y.data(), bytes, cudaMemcpyHostToDevice));
        ms = gpu_ms([&] { saxpy<<<blocks, THREADS>>>(n, FACTOR, d_x, d_y); });
    }
    CUDA_CHECK(cudaMemcpy(result.data(), d_y, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_y));

    double sum = 0, error = 0;
    for (int i = 0; i < n; ++i) {
        double expected = (double)FACTOR * x[i] + y[i];
        sum += result[i];
        if (!(fabs(result[i] - expected) <= error))  // in this form NaN counts, too
            error = fabs(result[i] - expected);
    }

    printf("saxpy: %d elements, %d blocks of %d threads\n", n, blocks, THREADS);
    printf("kernel: %.4f ms, %.1f GB/s\n", ms, 3.0 * bytes / ms / 1e6);  // reads x and y, writes y
    printf("sum of y: %.6f\n", sum);
    printf("largest error: %.2g\n", error);
    // Product and sum stay below 4, where rounding changes a number by at most FLT_EPSILON.
    bool good = error <= 2 * FLT_EPSILON;
    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
