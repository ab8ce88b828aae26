// What the CUDA runtime answers to calls that are wrong: one line per call, "what: error". The same lines come from an
// H200 (tests/simt/programs/errors_h200.txt, made by running this there) and from the simulator.
#include <cstdio>
#include <cstdlib>

__global__ void fill(int *x) { x[threadIdx.x] = 1; }
__global__ void __launch_bounds__(64) bounded(int *x) { x[threadIdx.x] = 1; }
extern __shared__ int dynamic[];
__global__ void with_shared(int *x) { dynamic[threadIdx.x] = 1; x[threadIdx.x] = dynamic[threadIdx.x]; }
__global__ void unregistered_twin(int *x) { x[0] = 2; }
__device__ int variable[4];
__constant__ int table[4];

static void say(const char *what, cudaError_t code) { printf("%s: %s\n", what, cudaGetErrorName(code)); }

// The error of a launch shows at once, or when the device has done its work.
static void say_launch(const char *what) {
    cudaError_t at_once = cudaGetLastError(), later = cudaDeviceSynchronize();
    printf("%s: %s, then %s\n", what, cudaGetErrorName(at_once), cudaGetErrorName(later));
}

static void not_a_kernel() {}

static int after_a_fault() {
    int *x;
    cudaMalloc(&x, 1024);
    fill<<<1, 32>>>((int *)(16ull << 40));
    say("fault: last error at once", cudaGetLastError());
    say("fault: synchronise", cudaDeviceSynchronize());
    say("fault: last error", cudaGetLastError());
    say("fault: last error again", cudaGetLastError());
    say("fault: malloc", cudaMalloc(&x, 1024));
    say("fault: memset", cudaMemset(x, 0, 4));
    fill<<<1, 32>>>(x);
    say("fault: next launch", cudaGetLastError());
    say("fault: free", cudaFree(x));
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1)
        return after_a_fault();
    int *x, *y, *managed, *pinned, host[256] = {};
    cudaMalloc(&x, 4096);
    cudaMallocManaged(&managed, 4096);
    cudaMallocHost(&pinned, 4096);

    fill<<<1, 1025>>>(x);
    say_launch("1025 threads");
    fill<<<1, dim3(33, 33)>>>(x);
    say_launch("33 x 33 threads");
    fill<<<1, dim3(1, 1, 65)>>>(x);
    say_launch("65 threads in z");
    fill<<<0, 32>>>(x);
    say_launch("no blocks");
    fill<<<1, 0>>>(x);
    say_launch("no threads");
    fill<<<dim3(1, 65536), 32>>>(x);
    say_launch("65536 blocks in y");
    bounded<<<1, 65>>>(x);
    say_launch("more threads than __launch_bounds__");
    with_shared<<<1, 32, 49152>>>(x);
    say_launch("48 KB of shared memory");
    with_shared<<<1, 32, 49153>>>(x);
    say_launch("more than 48 KB of shared memory");
    say("allow 64 KB", cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    with_shared<<<1, 32, 65536>>>(x);
    say_launch("64 KB of shared memory, allowed");
    say("allow 1 GB", cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30));
    say_launch("after that");
    void *arguments[] = {&x};
    say("launch what is no kernel", cudaLaunchKernel((void *)not_a_kernel, dim3(1), dim3(1), arguments, 0, 0));
    cudaGetLastError();

    say("malloc of 0 bytes", cudaMalloc(&y, 0));
    printf("malloc of 0 bytes gives %s\n", y ? "a pointer" : "nullptr");
    say("malloc of too much", cudaMalloc(&y, 1ull << 50));
    say("last error", cudaGetLastError());
    say("last error again", cudaGetLastError());
    say("free nullptr", cudaFree(nullptr));
    say("free host memory", cudaFree(host));
    say("free inside", cudaFree(x + 1));
    int *z;
    cudaMalloc(&z, 64);
    say("free", cudaFree(z));
    say("free again", cudaFree(z));
    say("free pinned memory with cudaFree", cudaFree(pinned));
    cudaGetLastError();
    say("free device memory with cudaFreeHost", cudaFreeHost(x));
    say("free host nullptr", cudaFreeHost(nullptr));
    cudaGetLastError();

    say("copy to nullptr", cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice));
    say("copy 0 bytes to nullptr", cudaMemcpy(nullptr, host, 0, cudaMemcpyHostToDevice));
    say("copy, wrong kind: host to device", cudaMemcpy(host, x, 4, cudaMemcpyHostToDevice));
    say("copy, wrong kind: device to host", cudaMemcpy(x, host, 4, cudaMemcpyDeviceToHost));
    say("copy, wrong kind: device to device", cudaMemcpy(x, host, 4, cudaMemcpyDeviceToDevice));
    say("copy of kind 7", cudaMemcpy(x, host, 4, (cudaMemcpyKind)7));
    say("copy by default", cudaMemcpy(x, host, 4, cudaMemcpyDefault));
    say("copy 2-D, rows longer than their pitch", cudaMemcpy2D(x, 8, host, 8, 16, 2, cudaMemcpyHostToDevice));
    say("memset of host memory", cudaMemset(host, 0, 4));
    say("memset of managed memory", cudaMemset(managed, 0, 4));
    say("memset of nullptr", cudaMemset(nullptr, 0, 4));
    cudaGetLastError();

    say("copy to a variable", cudaMemcpyToSymbol(variable, host, 16));
    say("copy to a variable, too long", cudaMemcpyToSymbol(variable, host, 20));
    say("copy to a variable, beyond", cudaMemcpyToSymbol(table, host, 8, 12));
    say("address of what is no variable", cudaGetSymbolAddress((void **)&y, host));
    cudaGetLastError();

    int number;
    cudaDeviceProp properties;
    say("set device 7", cudaSetDevice(999));
    say("properties of device 999", cudaGetDeviceProperties(&properties, 999));
    say("attribute of device 999", cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 999));
    say("attribute 9999", cudaDeviceGetAttribute(&number, (cudaDeviceAttr)9999, 0));
    cudaGetLastError();

    cudaEvent_t start, end, untimed;
    float ms;
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming);
    say("time between events that are not recorded", cudaEventElapsedTime(&ms, start, end));
    cudaEventRecord(start);
    cudaEventRecord(untimed);
    cudaDeviceSynchronize();
    say("time to an event without timing", cudaEventElapsedTime(&ms, start, untimed));
    say("time to an event that is not recorded", cudaEventElapsedTime(&ms, start, end));
    say("query an event that is not recorded", cudaEventQuery(end));
    say("synchronise an event that is not recorded", cudaEventSynchronize(end));
    say("wait for an event that is not recorded", cudaStreamWaitEvent(0, end, 0));
    say("event with flags 99", cudaEventCreateWithFlags(&end, 99));
    cudaGetLastError();
    cudaStream_t stream;
    say("stream with flags 99", cudaStreamCreateWithFlags(&stream, 99));
    say("stream", cudaStreamCreate(&stream));
    say("query an idle stream", cudaStreamQuery(stream));
    say("begin to capture the default stream", cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
    cudaGraph_t graph;
    say("end a capture that never began", cudaStreamEndCapture(stream, &graph));
    cudaGetLastError();
    say("host pointer's device pointer", cudaHostGetDevicePointer((void **)&y, host, 0));
    say("device pointer of pinned memory", cudaHostGetDevicePointer((void **)&y, managed, 0));
    cudaPointerAttributes attributes;
    say("attributes of a host pointer", cudaPointerGetAttributes(&attributes, host));
    printf("type %d\n", attributes.type);
    say("attributes of a device pointer", cudaPointerGetAttributes(&attributes, x));
    printf("type %d\n", attributes.type);
    say("occupancy of 2048 threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, fill, 2048, 0));
    printf("%d blocks\n", number);
    cudaGetLastError();
    say("occupancy of 256 threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, fill, 256, 0));
    printf("%d blocks\n", number);
    say("at the end", cudaGetLastError());
    return 0;
}
