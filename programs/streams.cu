// streams.cu: copies and kernels at the same time, in two streams
//
// The array is cut into chunks. Each chunk is copied to the GPU, worked on, and copied back. In one stream
// these steps follow one another; in two streams one chunk's copies run beside the other's kernel. That
// needs pinned host memory: from pageable memory, cudaMemcpyAsync waits for the copy.
//
// build:  nvcc -O2 streams.cu -o streams
// run:    ./streams                262144 elements in 8 chunks
//         ./streams 67108864       as many elements as given
//         ./streams 67108864 16    and in as many chunks
// prints: with one stream and with two the time, the sum of the result, and its largest error; the ratio
//         of the times; PASS. Where an element is wrong it prints FAIL, and the exit code is 1.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

// Ends the program with file, line and CUDA's message when a runtime call fails.
#define CUDA_CHECK(call)                                                                              \
    do {                                                                                              \
        cudaError_t status = (call);                                                                  \
        if (status != cudaSuccess) {                                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(EXIT_FAILURE);                                                                       \
        }                                                                                             \
    } while (0)

constexpr int THREADS = 256;  // per block
constexpr int STREAMS = 2;
constexpr int STEPS = 100;  // per element: enough work to take about as long as the copies

// y goes towards 2 x, by half the way in each step.
__host__ __device__ inline float halve_distance(float x, int steps)
{
    float y = 0;
    for (int step = 0; step < steps; ++step)
        y = 0.5f * y + x;
    return y;
}

__global__ void work(const float* x, float* y, int n, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = halve_distance(x[i], steps);
}

struct Buffers {
    float *x, *y;  // on the host, pinned
    float *d_x, *d_y;  // on the device
};

// Works on all chunks, in turns in the first `used` streams. Returns the time from the first copy to the
// last in milliseconds.
float run(const Buffers& at, int n, int chunks, cudaStream_t* streams, int used)
{
    cudaEvent_t start, stop, done;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));

    // The other streams begin after the event in the first one ...
    CUDA_CHECK(cudaEventRecord(start, streams[0]));
    for (int other = 1; other < used; ++other)
        CUDA_CHECK(cudaStreamWaitEvent(streams[other], start, 0));

    int chunk = (n + chunks - 1) / chunks;
    for (int begin = 0, turn = 0; begin < n; begin += chunk, ++turn) {
        int count = std::min(chunk, n - begin);
        cudaStream_t stream = streams[turn % used];
        CUDA_CHECK(cudaMemcpyAsync(at.d_x + begin, at.x + begin, count * sizeof(float),
                                   cudaMemcpyHostToDevice, stream));
        work<<<(count + THREADS - 1) / THREADS, THREADS, 0, stream>>>(at.d_x + begin, at.d_y + begin, count,
                                                                      STEPS);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaMemcpyAsync(at.y + begin, at.d_y + begin, count * sizeof(float),
                                   cudaMemcpyDeviceToHost, stream));
    }

    // ... and the last event comes after all of them.
    for (int other = 1; other < used; ++other) {
        CUDA_CHECK(cudaEventRecord(done, streams[other]));
        CUDA_CHECK(cudaStreamWaitEvent(streams[0], done, 0));
    }
    CUDA_CHECK(cudaEventRecord(stop, streams[0]));
    CUDA_CHECK(cudaEventSynchronize(stop));

    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    CUDA_CHECK(cudaEventDestroy(done));
    return ms;
}

// The largest relative error: y should be 2 x, less what STEPS steps leave of the way, which rounds to 0.
double largest_error(const Buffers& at, int n)
{
    double largest = 0;
    for (int i = 0; i < n; ++i) {
        double expected = 2.0 * at.x[i];
        double error = fabs(at.y[i] - expected) / expected;
        if (!(error <= largest))  // in this form NaN counts, too: no comparison with it is true
            largest = error;
    }
    return largest;
}

int parse_number(const char* text, long most)
{
    char* end;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < 1 || number > most) {
        fprintf(stderr, "'%s': give a whole number from 1 to %ld\n", text, most);
        exit(EXIT_FAILURE);
    }
    return (int)number;
}

int main(int argc, char** argv)
{
    int n = argc > 1 ? parse_number(argv[1], 1L << 29) : 1 << 18;
    int chunks = argc > 2 ? parse_number(argv[2], n) : std::min(8, n);
    size_t bytes = n * sizeof(float);

    Buffers at;
    CUDA_CHECK(cudaMallocHost(&at.x, bytes));
    CUDA_CHECK(cudaMallocHost(&at.y, bytes));
    CUDA_CHECK(cudaMalloc(&at.d_x, bytes));
    CUDA_CHECK(cudaMalloc(&at.d_y, bytes));
    std::mt19937 generator(1);  // the same numbers everywhere
    for (int i = 0; i < n; ++i)
        at.x[i] = ((generator() >> 8) + 1) / 16777216.0f;  // above 0, at most 1

    cudaStream_t streams[STREAMS];
    for (cudaStream_t& stream : streams)
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    int engines;
    CUDA_CHECK(cudaDeviceGetAttribute(&engines, cudaDevAttrAsyncEngineCount, 0));
    printf("streams: %d elements in %d chunks, %d copy engine%s\n", n, chunks, engines,
           engines == 1 ? "" : "s");

    float ms[STREAMS + 1];
    bool good = true;
    run(at, n, chunks, streams, 1);  // loads the kernel
    for (int used = 1; used <= STREAMS; ++used) {
        std::fill(at.y, at.y + n, NAN);
        ms[used] = run(at, n, chunks, streams, used);
        double error = largest_error(at, n), sum = std::accumulate(at.y, at.y + n, 0.0);
        // A step halves the errors so far and rounds anew: their sum stays below two roundings.
        good = good && error <= 2 * FLT_EPSILON;
        printf("%d stream%s %9.4f ms, sum of y %.3f, largest relative error %.2g\n", used,
               used == 1 ? ": " : "s:", ms[used], sum, error);
    }
    printf("speed-up: %.2f\n", ms[1] / ms[STREAMS]);

    for (cudaStream_t stream : streams)
        CUDA_CHECK(cudaStreamDestroy(stream));
    CUDA_CHECK(cudaFree(at.d_x));
    CUDA_CHECK(cudaFree(at.d_y));
    CUDA_CHECK(cudaFreeHost(at.x));
    CUDA_CHECK(cudaFreeHost(at.y));

    printf("%s\n", good ? "PASS" : "FAIL");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
