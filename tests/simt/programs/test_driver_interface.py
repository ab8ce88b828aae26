"""Programs of the driver's interface (cuX), with NVRTC or PTX files, run, are checked, fail as on a GPU."""

import re
import subprocess

import numpy as np
import pytest

from simt.programs import toolkit

HEAD = """
#include <cstdio>
#include <cstring>
#include <vector>
#include <cuda.h>
#include <nvrtc.h>
#define CU(call)                                                      \\
    do {                                                              \\
        CUresult r_ = call;                                           \\
        const char *n_ = "?", *t_ = "?";                              \\
        if (r_) {                                                     \\
            cuGetErrorName(r_, &n_);                                  \\
            cuGetErrorString(r_, &t_);                                \\
            printf("line %d: %s (%s)\\n", __LINE__, n_, t_);          \\
        }                                                             \\
    } while (0)

static std::vector<char> compiled(const char *source) {
    nvrtcProgram program;
    nvrtcCreateProgram(&program, source, "axpy.cu", 0, nullptr, nullptr);
    const char *options[] = {"--gpu-architecture=compute_80", "--fmad=false"};
    const nvrtcResult result = nvrtcCompileProgram(program, 2, options);
    size_t bytes;
    nvrtcGetProgramLogSize(program, &bytes);
    std::vector<char> log(bytes);
    nvrtcGetProgramLog(program, log.data());
    if (result) printf("%s: %s", nvrtcGetErrorString(result), log.data());
    nvrtcGetPTXSize(program, &bytes);
    std::vector<char> ptx(bytes);
    nvrtcGetPTX(program, ptx.data());
    nvrtcDestroyProgram(&program);
    return ptx;
}
"""
KERNEL = """
const char *source = R"(
__constant__ float scale[2];
__device__ int count = 100;
extern "C" __global__ void axpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n LIMIT) {
        y[i] = a * x[i] * scale[1] + y[i];
        if (i % 100 == 0) atomicAdd(&count, 1);
    }
}
)";
"""
AXPY = (
    HEAD
    + KERNEL
    + """
int main() {
    CUdevice device;
    CUcontext context, there;
    CUmodule module;
    CUfunction axpy;
    CUdeviceptr x, y, z, scale, count;
    CU(cuInit(0));
    CU(cuDeviceGet(&device, 0));
    CU(cuCtxCreate(&context, 0, device));
    CU(cuCtxGetCurrent(&there));
    const std::vector<char> ptx = compiled(source);
    CU(cuModuleLoadDataEx(&module, ptx.data(), 0, nullptr, nullptr));
    CU(cuModuleGetFunction(&axpy, module, "axpy"));
    int n = 1000, counted = 0, threads, registers;
    size_t bytes = 0;
    std::vector<float> host(n);
    for (int i = 0; i < n; i++) host[i] = 0.25f * i;
    CU(cuMemAlloc(&x, n * sizeof(float)));
    CU(cuMemAlloc(&y, n * sizeof(float)));
    CU(cuMemAlloc(&z, n * sizeof(float)));
    CU(cuMemcpyHtoD(x, host.data(), n * sizeof(float)));
    CU(cuMemsetD32(y, 0x3f800000, n));  // 1.0f
    CU(cuModuleGetGlobal(&scale, &bytes, module, "scale"));
    const float scales[] = {7, 3};
    CU(cuMemcpyHtoD(scale, scales, bytes));
    float a = 2;
    void *arguments[] = {&a, &x, &y, &n};
    CUstream stream;
    CUevent begin, end;
    float ms = 0;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    CU(cuEventCreate(&end, CU_EVENT_DEFAULT));
    CU(cuEventRecord(begin, stream));
    CU(cuLaunchKernel(axpy, 8, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr));
    CU(cuEventRecord(end, stream));
    CU(cuEventSynchronize(end));
    CU(cuEventElapsedTime(&ms, begin, end));
    CU(cuMemcpyDtoDAsync(z, y, n * sizeof(float), stream));
    CU(cuStreamSynchronize(stream));
    CU(cuCtxSynchronize());
    CU(cuMemcpyDtoH(host.data(), z, n * sizeof(float)));
    CU(cuModuleGetGlobal(&count, &bytes, module, "count"));
    CU(cuMemcpyDtoH(&counted, count, sizeof counted));
    CU(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, axpy));
    CU(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, axpy));
    printf("%d %d %zu %d %d %d\\n", context == there, counted, bytes, threads, registers > 0, ms > 0);
    for (float each : host) printf("%.9g ", each);
    CU(cuMemFree(x));
    CU(cuMemFree(y));
    CU(cuMemFree(z));
    CU(cuEventDestroy(begin));
    CU(cuEventDestroy(end));
    CU(cuStreamDestroy(stream));
    CU(cuModuleUnload(module));
    CU(cuCtxDestroy(context));
}
"""
)
LINKED = ("-lcuda", "-lnvrtc")


