// sgemm_peak.cu: C = alpha A B + beta C in float, held against what the GPU can do at most
//
// A tiled kernel, the same with its inner loop unrolled, and that one with rows that begin at multiples
// of the pitch which cudaMallocPitch chooses. The peaks follow from the GPU's own figures: multiplications
// and additions per cycle times cycles per second, and bytes per second of its memory.
//
// build:  nvcc -O2 sgemm_peak.cu -o sgemm_peak
//         nvcc -O2 -DCUBLAS sgemm_peak.cu -o sgemm_peak -lcublas    with cuBLAS in the table
//         nvcc -O2 -DTILE=16 sgemm_peak.cu -o sgemm_peak            with other tiles, of at most 32 x 32
// run:    ./sgemm_peak                      64 x 64 and 100 x 100 matrices
//         ./sgemm_peak 500 680 1024 4096    other sizes; 32 need not divide them
// prints: the peaks; per size each kernel's time, GFLOP/s, and share of what the GPU can do at that size;
//         the sum of C; PASS. Where an element is wrong it prints FAIL, and the exit code is 1.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>
#ifdef CUBLAS
#include <cublas_v2.h>
#endif

#ifndef TILE
#define TILE 32
#endif
static_assert(TILE >= 1 && TILE * TILE <= 1024, "a block has TILE x TILE threads: choose TILE from 1 to 32");

// Ends the program with file, line and CUDA's message when a runtime call fails.
#define CUDA_CHECK(call)                                                                              \
    do {                                                                                              \
        cudaError_t status = (call);                                                                  \
        if (status != cudaSuccess) {                                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(EXIT_FAILURE);                                                                       \
        }                                                                                             \
    } while (0)

constexpr float ALPHA = 1.5f, BETA = 0.5f;
constexpr double MOST_CPU_STEPS = 1 << 28;  // multiplications on the CPU, for the check

// n x n floats in device memory; `stride` floats from the beginning of a row to that of the next.
struct Matrix {
    float* at;
    int stride;
};

// UNROLL: steps of the inner loop between two jumps back.
template <int UNROLL>
__global__ void sgemm(int n, float alpha, Matrix A, Matrix B, float beta, Matrix C)
{
    __shared__ float A_tile[TILE][TILE];
    __shared__ float B_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int col = blockIdx.x * TILE + x;
    int row = blockIdx.y * TILE + y;

    float sum = 0;
    for (int k0 = 0; k0 < n; k0 += TILE) {
        // Each thread brings one element of each tile; past the edge a 0, which adds nothing to the sum.
        A_tile[y][x] = row < n && k0 + x < n ? A.at[row * A.stride + k0 + x] : 0.0f;
        B_tile[y][x] = k0 + y < n && col < n ? B.at[(k0 + y) * B.stride + col] : 0.0f;
        __syncthreads();  // the tiles are complete before anyone reads them

        #pragma unroll UNROLL
        for (int k = 0; k < TILE; ++k)
            sum += A_tile[y][k] * B_tile[k][x];
        __syncthreads();  // everyone has read the tiles before anyone overwrites them
    }
    if (row < n && col < n) {
        float* element = &C.at[row * C.stride + col];
        *element = alpha * sum + beta * *element;
    }
}

template <int UNROLL>
void launch(int n, Matrix A, Matrix B, Matrix C)
{
    int blocks = (n + TILE - 1) / TILE;
    sgemm<UNROLL><<<dim3(blocks, blocks), dim3(TILE, TILE)>>>(n, ALPHA, A, B, BETA, C);
    CUDA_CHECK(cudaGetLastError());  // a launch returns nothing: a wrong configuration shows here
}

#ifdef CUBLAS
void launch_cublas(int n, Matrix A, Matrix B, Matrix C)
{
    static cublasHandle_t handle = nullptr;
    if (!handle && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "cuBLAS does not start\n");
        exit(EXIT_FAILURE);
    }
    // cuBLAS takes columns for rows, and so sees each matrix transposed: C' = B' A'.
    cublasStatus_t status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &ALPHA, B.at, B.stride,
                                        A.at, A.stride, &BETA, C.at, C.stride);
    if (status != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "cublasSgemm: %s\n", cublasGetStatusString(status));
        exit(EXIT_FAILURE);
    }
}
#endif

struct Version {
    const char* name;
    bool pitched;
    void (*launch)(int, Matrix, Matrix, Matrix);
};

