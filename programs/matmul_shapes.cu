// matmul_shapes.cu: C = A B of float matrices of any shape, for tiles of 4 x 4 to 32 x 32
//
// Asks for the four sizes, multiplies on the CPU, with a kernel that reads global memory only, and with a
// kernel that goes through shared memory, and compares. A tile's width is a template argument: the compiler
// then knows how often the inner loop runs.
//
// build:  nvcc -O2 matmul_shapes.cu -o matmul_shapes
// run:    ./matmul_shapes                        asks: rows and columns of A, rows and columns of B
//         ./matmul_shapes 32 32 32 32            small
//         ./matmul_shapes 256 256 256 256        medium
//         ./matmul_shapes 4096 2048 2048 4096    large
// prints: the times of CPU and kernels, the sum of C, and PASS. Where an element is wrong it prints FAIL,
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

constexpr int NAIVE_WIDTH = 16;  // of the naive kernel's blocks
constexpr double MOST_CPU_STEPS = 1 << 28;  // multiplications on the CPU, for the check

// A is m x k, B is k x n, C is m x n; all lie row by row.
struct Shape {
    int m, n, k;
};

__global__ void matmul_naive(const float* A, const float* B, float* C, Shape shape)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= shape.m || col >= shape.n)
        return;  // the last blocks may stick out over the edge

    float sum = 0;
    for (int k = 0; k < shape.k; ++k)
        sum += A[row * shape.k + k] * B[k * shape.n + col];
    C[row * shape.n + col] = sum;
}

template <int TILE>
__global__ void matmul_tiled(const float* A, const float* B, float* C, Shape shape)
{
    __shared__ float A_tile[TILE][TILE];
    __shared__ float B_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int col = blockIdx.x * TILE + x;
    int row = blockIdx.y * TILE + y;

    float sum = 0;
    for (int k0 = 0; k0 < shape.k; k0 += TILE) {
        // Each thread brings one element of each tile; past the edge a 0, which adds nothing to the sum.
        A_tile[y][x] = row < shape.m && k0 + x < shape.k ? A[row * shape.k + k0 + x] : 0.0f;
        B_tile[y][x] = k0 + y < shape.k && col < shape.n ? B[(k0 + y) * shape.n + col] : 0.0f;
        __syncthreads();  // the tiles are complete before anyone reads them

        for (int k = 0; k < TILE; ++k)
            sum += A_tile[y][k] * B_tile[k][x];
        __syncthreads();  // everyone has read the tiles before anyone overwrites them
    }
    if (row < shape.m && col < shape.n)
        C[row * shape.n + col] = sum;
}

// A kernel and the width of its square blocks.
struct Version {
    const char* name;
    int width;
    void (*kernel)(const float*, const float*, float*, Shape);
};

const Version VERSIONS[] = {
    {"not tiled", NAIVE_WIDTH, matmul_naive}, {"tiled", 4, matmul_tiled<4>},
    {"tiled", 8, matmul_tiled<8>},            {"tiled", 16, matmul_tiled<16>},
    {"tiled", 32, matmul_tiled<32>},
};

