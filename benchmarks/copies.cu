// How long copies between host and GPU and empty launches take, by events: what simt/programs/server/gpu.py rests on.
//
// nvcc -O2 benchmarks/copies.cu -o copies && ./copies
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void nothing() {}

struct Side {
    const char *name;
    bool is_to_device, is_pinned;
};

int main() {
    const size_t most = 64 << 20, sizes[] = {4, 4096, 131072, 1 << 20, 16 << 20};
    const Side sides[] = {{"pinned, to the GPU", true, true},
                          {"pinned, to the host", false, true},
                          {"pageable, to the GPU", true, false},
                          {"pageable, to the host", false, false}};
    void *device, *pinned, *pageable = malloc(most);
    cudaMalloc(&device, most);
    cudaMallocHost(&pinned, most);
    memset(pageable, 1, most);
    memset(pinned, 1, most);
    cudaEvent_t start, end;
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    float ms;
    for (int round = 0; round < 2; round++) // the first warms up
        for (size_t bytes : sizes)
            for (const Side &side : sides) {
                int times = bytes > (1 << 20) ? 8 : 64;
                void *host = side.is_pinned ? pinned : pageable;
                cudaDeviceSynchronize();
                cudaEventRecord(start);
                for (int i = 0; i < times; i++)
                    if (side.is_to_device)
                        cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice);
                    else
                        cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost);
                cudaEventRecord(end);
                cudaEventSynchronize(end);
                cudaEventElapsedTime(&ms, start, end);
                if (round)
                    printf("%-22s %9zu bytes: %8.2f us each, %5.1f GB/s\n", side.name, bytes, ms * 1e3 / times,
                           bytes * times / ms / 1e6);
            }
    for (int launches : {1, 1, 256, 256}) {
        cudaEventRecord(start);
        for (int i = 0; i < launches; i++)
            nothing<<<1, 32>>>();
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(&ms, start, end);
        printf("%3d empty launches: %.2f us each\n", launches, ms * 1e3 / launches);
    }
    return cudaGetLastError();
}