const Version VERSIONS[] = {
    {"tiled", false, launch<1>},
    {"unrolled", false, launch<TILE>},
    {"pitched", true, launch<TILE>},
#ifdef CUBLAS
    {"cuBLAS", false, launch_cublas},
#endif
};

// What a GPU can do at most.
struct Peak {
    double gflops;  // 10^9 floating-point operations per second
    double gb_per_s;  // 10^9 bytes per second, between its memory and its caches; 0 where CUDA does not tell

    // The roofline: each of the four arrays that go to or from memory goes there once, at least.
    double gflops_at(int n) const
    {
        double flops_per_byte = 2.0 * n * n * n / (4.0 * n * n * sizeof(float));
        return gb_per_s > 0 ? std::min(gflops, flops_per_byte * gb_per_s) : gflops;
    }
};

int attribute(cudaDeviceAttr which)
{
    int value;
    CUDA_CHECK(cudaDeviceGetAttribute(&value, which, 0));
    return value;
}

// CUDA cores (float) of a multiprocessor. The runtime does not tell: they are in the programming guide.
int cores_per_multiprocessor(int major, int minor)
{
    if (major == 7 || (major == 8 && minor == 0) || (major == 6 && minor == 0))
        return 64;
    return 128;
}

Peak peak_of_gpu(const cudaDeviceProp& gpu)
{
    double cores = (double)gpu.multiProcessorCount * cores_per_multiprocessor(gpu.major, gpu.minor);
    double clock_ghz = attribute(cudaDevAttrClockRate) / 1e6;
    double memory_ghz = attribute(cudaDevAttrMemoryClockRate) / 1e6;
    int bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth);
    // One multiply-add, two operations, per core and cycle. Memory transfers twice per cycle.
    return {2 * cores * clock_ghz, 2 * memory_ghz * bus_bits / 8};
}

// Numbers from 0 to 1.
std::vector<float> random_floats(int count, unsigned seed)
{
    std::mt19937 generator(seed);  // the same numbers everywhere, unlike the standard's distributions
    std::vector<float> numbers(count);
    for (float& number : numbers)
        number = (generator() >> 8) / 16777216.0f;  // 24 bits: all that a float holds
    return numbers;
}

// Some rows of the result, evenly spread, in double: all rows where that takes little time.
struct Reference {
    std::vector<int> rows;
    std::vector<double> expected;  // one row after the other

    Reference(const std::vector<float>& A, const std::vector<float>& B, const std::vector<float>& C, int n)
    {
        int count = (int)std::min<double>(n, std::max(1.0, MOST_CPU_STEPS / n / n));
        expected.assign((size_t)count * n, 0);
        for (int i = 0; i < count; ++i) {
            int row = (int)((long long)i * n / count);
            double* result = &expected[(size_t)i * n];
            rows.push_back(row);
            for (int k = 0; k < n; ++k)
                for (int col = 0; col < n; ++col)
                    result[col] += (double)A[row * n + k] * B[k * n + col];
            for (int col = 0; col < n; ++col)
                result[col] = ALPHA * result[col] + (double)BETA * C[row * n + col];
        }
    }

    // All terms are positive. Their roundings go up and down: the error grows with the root of their number.
    bool agrees(const std::vector<float>& C, int n) const
    {
        double tolerance = 4 * FLT_EPSILON * sqrt(n);
        for (size_t i = 0; i < rows.size(); ++i)
            for (int col = 0; col < n; ++col) {
                double is = C[rows[i] * n + col], should = expected[i * n + col];
                if (!(fabs(is - should) <= tolerance * should)) {  // in this form NaN is wrong, too
                    fprintf(stderr, "C[%d][%d] is %.9g, but should be %.9g\n", rows[i], col, is, should);
                    return false;
                }
            }
        return true;
    }
};

// Device memory for a matrix, with rows one after the other or at multiples of CUDA's pitch.
Matrix allocate(int n, bool pitched)
{
    size_t pitch = n * sizeof(float);  // bytes
    float* at;
    if (pitched)
        CUDA_CHECK(cudaMallocPitch(&at, &pitch, n * sizeof(float), n));
    else
        CUDA_CHECK(cudaMalloc(&at, n * pitch));
    return {at, (int)(pitch / sizeof(float))};
}

void copy_in(Matrix to, const std::vector<float>& from, int n)
{
    size_t width = n * sizeof(float);
    CUDA_CHECK(cudaMemcpy2D(to.at, to.stride * sizeof(float), from.data(), width, width, n,
                            cudaMemcpyHostToDevice));
}