def test_a_kernel_in_a_string_runs(built):
    out, _, code = built(AXPY.replace("LIMIT", ""), *LINKED).run()
    first, _, rest = out.partition("\n")
    assert (first, code) == ("1 110 4 1024 1 1", 0)
    expected = 2 * (0.25 * np.arange(1000)) * 3 + 1
    np.testing.assert_array_equal(np.array(rest.split(), float), expected)


def test_it_is_checked_and_profiled(built):
    program = built(AXPY.replace("LIMIT", ""), *LINKED)
    _, told, code = program.run(LABKIT_PROGRAM="check")
    assert (code, "no mistake" in told) == (0, True), told
    _, told, code = program.run(LABKIT_PROGRAM="profile")
    assert code == 0
    assert re.search(r"\baxpy\b", told)


def test_a_mistake_in_it_is_found_with_its_line(built):
    program = built(AXPY.replace("LIMIT", "+ 3"), *LINKED)
    _, told, _ = program.run(LABKIT_PROGRAM="check")
    assert re.search(r"axpy\.cu:7: .*past the end of array from cudaMalloc", told), told


LEAK = HEAD + """
int main() {
    CUdevice device;
    CUcontext context;
    CUdeviceptr x;
    CU(cuInit(0));
    CU(cuDeviceGet(&device, 0));
    CU(cuDevicePrimaryCtxRetain(&context, device));
    CU(cuCtxSetCurrent(context));
    CU(cuMemAlloc(&x, 4000));
    cuMemFree(x + 4);
    CU(cuDevicePrimaryCtxRelease(device));
}
"""  # fmt: skip


def test_leaks_and_failed_calls_have_their_lines(built):
    _, told, _ = built(LEAK, *LINKED).run(LABKIT_PROGRAM="check")
    line = {name: LEAK[: LEAK.index(name)].count("\n") + 1 for name in ("cuMemAlloc(", "cuMemFree(")}
    assert f"main.cu:{line['cuMemFree(']}: cuMemFree failed: CUDA_ERROR_INVALID_VALUE" in told
    assert re.search(rf"main\.cu:{line['cuMemAlloc(']}:.*4000 bytes", told), told


WRONG = HEAD + """
int main() {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr x;
    int number;
    CU(cuDeviceGetCount(&number));
    CU(cuInit(0));
    CU(cuDeviceGet(&device, 1));
    CU(cuMemAlloc(&x, 4));
    CU(cuDeviceGet(&device, 0));
    CU(cuCtxCreate(&context, 0, device));
    CU(cuModuleLoad(&module, "nowhere.ptx"));
    CU(cuModuleLoadData(&module, "int main() {}"));
    CU(cuModuleLoadData(&module, "\\177ELF\\2\\1\\1"));
    CU(cuModuleLoadData(&module,
        ".version 8.0\\n.target sm_80\\n.address_size 64\\n.entry f() { nonsense; }"));
    const std::vector<char> ptx = compiled("__global__ void twice(int *x) { *x *= 2; }");
    CU(cuModuleLoadData(&module, ptx.data()));
    CU(cuModuleGetFunction(&function, module, "twice"));
    CU(cuModuleGetFunction(&function, module, "_Z5twicePi"));
    CU(cuModuleGetGlobal(&x, nullptr, module, "table"));
    CU(cuMemAlloc(&x, 0));
    CU(cuMemAlloc(&x, 4));
    void *arguments[] = {&x}, *extra[] = {CU_LAUNCH_PARAM_END};
    CU(cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, 0, arguments, nullptr));
    CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, nullptr, nullptr));
    CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, nullptr, extra));
    CU(cuModuleUnload(module));
    CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, arguments, nullptr));
    CU(cuModuleUnload(module));
    CU(cuMemPoolDestroy(nullptr));
    CU(cuCtxDestroy(context));
    CU(cuMemFree(x));
}
"""  # fmt: skip
CODES = """
NOT_INITIALIZED INVALID_DEVICE INVALID_CONTEXT FILE_NOT_FOUND INVALID_IMAGE NOT_SUPPORTED
INVALID_PTX NOT_FOUND NOT_FOUND INVALID_VALUE INVALID_VALUE INVALID_VALUE NOT_SUPPORTED
INVALID_HANDLE INVALID_HANDLE NOT_SUPPORTED INVALID_CONTEXT
"""


def test_wrong_calls_fail_as_on_a_gpu(built):
    out, told, code = built(WRONG, *LINKED).run()
    assert re.findall(r"CUDA_ERROR_(\w+) \(", out) == CODES.split(), out
    assert "CUDA_ERROR_NOT_FOUND (named symbol not found)" in out
    assert code == 0
    for what in (
        "machine code (a cubin)",
        "PTX, line 4; error   : Not a name of any known instruction: 'nonsense'",
        "no kernel is called `twice`; this module has: `_Z5twicePi`",
        "no variable called `table`",
        "`extra` of cuLaunchKernel",
        "cuMemPoolDestroy is not supported without a GPU",
    ):
        assert what in told


