// matmul_int.cu: C = A B of int32 matrices, naive and tiled, for blocks of 1 x 1 to 32 x 32 threads
//
// Each thread computes one element of C. The naive kernel reads A and B from global memory. The tiled one
// brings them to shared memory tile by tile, so that a block reads each element once. Its tiles are as
// large as the block, and the block's size is known at run time only: the shared memory is dynamic.
//
// build:  nvcc -O2 matmul_int.cu -o matmul_int
// run:    ./matmul_int                      64 x 64 matrices
//         ./matmul_int 256 512 1024 4096    one table for each of these sizes
// prints: for each block the kernels' times, their shares of the GPU's time (the rest are copies), and
//         what tiling gains; the sum of C; PASS. Where an element is wrong it prints FAIL, and the exit
//         code is 1.

#include <algorithm>
#include <chrono>
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

constexpr int SIDES[] = {1, 2, 4, 8, 16, 32};  // 33 x 33 threads are more than the 1024 that a block holds
constexpr double MOST_CPU_STEPS = 1 << 28;  // multiplications on the CPU, for the check

// A square matrix in device memory, row by row.
struct Matrix {
    int size;
    int* at;
};

__global__ void matmul_naive(Matrix A, Matrix B, Matrix C)
{
    int n = C.size;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n)
        return;  // the last blocks may stick out over the edge

    int sum = 0;
    for (int k = 0; k < n; ++k)
        sum += A.at[row * n + k] * B.at[k * n + col];
    C.at[row * n + col] = sum;
}

__global__ void matmul_tiled(Matrix A, Matrix B, Matrix C)
{
    extern __shared__ int tiles[];  // side x side elements of A, then as many of B
    int side = blockDim.x, x = threadIdx.x, y = threadIdx.y;
    int* A_tile = tiles;
    int* B_tile = tiles + side * side;

    int n = C.size;
    int col = blockIdx.x * side + x;
    int row = blockIdx.y * side + y;

    int sum = 0;
    for (int k0 = 0; k0 < n; k0 += side) {
        // Each thread brings one element of each tile; past the edge a 0, which adds nothing to the sum.
        A_tile[y * side + x] = row < n && k0 + x < n ? A.at[row * n + k0 + x] : 0;
        B_tile[y * side + x] = k0 + y < n && col < n ? B.at[(k0 + y) * n + col] : 0;
        __syncthreads();  // the tiles are complete before anyone reads them

        for (int k = 0; k < side; ++k)
            sum += A_tile[y * side + k] * B_tile[k * side + x];
        __syncthreads();  // everyone has read the tiles before anyone overwrites them
    }
    if (row < n && col < n)
        C.at[row * n + col] = sum;
}

enum class Kernel { naive, tiled };