void copy_out(std::vector<float>& to, Matrix from, int n)
{
    size_t width = n * sizeof(float);
    CUDA_CHECK(cudaMemcpy2D(to.data(), width, from.at, from.stride * sizeof(float), width, n,
                            cudaMemcpyDeviceToHost));
}

// Runs one version. Leaves its result in `result`, and returns its time in milliseconds.
float run(const Version& version, const std::vector<float>& A, const std::vector<float>& B,
          const std::vector<float>& C, std::vector<float>& result, int n)
{
    Matrix d_A = allocate(n, version.pitched);
    Matrix d_B = allocate(n, version.pitched);
    Matrix d_C = allocate(n, version.pitched);
    copy_in(d_A, A, n);
    copy_in(d_B, B, n);
    copy_in(d_C, C, n);
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));

    CUDA_CHECK(cudaEventRecord(start));
    version.launch(n, d_A, d_B, d_C);
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    copy_out(result, d_C, n);

    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    for (Matrix matrix : {d_A, d_B, d_C})
        CUDA_CHECK(cudaFree(matrix.at));
    return ms;
}

// Launches each kernel on one element: the first launch of a kernel also loads it.
void warm_up()
{
    Matrix in = allocate(1, false), out = allocate(1, false);
    CUDA_CHECK(cudaMemset(in.at, 0, sizeof(float)));
    CUDA_CHECK(cudaMemset(out.at, 0, sizeof(float)));
    for (const Version& version : VERSIONS)
        version.launch(1, in, in, out);
    CUDA_CHECK(cudaFree(in.at));
    CUDA_CHECK(cudaFree(out.at));
}

// Prints the table for one size. Returns whether all results are right.
bool compare(int n, const Peak& peak)
{
    std::vector<float> A = random_floats(n * n, 1), B = random_floats(n * n, 2);
    std::vector<float> C = random_floats(n * n, 3), result(n * n);
    Reference reference(A, B, C, n);

    printf("\nn = %d: at most %.0f GFLOP/s\n", n, peak.gflops_at(n));
    printf("kernel       time/ms   GFLOP/s   of that\n");
    bool good = true;
    for (const Version& version : VERSIONS) {
        float ms = run(version, A, B, C, result, n);
        double gflops = 2.0 * n * n * n / ms / 1e6;
        printf("%-10s %9.4f %9.1f %7.2f %%\n", version.name, ms, gflops, 100 * gflops / peak.gflops_at(n));
        good = reference.agrees(result, n) && good;
    }
    double sum = 0;
    for (float element : result)
        sum += element;
    printf("sum of C: %.8g\n", sum);
    return good;
}

__global__ void nothing() {}

// Why tiles cannot be wider than 32: shows what a launch with larger blocks does. The kernel does not run,
// so the memory for its result stays as it was; a program that does not ask for the error sees wrong numbers.
bool refuses_wide_blocks(const cudaDeviceProp& gpu)
{
    int side = (int)sqrt(gpu.maxThreadsPerBlock) + 1;
    nothing<<<1, dim3(side, side)>>>();
    cudaError_t status = cudaGetLastError();  // also forgets the error
    printf("a block of %d x %d threads: %s\n", side, side, cudaGetErrorString(status));
    return status != cudaSuccess;  // cudaErrorInvalidValue; before CUDA 13 cudaErrorInvalidConfiguration
}

int parse_size(const char* text)
{
    char* end;
    long size = strtol(text, &end, 10);
    if (end == text || *end != '\0' || size < 1 || size > 16384) {
        fprintf(stderr, "'%s' is no size: give whole numbers from 1 to 16384\n", text);
        exit(EXIT_FAILURE);
    }
    return (int)size;
}

int main(int argc, char** argv)
{
    std::vector<int> sizes;
    for (int i = 1; i < argc; ++i)
        sizes.push_back(parse_size(argv[i]));
    if (sizes.empty())
        sizes = {64, 100};

    cudaDeviceProp gpu;
    CUDA_CHECK(cudaGetDeviceProperties(&gpu, 0));
    Peak peak = peak_of_gpu(gpu);
    printf("sgemm_peak on %s: %.0f GFLOP/s, %.0f GB/s\n", gpu.name, peak.gflops, peak.gb_per_s);

    bool good = refuses_wide_blocks(gpu);
    warm_up();
    for (int size : sizes)
        good = compare(size, peak) && good;
    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
