"""What public programs do: calls of earlier CUDA, sweeps between events, copies of unwritten memory."""

import re

import numpy as np
import pytest

import simt
from simt.programs.program import build_program
from simt.programs.server.words import shown

EARLIER = r"""
#include <cstdio>
__global__ void k(int *a) { a[threadIdx.x] += 1; }
int main()
{
    int *a, device;
    cudaGetDevice(&device);
    cudaMallocManaged(&a, 128);
    for (int i = 0; i < 32; i++)
        a[i] = i;
    printf("%d ", cudaMemAdvise(a, 128, cudaMemAdviseSetPreferredLocation, device));
    printf("%d ", cudaMemPrefetchAsync(a, 128, device, 0));
    k<<<1, 32>>>(a);
    printf("%d ", cudaMemPrefetchAsync(a, 128, cudaCpuDeviceId));
    cudaMemLocation place = {cudaMemLocationTypeDevice, device};
    printf("%d ", cudaMemPrefetchAsync(a, 128, place, 0, 0));
    cudaDeviceSynchronize();
    cudaSharedMemConfig banks;
    printf("%d ", cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
    printf("%d ", cudaDeviceGetSharedMemConfig(&banks));
    printf("%d %d\n", banks, a[5]);
}
"""


def test_names_and_calls_of_earlier_cuda(nvcc):
    outcome = build_program(EARLIER).run(variables={"LABKIT_DEVICE": "simt"})
    assert (outcome.stdout, outcome.code) == ("0 0 0 0 0 0 1 6\n", 0)


OLDER_CCCL = r"""
#include <thrust/functional.h>
#include <cub/block/block_reduce.cuh>
#include <cub/iterator/counting_input_iterator.cuh>
#include <cub/iterator/transform_input_iterator.cuh>
#include <cstdio>
struct triple : public thrust::unary_function<int, int> {
    __host__ __device__ int operator()(int x) const { return 3 * x; }
};
struct less : public thrust::binary_function<int, int, bool> {
    __host__ __device__ bool operator()(int x, int y) const { return x < y; }
};
using Counted = cub::CountingInputIterator<int>;
__global__ void extremes(cub::TransformInputIterator<int, triple, Counted> in, int *out)
{
    using Reduce = cub::BlockReduce<int, 64>;
    __shared__ typename Reduce::TempStorage room;
    int most = Reduce(room).Reduce(in[threadIdx.x], cub::Max());
    __syncthreads();
    int least = Reduce(room).Reduce(in[threadIdx.x], cub::Min());
    __syncthreads();
    int sum = Reduce(room).Reduce(in[threadIdx.x], cub::Sum());
    if (threadIdx.x == 0)
        out[0] = most, out[1] = least, out[2] = thrust::identity<int>()(sum);
}
int main()
{
    int *out;
    cudaMallocManaged(&out, 12);
    extremes<<<1, 64>>>({Counted(5), triple()}, out);
    cudaDeviceSynchronize();
    less::result_type ordered = less()(out[1], out[0]) && cub::Inequality()(1, 2) && !cub::Equality()(1, 2);
    printf("%d %d %d %d\n", out[0], out[1], out[2], ordered);
}
"""


def test_names_that_cub_and_thrust_had_until_cuda_13(built):
    # That a header of NVTX is not one that CUB knows would be a warning.
    assert built(OLDER_CCCL, "-Xcompiler", "-Werror").run() == ("204 15 7008 1\n", "", 0)


KINDS = r"""
#include <cstdio>
int main()
{
    float host[8] = {1, 2, 3, 4}, *u, *w;
    cudaMalloc(&u, 16), cudaMalloc(&w, 16);
    cudaMemcpy(u, host, 16, cudaMemcpyHostToDevice);
    // An H100 (driver 580) takes these: the pointers say where the memory is.
    printf("%d ", cudaMemcpy(w, u, 16, cudaMemcpyHostToDevice));
    printf("%d ", cudaMemcpy(w, u, 16, cudaMemcpyDeviceToHost));
    printf("%d ", cudaMemcpy(host + 4, w, 16, cudaMemcpyHostToHost));
    printf("%g ", host[7]);
    // The host's memory is no device memory.
    printf("%d ", cudaMemcpy(host, u, 16, cudaMemcpyHostToDevice));
    printf("%d\n", cudaMemcpy(u, host, 16, cudaMemcpyDeviceToHost));
}
"""


