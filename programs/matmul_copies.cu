// matmul_copies.cu: C = A B in float on the GPU, and what the time goes to: kernel, copies, allocation
//
// Three kernels with one thread per element of C. The basic one adds up in global memory; the next adds up
// in a register; the last also brings tiles of A and B to shared memory. So the table tells what the
// register gains, and what the tiles gain. Allocation is timed on the host: it does not happen on the GPU.
//
// build:  nvcc -O2 matmul_copies.cu -o matmul_copies
// run:    ./matmul_copies                6: 2^6 = 64 rows and columns
//         ./matmul_copies 9 10 11 12     512, 1024, 2048 and 4096 rows and columns
// prints: per size and block the times, the sum of C, and PASS. Where an element is wrong it prints FAIL,
//         and the exit code is 1.

#include <algorithm>
#include <cfloat>
#include <chrono>
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

constexpr double MOST_CPU_STEPS = 1 << 28;  // multiplications on the CPU, for the check

// All three: A, B and C are n x n, row by row. The grid covers C exactly: n and the block are powers of two.

__global__ void matmul_basic(const float* A, const float* B, float* C, int n)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    C[row * n + col] = 0;
    for (int k = 0; k < n; ++k)
        C[row * n + col] += A[row * n + k] * B[k * n + col];  // a store in each step, as A or B might be C
}

__global__ void matmul_register(const float* A, const float* B, float* C, int n)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; ++k)
        sum += A[row * n + k] * B[k * n + col];
    C[row * n + col] = sum;
}

template <int BLOCK>
__global__ void matmul_tiled(const float* A, const float* B, float* C, int n)
{
    __shared__ float A_tile[BLOCK][BLOCK];
    __shared__ float B_tile[BLOCK][BLOCK];
    int x = threadIdx.x, y = threadIdx.y;
    int col = blockIdx.x * BLOCK + x;
    int row = blockIdx.y * BLOCK + y;

    float sum = 0;
    for (int k0 = 0; k0 < n; k0 += BLOCK) {
        A_tile[y][x] = A[row * n + k0 + x];
        B_tile[y][x] = B[(k0 + y) * n + col];
        __syncthreads();  // the tiles are complete before anyone reads them

        for (int k = 0; k < BLOCK; ++k)
            sum += A_tile[y][k] * B_tile[k][x];
        __syncthreads();  // everyone has read the tiles before anyone overwrites them
    }
    C[row * n + col] = sum;
}

using Kernel = void (*)(const float*, const float*, float*, int);

// The kernels that a row of the table compares, with their block.
struct Row {
    int block;
    Kernel kernels[3];
};

const Row ROWS[] = {
    {4, {matmul_basic, matmul_register, matmul_tiled<4>}},
    {8, {matmul_basic, matmul_register, matmul_tiled<8>}},
    {16, {matmul_basic, matmul_register, matmul_tiled<16>}},
    {32, {matmul_basic, matmul_register, matmul_tiled<32>}},
};

double host_ms()
{
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

// Calls `start_work`, and returns how long the GPU took for what it started, in milliseconds.
template <typename Work>
float gpu_ms(Work start_work)
{
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start));
    start_work();
    CUDA_CHECK(cudaGetLastError());  // a launch returns nothing: a wrong configuration shows here
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    return ms;
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

// Some rows of A B, evenly spread, in double: all rows where that takes little time.
struct Reference {
    std::vector<int> rows;
    std::vector<double> expected;  // one row after the other