void launch(Kernel kernel, int side, Matrix A, Matrix B, Matrix C)
{
    dim3 block(side, side);
    int blocks = (C.size + side - 1) / side;
    dim3 grid(blocks, blocks);
    if (kernel == Kernel::naive)
        matmul_naive<<<grid, block>>>(A, B, C);
    else
        matmul_tiled<<<grid, block, 2 * side * side * sizeof(int)>>>(A, B, C);
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

// Small numbers, so that no sum overflows: 9 * 9 * 32768 is below 2^31.
std::vector<int> random_digits(int count, unsigned seed)
{
    std::mt19937 generator(seed);  // the same numbers everywhere, unlike the standard's distributions
    std::vector<int> numbers(count);
    for (int& number : numbers)
        number = generator() % 10;
    return numbers;
}

// Some rows of A B, evenly spread, in 64 bits: all rows where that takes little time.
struct Reference {
    std::vector<int> rows;
    std::vector<long long> expected;  // one row after the other

    Reference(const std::vector<int>& A, const std::vector<int>& B, int n)
    {
        int count = (int)std::min<double>(n, std::max(1.0, MOST_CPU_STEPS / n / n));
        expected.assign((size_t)count * n, 0);
        for (int i = 0; i < count; ++i) {
            int row = (int)((long long)i * n / count);
            rows.push_back(row);
            for (int k = 0; k < n; ++k)
                for (int col = 0; col < n; ++col)
                    expected[(size_t)i * n + col] += (long long)A[row * n + k] * B[k * n + col];
        }
    }

    bool agrees(const std::vector<int>& C, int n) const
    {
        for (size_t i = 0; i < rows.size(); ++i)
            for (int col = 0; col < n; ++col)
                if (C[rows[i] * n + col] != expected[i * n + col]) {
                    fprintf(stderr, "C[%d][%d] is %d, but should be %lld\n", rows[i], col,
                            C[rows[i] * n + col], expected[i * n + col]);
                    return false;
                }
        return true;
    }
};

// Prints the table for one size. Returns whether all products are right.
bool sweep(int n)
{
    size_t bytes = (size_t)n * n * sizeof(int);
    std::vector<int> A = random_digits(n * n, 1), B = random_digits(n * n, 2), C(n * n);

    auto begin = std::chrono::steady_clock::now();
    Reference reference(A, B, n);
    std::chrono::duration<double, std::milli> cpu = std::chrono::steady_clock::now() - begin;
    printf("\nN = %d. CPU: %.2f ms for %zu rows\n", n, cpu.count(), reference.rows.size());

    Matrix d_A{n, nullptr}, d_B{n, nullptr}, d_C{n, nullptr};
    for (Matrix* matrix : {&d_A, &d_B, &d_C})
        CUDA_CHECK(cudaMalloc(&matrix->at, bytes));
    float copies_in = gpu_ms([&] {
        CUDA_CHECK(cudaMemcpy(d_A.at, A.data(), bytes, cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(d_B.at, B.data(), bytes, cudaMemcpyHostToDevice));
    });

    printf("block    naive kernel (share)    tiled kernel (share)   gain of tiling\n");
    bool good = true;
    for (int side : SIDES) {
        float ms[2];
        printf("%2dx%-2d", side, side);
        for (Kernel kernel : {Kernel::naive, Kernel::tiled}) {
            CUDA_CHECK(cudaMemset(d_C.at, 0xff, bytes));  // what the kernel leaves out stays -1
            float kernel_ms = gpu_ms([&] { launch(kernel, side, d_A, d_B, d_C); });
            float copy_out =
                gpu_ms([&] { CUDA_CHECK(cudaMemcpy(C.data(), d_C.at, bytes, cudaMemcpyDeviceToHost)); });
            printf("  %10.4f ms (%5.2f %%)", kernel_ms, 100 * kernel_ms / (copies_in + kernel_ms + copy_out));
            ms[(int)kernel] = kernel_ms;
            good = reference.agrees(C, n) && good;
        }
        printf("  %13.2f x\n", ms[0] / ms[1]);
    }

    long long sum = 0;
    for (int element : C)
        sum += element;
    printf("sum of C: %lld\n", sum);
    for (Matrix matrix : {d_A, d_B, d_C})
        CUDA_CHECK(cudaFree(matrix.at));
    return good;
}

// Launches each kernel on one element: the first launch of a kernel also loads it.
void warm_up()
{
    Matrix in{1, nullptr}, out{1, nullptr};
    CUDA_CHECK(cudaMalloc(&in.at, sizeof(int)));
    CUDA_CHECK(cudaMalloc(&out.at, sizeof(int)));
    CUDA_CHECK(cudaMemset(in.at, 0, sizeof(int)));
    for (Kernel kernel : {Kernel::naive, Kernel::tiled}) {
        launch(kernel, 1, in, in, out);
        CUDA_CHECK(cudaGetLastError());
    }
    CUDA_CHECK(cudaFree(in.at));
    CUDA_CHECK(cudaFree(out.at));
}

int parse_size(const char* text)
{
    char* end;
    long size = strtol(text, &end, 10);
    if (end == text || *end != '\0' || size < 1 || size > 32768) {
        fprintf(stderr, "'%s' is no size: give whole numbers from 1 to 32768\n", text);
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
        sizes = {64};

    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    printf("matmul_int on %s\n", properties.name);
    warm_up();

    bool good = true;
    for (int size : sizes)
        good = sweep(size) && good;
    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