FILES = HEAD + """
__global__ void add(int *x, int number) { x[threadIdx.x] += number; }

int main() {
    int *x, host[64];
    cudaMalloc(&x, sizeof host);  // the runtime's context is the driver's, too
    CUdeviceptr address = (CUdeviceptr)x;
    CU(cuMemsetD16(address, 0x0102, 128));
    CU(cuMemsetD8(address + 128, 3, 64));
    CU(cuMemsetD32Async(address + 192, 5, 16, 0));
    CUmodule module;
    CUfunction twice;
    CU(cuModuleLoad(&module, "twice.ptx"));
    CU(cuModuleGetFunction(&twice, module, "twice"));
    add<<<1, 64>>>(x, 1);
    void *arguments[] = {&x};
    CU(cuLaunchKernel(twice, 2, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    for (int each : host) printf("%d ", each);
    CUDA_MEMCPY2D copy = {};
    int corner[2][2];
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = address, copy.srcPitch = 64,
        copy.srcXInBytes = 56;
    copy.srcY = 2;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = corner, copy.dstPitch = 8;
    copy.WidthInBytes = 8, copy.Height = 2;
    CU(cuMemcpy2D(&copy));
    printf("\\n%d %d %d %d\\n", corner[0][0], corner[0][1], corner[1][0], corner[1][1]);
    cudaFree(x);
}
"""  # fmt: skip
TWICE = """
extern "C" __global__ void twice(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }
"""


def test_a_ptx_file_runs_beside_kernels_of_the_runtime(nvcc, program_at):
    nvcc("-ptx", "twice.cu", "-o", "twice.ptx", twice_cu=TWICE)
    folder = nvcc("main.cu", "-o", "files", *LINKED, main_cu=FILES)
    out, told, code = program_at(folder / "files").run()
    assert (told, code) == ("", 0)
    numbers = np.concatenate([np.full(32, 0x01020102), np.full(16, 0x03030303), np.full(16, 5)])
    expected = 2 * (numbers + 1)
    first, second, *_ = out.splitlines()
    np.testing.assert_array_equal(np.array(first.split(), int), expected)
    rows = expected.reshape(4, 16)[2:, 14:]
    np.testing.assert_array_equal(np.array(second.split(), int), rows.ravel())


def test_a_program_in_c_builds_too(nvcc, program_at):
    source = """
#include <cuda.h>
#include <stdio.h>
int main(void) {
    CUdevice device;
    CUcontext context;
    char name[64];
    int version = 0;
    cuInit(0);
    cuDeviceGet(&device, 0);
    cuDeviceGetName(name, sizeof name, device);
    cuDriverGetVersion(&version);
    cuDevicePrimaryCtxRetain(&context, device);
    printf("%s %d\\n", name, version >= 12000);
    return 0;
}
"""
    folder = nvcc("plain.c", "-o", "plain", "-lcuda", plain_c=source)
    out, told, code = program_at(folder / "plain").run(LABKIT_GPU="H100 SXM5")
    assert (out, told, code) == ("NVIDIA H100 SXM5 (simulated by labkit) 1\n", "", 0)


@pytest.mark.parametrize("name", ["cuMemAlloc_v2", "cuCtxCreate_v4", "cuLaunchKernel", "cuGraphLaunch"])
def test_the_library_has_the_names_that_programs_link_to(built, name):
    program = built(AXPY.replace("LIMIT", ""), *LINKED)
    listed = subprocess.run(["ldd", program.path], capture_output=True, text=True).stdout
    (library,) = re.findall(r"liblabkit_cudart\.so => (\S+)", listed)
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True).stdout
    assert re.search(rf" T {name}$", names, re.M)


DRIVER = """
#include <string.h>
int cuDriverGetVersion(int *version) { return *version = 4242, 0; }
int cuInit(unsigned flags) {
    int version = 0;  /* its own function, by a name that the program's library has, too */
    return cuDriverGetVersion(&version) || version != 4242 || flags;
}
int cuDeviceGetCount(int *count) { return *count = 3, 0; }
int cuDeviceGet(int *device, int number) { return *device = number, 0; }
int cuDeviceGetName(char *name, int length, int device) {
    return strncpy(name, "a driver's", length), device != 2;
}
"""
ASKS = """
#include <cuda.h>
#include <stdio.h>
int main(void) {
    CUdevice device;
    char name[64] = "";
    int count = 0;
    const int failed = cuInit(0) || cuDeviceGetCount(&count) || cuDeviceGet(&device, 2);
    printf("%d %d %d %s\\n", failed, count, cuDeviceGetName(name, sizeof name, device), name);
    return 0;
}
"""


def test_with_a_gpu_the_calls_are_the_drivers(nvcc, program_at):
    folder = nvcc("asks.c", "-o", "asks", "-lcuda", asks_c=ASKS)
    (folder / "driver.c").write_text(DRIVER)
    call = [toolkit.host_compiler().c, "-shared", "-fPIC", "-fno-builtin", "driver.c", "-o", "libcuda.so.1"]
    subprocess.run(call, cwd=folder, check=True)
    out, told, code = program_at(folder / "asks").run(LABKIT_DEVICE="auto", LD_LIBRARY_PATH=str(folder))
    assert (out, told, code) == ("0 3 0 a driver's\n", "", 0)