void launch(const Version& version, const float* A, const float* B, float* C, Shape shape)
{
    int width = version.width;
    dim3 block(width, width);
    dim3 grid((shape.n + width - 1) / width, (shape.m + width - 1) / width);
    version.kernel<<<grid, block>>>(A, B, C, shape);
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

// Numbers from 0 to 5.
std::vector<float> random_floats(int count, unsigned seed)
{
    std::mt19937 generator(seed);  // the same numbers everywhere, unlike the standard's distributions
    std::vector<float> numbers(count);
    for (float& number : numbers)
        number = 5.0f * ((generator() >> 8) / 16777216.0f);  // 24 bits: all that a float holds
    return numbers;
}

// Some rows of A B, evenly spread, in double: all rows where that takes little time.
struct Reference {
    std::vector<int> rows;
    std::vector<double> expected;  // one row after the other

    Reference(const std::vector<float>& A, const std::vector<float>& B, Shape shape)
    {
        int count = (int)std::min<double>(shape.m, std::max(1.0, MOST_CPU_STEPS / shape.n / shape.k));
        expected.assign((size_t)count * shape.n, 0);
        for (int i = 0; i < count; ++i) {
            int row = (int)((long long)i * shape.m / count);
            rows.push_back(row);
            for (int k = 0; k < shape.k; ++k)
                for (int col = 0; col < shape.n; ++col)
                    expected[(size_t)i * shape.n + col] +=
                        (double)A[row * shape.k + k] * B[k * shape.n + col];
        }
    }

    // All terms are positive. Their roundings go up and down: the error grows with the root of their number.
    bool agrees(const std::vector<float>& C, Shape shape) const
    {
        double tolerance = 4 * FLT_EPSILON * sqrt(shape.k);
        for (size_t i = 0; i < rows.size(); ++i)
            for (int col = 0; col < shape.n; ++col) {
                double is = C[rows[i] * shape.n + col], should = expected[i * shape.n + col];
                if (!(fabs(is - should) <= tolerance * should)) {  // in this form NaN is wrong, too
                    fprintf(stderr, "C[%d][%d] is %.9g, but should be %.9g\n", rows[i], col, is, should);
                    return false;
                }
            }
        return true;
    }
};

// Prints the table. Returns whether all products are right.
bool compare(Shape shape)
{
    int m = shape.m, n = shape.n, k = shape.k;
    std::vector<float> A = random_floats(m * k, 1), B = random_floats(k * n, 2), C(m * n);
    size_t C_bytes = C.size() * sizeof(float);
    printf("matmul_shapes: (%d x %d) (%d x %d) = (%d x %d)\n", m, k, k, n, m, n);

    auto begin = std::chrono::steady_clock::now();
    Reference reference(A, B, shape);
    std::chrono::duration<double, std::milli> cpu = std::chrono::steady_clock::now() - begin;
    printf("CPU, %zu of %d rows: %.3f ms\n", reference.rows.size(), m, cpu.count());

    float *d_A, *d_B, *d_C;
    CUDA_CHECK(cudaMalloc(&d_A, A.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_B, B.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_C, C_bytes));
    CUDA_CHECK(cudaMemcpy(d_A, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_B, B.data(), B.size() * sizeof(float), cudaMemcpyHostToDevice));

    printf("kernel     TILE_WIDTH    time (ms)\n");
    bool good = true;
    for (const Version& version : VERSIONS) {
        CUDA_CHECK(cudaMemset(d_C, 0xff, C_bytes));  // what the kernel leaves out stays NaN
        float ms = gpu_ms([&] { launch(version, d_A, d_B, d_C, shape); });
        printf("%-10s %10d %12.4f\n", version.name, version.width, ms);
        CUDA_CHECK(cudaMemcpy(C.data(), d_C, C_bytes, cudaMemcpyDeviceToHost));
        good = reference.agrees(C, shape) && good;
    }

    double sum = 0;
    for (float element : C)
        sum += element;
    printf("sum of C: %.8g\n", sum);
    CUDA_CHECK(cudaFree(d_A));
    CUDA_CHECK(cudaFree(d_B));
    CUDA_CHECK(cudaFree(d_C));
    return good;
}

// Launches each kernel on one element: the first launch of a kernel also loads it.
void warm_up()
{
    float *in, *out;
    CUDA_CHECK(cudaMalloc(&in, sizeof(float)));
    CUDA_CHECK(cudaMalloc(&out, sizeof(float)));
    CUDA_CHECK(cudaMemset(in, 0, sizeof(float)));
    for (const Version& version : VERSIONS) {
        launch(version, in, in, out, {1, 1, 1});
        CUDA_CHECK(cudaGetLastError());
    }
    CUDA_CHECK(cudaFree(in));
    CUDA_CHECK(cudaFree(out));
}

// The next size, from the command line or else from the user; at the end of the input, `otherwise`.
int ask(const char* what, int otherwise, const char* text)
{
    char line[32];
    if (!text) {
        printf("%s [%d]: ", what, otherwise);
        fflush(stdout);
        text = fgets(line, sizeof line, stdin);
        if (!text)
            printf("\n");
        if (!text || *text == '\n')
            return otherwise;
    }
    char* end;
    long size = strtol(text, &end, 10);
    if (end == text || (*end != '\0' && *end != '\n') || size < 1 || size > 16384) {
        fprintf(stderr, "%s: give a whole number from 1 to 16384\n", what);
        exit(EXIT_FAILURE);
    }
    return (int)size;
}

int main(int argc, char** argv)
{
    auto given = [&](int place) { return place < argc ? argv[place] : nullptr; };
    int A_rows = ask("rows of A", 48, given(1)), A_cols = ask("columns of A", 40, given(2));
    int B_rows = ask("rows of B", A_cols, given(3)), B_cols = ask("columns of B", 56, given(4));
    if (A_cols != B_rows) {
        fprintf(stderr, "A has %d columns and B %d rows: a product needs as many of one as of the other\n",
                A_cols, B_rows);
        return EXIT_FAILURE;
    }
    warm_up();
    bool good = compare({A_rows, B_cols, A_cols});
    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