def test_device_memory_may_stand_where_a_copy_names_the_host(nvcc):
    assert build_program(KINDS).run(variables={"LABKIT_DEVICE": "simt"}).stdout == "0 0 0 4 1 1\n"


SWEEP = r"""
#include <cstdio>
__global__ void stride(float *a, int s) { a[(blockDim.x * blockIdx.x + threadIdx.x) * s] += 1; }
int main()
{
    const int n = 1 << 18;
    float *a, ms;
    cudaMalloc(&a, n * 33l * 4), cudaMemset(a, 0, n * 33l * 4);
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (int s : {1, 2, 4, 8, 32, 8}) {
        cudaEventRecord(begin), stride<<<n / 256, 256>>>(a, s), cudaEventRecord(end);
        cudaEventSynchronize(end), cudaEventElapsedTime(&ms, begin, end);
        printf("%.9g\n", ms);
    }
}
"""


def test_each_launch_of_a_sweep_has_a_time_of_its_own(nvcc):
    times = [float(ms) for ms in build_program(SWEEP).run(variables={"LABKIT_DEVICE": "simt"}).stdout.split()]
    kernel = simt.RawModule(code='extern "C" ' + SWEEP.splitlines()[2]).get_function("stride")
    n = 1 << 18
    array = np.zeros(33 * n, np.float32)
    predicted = [
        1e3 * kernel.predict((n // 256,), (256,), (array, np.int32(s)), gpu="H200").seconds
        for s in (1, 2, 4, 8, 32, 8)
    ]
    # The first launch ends the GPU's idle time, so that its own way there counts, too.
    assert np.allclose(np.diff(times[1:]), np.diff(predicted[1:]), rtol=0, atol=1e-3 * max(predicted))
    assert predicted[4] > 1.5 * predicted[1]


UNWRITTEN = r"""
#include <cstdio>
#include <cstring>
struct padded { int a; double b; char c; };
__global__ void half(int *o) { o[threadIdx.x] = 1; }
__global__ void fields(padded *o) { padded &p = o[threadIdx.x]; p.a = 1; p.b = 2; p.c = 3; }
int main(int argc, char **argv)
{
    auto is = [&](const char *name) { return !strcmp(argv[1], name); };
    static char host[1 << 12];
    int *d;
    cudaMalloc(&d, 1 << 12);
    if (is("half"))
        half<<<1, 32>>>(d), cudaMemcpy(host, d, 256, cudaMemcpyDeviceToHost);
    if (is("what is written"))
        half<<<1, 32>>>(d), cudaMemcpy(host, d, 128, cudaMemcpyDeviceToHost);
    if (is("one number"))
        half<<<1, 32>>>(d), cudaMemcpy(host, d + 40, 4, cudaMemcpyDeviceToHost);
    if (is("async"))
        half<<<1, 32>>>(d), cudaMemcpyAsync(host, d, 256, cudaMemcpyDefault), cudaDeviceSynchronize();
    if (is("rows"))
        half<<<1, 32>>>(d), cudaMemcpy2D(host, 64, d, 128, 64, 2, cudaMemcpyDeviceToHost);
    if (is("structures"))
        fields<<<1, 32>>>((padded *)d), cudaMemcpy(host, d, 32 * sizeof(padded), cudaMemcpyDeviceToHost);
    if (is("set"))
        cudaMemset(d, 0, 1 << 12), cudaMemcpy(host, d, 1 << 12, cudaMemcpyDeviceToHost);
    if (is("on the device"))
        cudaMemcpy(d + 512, d, 1 << 10, cudaMemcpyDeviceToDevice);
    cudaFree(d);
}
"""


@pytest.mark.parametrize("word", ["half", "one number", "async", "rows"])
def test_a_copy_of_what_nobody_has_written_is_found(nvcc, word):
    (found,) = build_program(UNWRITTEN).run(word, mode="check").mistakes
    line = next(number for number, text in enumerate(UNWRITTEN.splitlines(), 1) if f'"{word}"' in text) + 1
    assert found[0] == "uninitialised copy" and found[1].startswith(f"program.cu:{line}: ")
    first, last = re.search(r"bytes (\d+) to (\d+) of array", found[1]).groups()
    assert (int(first), int(last)) == {"one number": (160, 163), "rows": (128, 191)}.get(word, (128, 255))


@pytest.mark.parametrize("word", ["what is written", "structures", "set", "on the device"])
def test_other_copies_raise_no_alarm(nvcc, word):
    assert build_program(UNWRITTEN).run(word, mode="check").mistakes == []


IN_A_LIBRARY = r"""
#include <cub/cub.cuh>
#include <cstdio>
int main()
{
    int *in, *out, total;
    void *room = nullptr;
    size_t bytes = 0;
    cudaMalloc(&in, 400), cudaMalloc(&out, 4), cudaMemset(in, 0, 400);
    cub::DeviceReduce::Sum(room, bytes, in, out, 100);
    cudaMalloc(&room, bytes);
    cub::DeviceReduce::Sum(room, bytes, in, out, 100);
    cudaMemcpy(&total, out, 4, cudaMemcpyDeviceToHost);
    printf("%d\n", total);
}
"""


def test_a_kernel_of_a_library_alone_is_profiled(nvcc):
    outcome = build_program(IN_A_LIBRARY).run(mode="profile")
    assert outcome.stdout == "0\n" and "Traceback" not in outcome.stderr
    assert "DeviceReduce" in outcome.stderr and "_ZN" not in outcome.stderr


class Named:
    def __init__(self, name):
        self.name = name


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_Z5saxpyifPKfPf", "saxpy"),
        ("plain", "plain"),
        ("_Z4axpyIfEvT_", "axpy"),
        ("_ZN2ns1fEv", "f"),
        (
            "_ZN3cub16_V_300500_SM_900028DeviceReduceSingleTileKernelINS0_6policyEEEvv",
            "DeviceReduceSingleTileKernel",
        ),
    ],
)
def test_a_kernel_is_shown_by_its_name(mangled, name):
    assert shown(Named(mangled)) == name