    Reference(const std::vector<float>& A, const std::vector<float>& B, int n)
    {
        int count = (int)std::min<double>(n, std::max(1.0, MOST_CPU_STEPS / n / n));
        expected.assign((size_t)count * n, 0);
        for (int i = 0; i < count; ++i) {
            int row = (int)((long long)i * n / count);
            rows.push_back(row);
            for (int k = 0; k < n; ++k)
                for (int col = 0; col < n; ++col)
                    expected[(size_t)i * n + col] += (double)A[row * n + k] * B[k * n + col];
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

// Prints the table for one size. Returns whether all products are right.
bool table(int n)
{
    size_t bytes = (size_t)n * n * sizeof(float);
    std::vector<float> A = random_floats(n * n, 1), B = random_floats(n * n, 2), C(n * n);
    Reference reference(A, B, n);
    bool good = true;

    printf("\nN = %d\n", n);
    printf("          kernel (ms):                         copy (ms):            cudaMalloc\n");
    printf("block        basic   register      tiled      to GPU   from GPU            (ms)\n");
    for (const Row& row : ROWS) {
        float *d_A, *d_B, *d_C;
        double begin = host_ms();
        for (float** array : {&d_A, &d_B, &d_C})
            CUDA_CHECK(cudaMalloc(array, bytes));
        double allocation = host_ms() - begin;
        float to_gpu = gpu_ms([&] {
            CUDA_CHECK(cudaMemcpy(d_A, A.data(), bytes, cudaMemcpyHostToDevice));
            CUDA_CHECK(cudaMemcpy(d_B, B.data(), bytes, cudaMemcpyHostToDevice));
        });

        printf("%2dx%-2d ", row.block, row.block);
        dim3 block(row.block, row.block), grid(n / row.block, n / row.block);
        float from_gpu = 0;
        for (Kernel kernel : row.kernels) {
            CUDA_CHECK(cudaMemset(d_C, 0xff, bytes));  // what the kernel leaves out stays NaN
            float ms = gpu_ms([&] { kernel<<<grid, block>>>(d_A, d_B, d_C, n); });
            from_gpu =
                gpu_ms([&] { CUDA_CHECK(cudaMemcpy(C.data(), d_C, bytes, cudaMemcpyDeviceToHost)); });
            printf(" %10.4f", ms);
            good = reference.agrees(C, n) && good;
        }
        printf("  %10.4f %10.4f %15.4f\n", to_gpu, from_gpu, allocation);
        for (float* array : {d_A, d_B, d_C})
            CUDA_CHECK(cudaFree(array));
    }

    double sum = 0;
    for (float element : C)
        sum += element;
    printf("sum of C: %.8g\n", sum);
    return good;
}

// Launches each kernel once, on one block: the first launch of a kernel also loads it.
void warm_up()
{
    for (const Row& row : ROWS) {
        int n = row.block;
        float *in, *out;
        CUDA_CHECK(cudaMalloc(&in, n * n * sizeof(float)));
        CUDA_CHECK(cudaMalloc(&out, n * n * sizeof(float)));
        CUDA_CHECK(cudaMemset(in, 0, n * n * sizeof(float)));
        for (Kernel kernel : row.kernels) {
            kernel<<<1, dim3(n, n)>>>(in, in, out, n);
            CUDA_CHECK(cudaGetLastError());
        }
        CUDA_CHECK(cudaFree(in));
        CUDA_CHECK(cudaFree(out));
    }
}

// The exponent of a size that the largest block divides.
int parse_exponent(const char* text)
{
    char* end;
    long exponent = strtol(text, &end, 10);
    if (end == text || *end != '\0' || exponent < 5 || exponent > 14) {
        fprintf(stderr, "'%s' is no exponent: give whole numbers from 5 to 14, for 2^5 to 2^14 rows\n", text);
        exit(EXIT_FAILURE);
    }
    return (int)exponent;
}

int main(int argc, char** argv)
{
    std::vector<int> exponents;
    for (int i = 1; i < argc; ++i)
        exponents.push_back(parse_exponent(argv[i]));
    if (exponents.empty())
        exponents = {6};

    double begin = host_ms();
    CUDA_CHECK(cudaFree(nullptr));  // the program's first call of the runtime sets up the GPU for it
    double setup = host_ms() - begin;
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    printf("matmul_copies on %s: set up in %.1f ms\n", properties.name, setup);
    warm_up();

    bool good = true;
    for (int exponent : exponents)
        good = table(1 << exponent) && good;
    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
