"""What programs of others ask of the CUDA runtime: earlier names, registered memory, graphs, pools."""

import pytest

SOURCE = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void twice(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] *= 2;
}
__global__ void before(int *a, int *out) { *out = a[-4] == a[-4]; }
static const char *name(cudaError_t code) { return cudaGetErrorName(code); }

static void earlier_names() {
    struct cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    int clock;
    cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0);
    const bool has_clock = properties.clockRate == clock && clock > 0;
    printf("%d %d %d\n", has_clock, properties.deviceOverlap, properties.warpSize);
    printf("%s %s\n", name(cudaThreadSynchronize()), name(cudaGetDeviceProperties(&properties, 1)));
}
static void before_the_first_array() {
    int *a, *out, value = 0;
    cudaMalloc(&a, 64);
    cudaMalloc(&out, 64);
    before<<<1, 1>>>(a, out);
    cudaMemcpy(&value, out, 4, cudaMemcpyDeviceToHost);
    printf("%d\n", value);
}
static void registered() {
    const int n = 5000;
    int *all = (int *)malloc((n + 8) * sizeof(int)), *h = all + 3, *d;
    for (int i = 0; i < n + 8; i++)
        all[i] = i - 3;
    printf("%s ", name(cudaHostRegister(h, n * sizeof(int), cudaHostRegisterMapped)));
    printf("%s ", name(cudaHostRegister(h, 4, 0)));
    printf("%s\n", name(cudaHostGetDevicePointer((void **)&d, h, 0)));
    twice<<<(n + 255) / 256, 256>>>(d, n);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", h[-1], h[1], h[n - 1], h[n]);
    h[7] = 70;
    twice<<<1, 8>>>(d, 8);
    cudaDeviceSynchronize();
    cudaPointerAttributes about;
    cudaPointerGetAttributes(&about, h + 1);
    printf("%d %d\n", about.type == cudaMemoryTypeHost, about.devicePointer == d + 1);
    printf("%s %d %d ", name(cudaHostUnregister(h)), h[7], h[n]);
    printf("%s\n", name(cudaHostUnregister(h)));
    free(all);
}
static void graphs() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    int *host, *kept, *made;
    cudaMallocHost(&host, 4);
    cudaMalloc(&kept, 4);
    cudaMemset(kept, 0, 4);
    *host = 1;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMallocAsync(&made, 4, stream);
    cudaMemcpyAsync(made, host, 4, cudaMemcpyHostToDevice, stream);
    twice<<<1, 1, 0, stream>>>(made, 1);
    cudaMemcpyAsync(host, made, 4, cudaMemcpyDeviceToHost, stream);
    cudaFreeAsync(made, stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&run, graph, 0);
    for (int i = 0; i < 3; i++)
        cudaGraphLaunch(run, stream);
    printf("%s %d\n", name(cudaStreamSynchronize(stream)), *host);

    int n = 0;
    void *arguments[] = {&host, &n};
    cudaKernelNodeParams parameters = {(void *)twice, 1, 1, 0, arguments, nullptr};
    cudaGraphNode_t node;
    cudaGraph_t other;
    cudaGraphCreate(&other, 0);
    cudaGraphAddKernelNode(&node, other, nullptr, 0, &parameters);
    cudaGraphExec_t changed;
    cudaGraphInstantiate(&changed, other, 0);
    cudaGraphLaunch(changed, stream);
    int first = *host;
    n = 1;
    printf("%s ", name(cudaGraphExecKernelNodeSetParams(changed, node, &parameters)));
    cudaGraphLaunch(changed, stream);
    cudaStreamSynchronize(stream);
    printf("%d %d\n", first, *host);
    cudaGraphExecUpdateResultInfo result;
    printf("%s ", name(cudaGraphExecUpdate(changed, graph, &result)));
    printf("%d ", result.result == cudaGraphExecUpdateErrorTopologyChanged);
    printf("%s\n", name(cudaGraphExecUpdate(changed, other, &result)));
}
static void pools() {
    cudaMemPool_t pool;
    unsigned long long threshold = 1 << 20, found = 0;
    cudaDeviceGetDefaultMemPool(&pool, 0);
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &found);
    int *d;
    printf("%llu %s ", found, name(cudaMallocFromPoolAsync(&d, 64, pool, 0)));
    printf("%s %s\n", name(cudaFreeAsync(d, 0)), name(cudaMemPoolDestroy(pool)));
}
int main() {
    earlier_names();
    before_the_first_array();
    registered();
    graphs();
    pools();
}
"""
EXPECTED = """1 1 32
cudaSuccess cudaErrorInvalidDevice
1
cudaSuccess cudaErrorHostMemoryAlreadyRegistered cudaSuccess
-1 2 9998 5000
1 1
cudaSuccess 140 5000 cudaErrorHostMemoryNotRegistered
cudaSuccess 8
cudaSuccess 8 16
cudaErrorGraphExecUpdateFailure 1 cudaSuccess
1048576 cudaSuccess cudaSuccess cudaErrorInvalidValue
"""


@pytest.fixture(scope="module")
def output(built):
    out, told, code = built(SOURCE).run()
    assert (told, code) == ("", 0)
    return out


def test_what_programs_of_others_ask_for(output):
    assert output.splitlines() == EXPECTED.splitlines()