STRANGE = r"""
#include <cstring>
__global__ void far(float *r, int a, int b) { r[a * b] += 1; }
__global__ void slow(float *o, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += i * 0.5f;
    o[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
int main(int argc, char **argv)
{
    float *r, host[4];
    cudaMalloc(&r, 4 << 20);
    if (!strcmp(argv[1], "far"))
        far<<<1, 1>>>(r, 429498, 5001);
    if (!strcmp(argv[1], "host"))
        far<<<1, 1>>>(host, 0, 0);
    if (!strcmp(argv[1], "slow"))
        slow<<<4096, 256>>>(r, 1 << 20);
    if (!strcmp(argv[1], "endless"))
        slow<<<1, 1>>>(r, 1 << 30);
    cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("far", r"8588191192 bytes before the start of array from cudaMalloc number 1 \(4194304 bytes\)"),
        ("host", r"address 0x[0-9a-f]+ is far from all arrays: is it a host pointer"),
        (
            "slow",
            r"[\d,]+ of its 4,096 blocks had ended; all would take about \d+ \w+\. Choose a smaller size",
        ),
        ("endless", r"Does its condition ever become false\?"),
    ],
)
def test_what_went_wrong_is_told_by_what_is_there(nvcc, word, told):
    outcome = build_program(STRANGE).run(word, variables={"LABKIT_DEVICE": "simt", "LABKIT_TIMEOUT": "2"})
    assert re.search(told, outcome.stderr), outcome.stderr
