/* The driver's interface (cuX) as far as programs of courses use it: contexts, modules of PTX, launches by name, and
   the runtime's functions under the driver's names. Errors of both interfaces have the same numbers. */
#include "runtime.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the runtime's interface has, too: a call within a call, see begin_call. */
#define USES(name) extern __typeof__(name) sim_##name
USES(cudaDeviceGetAttribute);
USES(cudaDeviceGetLimit);
USES(cudaDeviceReset);
USES(cudaDeviceSetLimit);
USES(cudaDeviceSynchronize);
USES(cudaDriverGetVersion);
USES(cudaEventCreateWithFlags);
USES(cudaEventDestroy);
USES(cudaEventElapsedTime);
USES(cudaEventQuery);
USES(cudaEventRecord);
USES(cudaEventSynchronize);
USES(cudaFree);
USES(cudaFreeHost);
USES(cudaFuncGetAttributes);
USES(cudaFuncSetAttribute);
USES(cudaHostAlloc);
USES(cudaHostGetDevicePointer);
USES(cudaHostRegister);
USES(cudaHostUnregister);
USES(cudaLaunchHostFunc);
USES(cudaMalloc);
USES(cudaMallocManaged);
USES(cudaMallocPitch);
USES(cudaMemGetInfo);
USES(cudaMemcpy);
USES(cudaMemcpy2D);
USES(cudaMemcpyAsync);
USES(cudaMemset);
USES(cudaMemsetAsync);
USES(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
USES(cudaStreamAddCallback);
USES(cudaStreamCreateWithFlags);
USES(cudaStreamCreateWithPriority);
USES(cudaStreamDestroy);
USES(cudaStreamQuery);
USES(cudaStreamSynchronize);
USES(cudaStreamWaitEvent);

struct CUctx_st {
    struct CUctx_st *below; /* in the stack of the thread that has it current */
    unsigned flags;
    bool is_gone;
};

static struct CUctx_st primary;
static __thread struct CUctx_st *current;
static bool is_initialised;
static unsigned contexts; /* that cuCtxCreate has made and nobody has destroyed */

static struct CUctx_st *the_context(void) {
    if (!current && uses_runtime()) /* the runtime makes the primary context current */
        current = &primary;
    return current;
}

/* Begin a call, and say why it cannot be served: the driver is not initialised, or an earlier kernel has failed. */
static cudaError_t begin_driver(const char *function, void *caller) {
    cudaError_t code = begin_call(function, caller);
    if (!code && !is_initialised && !uses_runtime())
        code = (cudaError_t)CUDA_ERROR_NOT_INITIALIZED;
    return code;
}

static cudaError_t begin_in_context(const char *function, void *caller) {
    cudaError_t code = begin_driver(function, caller);
    if (code || (the_context() && !current->is_gone))
        return code;
    return (cudaError_t)(current ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT);
}

static CUresult end_driver(cudaError_t code) {
    code = code == cudaErrorInvalidPitchValue || code == cudaErrorInvalidMemcpyDirection ? cudaErrorInvalidValue : code;
    end_with(code, driver_error_name(code));
    return (CUresult)code;
}

/* The whole of a call, where `begin` allows it. */
#define DRIVER(begin, call)                                                                                  \
    do {                                                                                                     \
        cudaError_t why_ = begin(__func__ + 4, __builtin_return_address(0));                                 \
        return end_driver(why_ ? why_ : (cudaError_t)(call));                                                \
    } while (0)
#define IN_CONTEXT(call) DRIVER(begin_in_context, call)
#define ANYWHERE(call) DRIVER(begin_driver, call)
#define POINTER(address) ((void *)(uintptr_t)(address))

/* ---------------------------------------------------------------------------------------------- errors */

#define KNOWN(code) {code, #code}
static const struct {
    CUresult code;
    const char *name;
} known[] = {
    KNOWN(CUDA_SUCCESS),
    KNOWN(CUDA_ERROR_INVALID_VALUE),
    KNOWN(CUDA_ERROR_OUT_OF_MEMORY),
    KNOWN(CUDA_ERROR_NOT_INITIALIZED),
    KNOWN(CUDA_ERROR_DEINITIALIZED),
    KNOWN(CUDA_ERROR_NO_DEVICE),
    KNOWN(CUDA_ERROR_INVALID_DEVICE),
    KNOWN(CUDA_ERROR_INVALID_IMAGE),
    KNOWN(CUDA_ERROR_INVALID_CONTEXT),
    KNOWN(CUDA_ERROR_NO_BINARY_FOR_GPU),
    KNOWN(CUDA_ERROR_INVALID_PTX),
    KNOWN(CUDA_ERROR_INVALID_SOURCE),
    KNOWN(CUDA_ERROR_FILE_NOT_FOUND),
    KNOWN(CUDA_ERROR_INVALID_HANDLE),
    KNOWN(CUDA_ERROR_ILLEGAL_STATE),
    KNOWN(CUDA_ERROR_NOT_FOUND),
    KNOWN(CUDA_ERROR_NOT_READY),
    KNOWN(CUDA_ERROR_ILLEGAL_ADDRESS),
    KNOWN(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    KNOWN(CUDA_ERROR_LAUNCH_TIMEOUT),
    KNOWN(CUDA_ERROR_CONTEXT_IS_DESTROYED),
    KNOWN(CUDA_ERROR_ASSERT),
    KNOWN(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
    KNOWN(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED),
    KNOWN(CUDA_ERROR_ILLEGAL_INSTRUCTION),
    KNOWN(CUDA_ERROR_MISALIGNED_ADDRESS),
    KNOWN(CUDA_ERROR_INVALID_ADDRESS_SPACE),
    KNOWN(CUDA_ERROR_LAUNCH_FAILED),
    KNOWN(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
    KNOWN(CUDA_ERROR_NOT_PERMITTED),
    KNOWN(CUDA_ERROR_NOT_SUPPORTED),
    KNOWN(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    KNOWN(CUDA_ERROR_UNKNOWN),
};

const char *driver_error_name(cudaError_t code) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((int)known[i].code == (int)code)
            return known[i].name;
    return NULL;
}

SERVED(CUresult, cuGetErrorName, (CUresult code, const char **text)) {
    *text = driver_error_name((cudaError_t)code);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SERVED(CUresult, cuGetErrorString, (CUresult code, const char **text)) {
    *text = driver_error_name((cudaError_t)code) ? error_text((cudaError_t)code) : NULL;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ------------------------------------------------------------------------------- the device and contexts */

SERVED(CUresult, cuInit, (unsigned flags)) {
    begin_call(__func__ + 4, __builtin_return_address(0));
    is_initialised = is_initialised || !flags;
    return end_driver(flags ? cudaErrorInvalidValue : cudaSuccess);
}

static cudaError_t check_device(CUdevice device) { return device ? cudaErrorInvalidDevice : cudaSuccess; }

SERVED(CUresult, cuDriverGetVersion, (int *version)) {
    begin_call(__func__ + 4, __builtin_return_address(0)); /* the one call that needs no cuInit */
    return end_driver(sim_cudaDriverGetVersion(version));
}

static cudaError_t put_number(int *place, int number) {
    if (!place)
        return cudaErrorInvalidValue;
    *place = number;
    return cudaSuccess;
}

SERVED(CUresult, cuDeviceGetCount, (int *count)) { ANYWHERE(put_number(count, 1)); }

SERVED(CUresult, cuDeviceGet, (CUdevice * device, int number)) {
    ANYWHERE(number ? cudaErrorInvalidDevice : put_number(device, 0));
}

static cudaError_t put_name(char *name, int length, CUdevice device) {
    if (device || !name || length < 1)
        return device ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
    snprintf(name, (size_t)length, "%s", the_machine()->properties.name);
    return cudaSuccess;
}

SERVED(CUresult, cuDeviceGetName, (char *name, int length, CUdevice device)) {
    ANYWHERE(put_name(name, length, device));
}

SERVED(CUresult, cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device)) {
    ANYWHERE(sim_cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device)); /* the numbers are the same */
}

static cudaError_t put_capability(int *major, int *minor, CUdevice device) {
    *major = the_machine()->properties.major;
    *minor = the_machine()->properties.minor;
    return check_device(device);
}

SERVED(CUresult, cuDeviceComputeCapability, (int *major, int *minor, CUdevice device)) {
    ANYWHERE(put_capability(major, minor, device));
}

static cudaError_t put_total(size_t *bytes, CUdevice device) {
    *bytes = the_machine()->memory_bytes;
    return check_device(device);
}

SERVED(CUresult, cuDeviceTotalMem, (size_t * bytes, CUdevice device)) { ANYWHERE(put_total(bytes, device)); }

static cudaError_t push(struct CUctx_st *context) {
    if (!context || context->is_gone)
        return (cudaError_t)CUDA_ERROR_INVALID_CONTEXT;
    if (context != &primary) /* which may lie in it several times */
        context->below = current;
    current = context;
    return cudaSuccess;
}

static cudaError_t create(CUcontext *context, unsigned flags, CUdevice device) {
    if (!context || device)
        return context ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
    *context = calloc(1, sizeof **context);
    (*context)->flags = flags;
    contexts++;
    return push(*context);
}

SERVED(CUresult, cuCtxCreate, (CUcontext * context, unsigned flags, CUdevice device)) {
    ANYWHERE(create(context, flags, device));
}

/* That of CUDA 13. */
SERVED(CUresult, cuCtxCreate_v4, (CUcontext * context, void *parameters, unsigned flags, CUdevice device)) {
    (void)parameters;
    ANYWHERE(create(context, flags, device));
}

/* As on a GPU, what was allocated in a context goes with it; which context's it was is known while there is one. */
static cudaError_t destroy(CUcontext context) {
    if (!context || context == &primary || context->is_gone)
        return (cudaError_t)CUDA_ERROR_INVALID_CONTEXT;
    context->is_gone = true;
    if (current == context)
        current = context->below;
    return --contexts || uses_runtime() ? cudaSuccess : sim_cudaDeviceReset();
}

SERVED(CUresult, cuCtxDestroy, (CUcontext context)) {
    begin_call(__func__ + 4, __builtin_return_address(0)); /* a failed kernel does not hinder it */
    return end_driver(destroy(context));
}

SERVED(CUresult, cuCtxPushCurrent, (CUcontext context)) { ANYWHERE(push(context)); }

static cudaError_t pop(CUcontext *context) {
    if (!current)
        return (cudaError_t)CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = current;
    current = current->below;
    return cudaSuccess;
}

SERVED(CUresult, cuCtxPopCurrent, (CUcontext * context)) { ANYWHERE(pop(context)); }

static cudaError_t set_current(CUcontext context) {
    if (context && context->is_gone)
        return (cudaError_t)CUDA_ERROR_INVALID_CONTEXT;
    current = context;
    return cudaSuccess;
}

SERVED(CUresult, cuCtxSetCurrent, (CUcontext context)) { ANYWHERE(set_current(context)); }

static cudaError_t get_current(CUcontext *context) {
    *context = the_context();
    return cudaSuccess;
}

SERVED(CUresult, cuCtxGetCurrent, (CUcontext * context)) { ANYWHERE(get_current(context)); }
SERVED(CUresult, cuCtxGetDevice, (CUdevice * device)) { IN_CONTEXT(put_number(device, 0)); }
SERVED(CUresult, cuCtxSynchronize, (void)) { IN_CONTEXT(sim_cudaDeviceSynchronize()); }
SERVED(CUresult, cuCtxSetLimit, (CUlimit limit, size_t value)) {
    IN_CONTEXT(sim_cudaDeviceSetLimit((enum cudaLimit)limit, value)); /* the numbers are the same */
}
SERVED(CUresult, cuCtxGetLimit, (size_t * value, CUlimit limit)) {
    IN_CONTEXT(sim_cudaDeviceGetLimit(value, (enum cudaLimit)limit));
}
SERVED(CUresult, cuCtxSetCacheConfig, (CUfunc_cache config)) { IN_CONTEXT(((void)config, cudaSuccess)); }

static cudaError_t retain(CUcontext *context, CUdevice device) {
    if (!context || device)
        return context ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
    *context = &primary;
    return cudaSuccess;
}

SERVED(CUresult, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device)) {
    ANYWHERE(retain(context, device));
}

SERVED(CUresult, cuDevicePrimaryCtxRelease, (CUdevice device)) { ANYWHERE(check_device(device)); }
SERVED(CUresult, cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned flags)) {
    ANYWHERE(((void)flags, check_device(device)));
}
SERVED(CUresult, cuDevicePrimaryCtxReset, (CUdevice device)) {
    ANYWHERE(device ? cudaErrorInvalidDevice : sim_cudaDeviceReset());
}

/* ------------------------------------------------------------------------------------ modules and kernels */

#define ELF "\177ELF"
#define NVRTC_INTERNAL_ERROR 11

static cudaError_t cannot(const char *why) {
    tell("labkit: %s", why);
    return cudaErrorNotSupported;
}

/* Make a module of PTX, or of what `nvcc -fatbin` writes. */
static cudaError_t load_image(CUmodule *module, const void *image) {
    if (!module || !image)
        return cudaErrorInvalidValue;
    if (!strncmp(image, ELF, 4))
        return cannot("this module is machine code (a cubin), which runs on a GPU alone; without one, load PTX, from "
                      "nvrtcGetPTX or `labkit nvcc -ptx`");
    cudaError_t code = cudaSuccess;
    *module = (CUmodule)load_module(image, &code);
    return code;
}

SERVED(CUresult, cuModuleLoadData, (CUmodule * module, const void *image)) { IN_CONTEXT(load_image(module, image)); }
SERVED(CUresult, cuModuleLoadFatBinary, (CUmodule * module, const void *image)) {
    IN_CONTEXT(load_image(module, image));
}

/* The log of the assembler stays empty: what is wrong with PTX is told on stderr. */
static cudaError_t load_with_options(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                                     void **values) {
    void *buffers[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    for (unsigned i = 0; i < count; i++)
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER: buffers[0] = values[i]; break;
        case CU_JIT_ERROR_LOG_BUFFER: buffers[1] = values[i]; break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: sizes[0] = (size_t)values[i], values[i] = NULL; break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: sizes[1] = (size_t)values[i], values[i] = NULL; break;
        default: break;
        }
    for (int i = 0; i < 2; i++)
        if (buffers[i] && (uint32_t)sizes[i])
            *(char *)buffers[i] = '\0';
    return load_image(module, image);
}

SERVED(CUresult, cuModuleLoadDataEx,
       (CUmodule * module, const void *image, unsigned count, CUjit_option *options, void **values)) {
    IN_CONTEXT(load_with_options(module, image, count, options, values));
}

static cudaError_t load_file(CUmodule *module, const char *path) {
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file)
        return (cudaError_t)(path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE);
    struct message text = {0};
    char part[4096];
    for (size_t bytes; (bytes = fread(part, 1, sizeof part, file));)
        put(&text, part, bytes);
    fclose(file);
    put(&text, "\0\0\0\0", 4);
    cudaError_t code = load_image(module, text.data);
    forget(&text);
    return code;
}

SERVED(CUresult, cuModuleLoad, (CUmodule * module, const char *path)) { IN_CONTEXT(load_file(module, path)); }

SERVED(CUresult, cuModuleUnload, (CUmodule module)) {
    IN_CONTEXT(unload_module((struct module *)module) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

static cudaError_t get_function(CUfunction *function, CUmodule module, const char *name) {
    if (!function || !name)
        return cudaErrorInvalidValue;
    cudaError_t code = cudaSuccess;
    *function = (CUfunction)kernel_of_module((struct module *)module, name, &code);
    return code;
}

SERVED(CUresult, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name)) {
    IN_CONTEXT(get_function(function, module, name));
}

static cudaError_t get_global(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name) {
    size_t room = 0;
    void *found = name ? variable_of_module((struct module *)module, name, &room) : NULL;
    if (name && !found)
        tell("labkit: this module has no variable called `%s`. C++ mangles names: ask nvrtcGetLoweredName", name);
    if (!name || !found)
        return (cudaError_t)(name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE);
    if (address)
        *address = (CUdeviceptr)(uintptr_t)found;
    if (bytes)
        *bytes = room;
    return cudaSuccess;
}

SERVED(CUresult, cuModuleGetGlobal, (CUdeviceptr * address, size_t *bytes, CUmodule module, const char *name)) {
    IN_CONTEXT(get_global(address, bytes, module, name));
}

static cudaError_t launch_function(CUfunction function, dim3 grid, dim3 block, unsigned shared, CUstream stream,
                                   void **parameters, void **extra, bool is_cooperative) {
    if (extra)
        return cannot("`extra` of cuLaunchKernel is not supported without a GPU: give the addresses of the arguments as "
                      "`kernelParams`");
    cudaError_t code;
    struct kernel *kernel = find_kernel(function, &code);
    if (!kernel)
        return code;
    for (uint32_t i = 0; i < kernel->parameter_count; i++)
        if (!parameters || !parameters[i])
            return cudaErrorInvalidValue;
    unsigned char *packed = calloc(1, kernel->parameter_bytes + 1);
    pack(kernel, parameters, packed);
    code = launch(kernel, grid, block, packed, shared, stream, is_cooperative);
    free(packed);
    return code;
}

SERVED(CUresult, cuLaunchKernel,
       (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, CUstream stream, void **parameters, void **extra)) {
    IN_CONTEXT(launch_function(function, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, shared, stream, parameters, extra,
                               false));
}

SERVED(CUresult, cuLaunchCooperativeKernel,
       (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, CUstream stream, void **parameters)) {
    IN_CONTEXT(launch_function(function, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, shared, stream, parameters, NULL,
                               true));
}

static cudaError_t function_attribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    struct cudaFuncAttributes all;
    cudaError_t code = sim_cudaFuncGetAttributes(&all, function);
    if (code || !value)
        return code ? code : cudaErrorInvalidValue;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = all.maxThreadsPerBlock; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)all.sharedSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)all.constSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)all.localSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = all.numRegs; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = all.ptxVersion; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = all.binaryVersion; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = all.maxDynamicSharedSizeBytes; break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

SERVED(CUresult, cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function)) {
    IN_CONTEXT(function_attribute(value, attribute, function));
}

SERVED(CUresult, cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value)) {
    IN_CONTEXT(sim_cudaFuncSetAttribute(function, (enum cudaFuncAttribute)attribute, value));
}

SERVED(CUresult, cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config)) {
    IN_CONTEXT(((void)function, (void)config, cudaSuccess));
}

SERVED(CUresult, cuOccupancyMaxActiveBlocksPerMultiprocessor,
       (int *blocks, CUfunction function, int block, size_t shared)) {
    IN_CONTEXT(sim_cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block, shared));
}

/* ---------------------------------------------------------------------------------------------- memory */

static cudaError_t allocate_bytes(CUdeviceptr *address, size_t bytes, unsigned managed) {
    void *found = NULL;
    if (!address || !bytes)
        return cudaErrorInvalidValue;
    cudaError_t code = managed ? sim_cudaMallocManaged(&found, bytes, managed) : sim_cudaMalloc(&found, bytes);
    *address = (CUdeviceptr)(uintptr_t)found;
    return code;
}

SERVED(CUresult, cuMemAlloc, (CUdeviceptr * address, size_t bytes)) { IN_CONTEXT(allocate_bytes(address, bytes, 0)); }
SERVED(CUresult, cuMemAllocManaged, (CUdeviceptr * address, size_t bytes, unsigned flags)) {
    IN_CONTEXT(flags ? allocate_bytes(address, bytes, flags) : cudaErrorInvalidValue);
}

SERVED(CUresult, cuMemAllocPitch,
       (CUdeviceptr * address, size_t *pitch, size_t width, size_t height, unsigned element)) {
    (void)element;
    IN_CONTEXT(sim_cudaMallocPitch((void **)address, pitch, width, height));
}

SERVED(CUresult, cuMemFree, (CUdeviceptr address)) { IN_CONTEXT(sim_cudaFree(POINTER(address))); }
SERVED(CUresult, cuMemAllocHost, (void **pointer, size_t bytes)) { IN_CONTEXT(sim_cudaHostAlloc(pointer, bytes, 0)); }
SERVED(CUresult, cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags)) {
    IN_CONTEXT(sim_cudaHostAlloc(pointer, bytes, flags));
}
SERVED(CUresult, cuMemFreeHost, (void *pointer)) { IN_CONTEXT(sim_cudaFreeHost(pointer)); }
SERVED(CUresult, cuMemHostGetDevicePointer, (CUdeviceptr * address, void *pointer, unsigned flags)) {
    IN_CONTEXT(sim_cudaHostGetDevicePointer((void **)address, pointer, flags));
}
SERVED(CUresult, cuMemHostRegister, (void *pointer, size_t bytes, unsigned flags)) {
    IN_CONTEXT(sim_cudaHostRegister(pointer, bytes, flags));
}
SERVED(CUresult, cuMemHostUnregister, (void *pointer)) { IN_CONTEXT(sim_cudaHostUnregister(pointer)); }
SERVED(CUresult, cuMemGetInfo, (size_t * available, size_t *total)) {
    IN_CONTEXT(sim_cudaMemGetInfo(available, total));
}

#define DEVICE_TO(kind) cudaMemcpyDeviceTo##kind
SERVED(CUresult, cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t bytes)) {
    IN_CONTEXT(sim_cudaMemcpy(POINTER(to), from, bytes, cudaMemcpyHostToDevice));
}
SERVED(CUresult, cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes)) {
    IN_CONTEXT(sim_cudaMemcpy(to, POINTER(from), bytes, DEVICE_TO(Host)));
}
SERVED(CUresult, cuMemcpyDtoD, (CUdeviceptr to, CUdeviceptr from, size_t bytes)) {
    IN_CONTEXT(sim_cudaMemcpy(POINTER(to), POINTER(from), bytes, DEVICE_TO(Device)));
}
SERVED(CUresult, cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes)) {
    IN_CONTEXT(sim_cudaMemcpy(POINTER(to), POINTER(from), bytes, cudaMemcpyDefault));
}
SERVED(CUresult, cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) {
    IN_CONTEXT(sim_cudaMemcpyAsync(POINTER(to), from, bytes, cudaMemcpyHostToDevice, stream));
}
SERVED(CUresult, cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) {
    IN_CONTEXT(sim_cudaMemcpyAsync(to, POINTER(from), bytes, DEVICE_TO(Host), stream));
}
SERVED(CUresult, cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) {
    IN_CONTEXT(sim_cudaMemcpyAsync(POINTER(to), POINTER(from), bytes, DEVICE_TO(Device), stream));
}

static cudaError_t copy_rectangle(const CUDA_MEMCPY2D *copy) {
    if (!copy)
        return cudaErrorInvalidValue;
    if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return refuse("cuMemcpy2D of a CUDA array");
    const char *from = copy->srcMemoryType == CU_MEMORYTYPE_HOST ? copy->srcHost : POINTER(copy->srcDevice);
    char *to = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost : POINTER(copy->dstDevice);
    size_t from_pitch = copy->srcPitch ? copy->srcPitch : copy->WidthInBytes + copy->srcXInBytes;
    size_t to_pitch = copy->dstPitch ? copy->dstPitch : copy->WidthInBytes + copy->dstXInBytes;
    return sim_cudaMemcpy2D(to + copy->dstY * to_pitch + copy->dstXInBytes, to_pitch,
                            from + copy->srcY * from_pitch + copy->srcXInBytes, from_pitch, copy->WidthInBytes,
                            copy->Height, cudaMemcpyDefault);
}

SERVED(CUresult, cuMemcpy2D, (const CUDA_MEMCPY2D *copy)) { IN_CONTEXT(copy_rectangle(copy)); }

/* Fill elements of 2 or 4 bytes: the first byte of all by the runtime's function, which checks and times it. */
static cudaError_t fill(CUdeviceptr to, const void *element, size_t size, size_t count, CUstream stream, bool is_async) {
    if (to % size)
        return cudaErrorInvalidValue;
    int first = *(const unsigned char *)element;
    cudaError_t code = is_async ? sim_cudaMemsetAsync(POINTER(to), first, size * count, stream)
                                : sim_cudaMemset(POINTER(to), first, size * count);
    bool is_one_byte = !memcmp(element, (const char *)element + 1, size - 1);
    if (code || is_one_byte)
        return code;
    if (is_capturing(stream))
        return refuse("cuMemsetD16Async or cuMemsetD32Async in a graph");
    char *place = writable(POINTER(to));
    for (size_t i = 0; i < count; i++)
        memcpy(place + i * size, element, size);
    return code;
}

SERVED(CUresult, cuMemsetD8, (CUdeviceptr to, unsigned char value, size_t count)) {
    IN_CONTEXT(sim_cudaMemset(POINTER(to), value, count));
}
SERVED(CUresult, cuMemsetD16, (CUdeviceptr to, unsigned short value, size_t count)) {
    IN_CONTEXT(fill(to, &value, sizeof value, count, NULL, false));
}
SERVED(CUresult, cuMemsetD32, (CUdeviceptr to, unsigned value, size_t count)) {
    IN_CONTEXT(fill(to, &value, sizeof value, count, NULL, false));
}
SERVED(CUresult, cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream)) {
    IN_CONTEXT(sim_cudaMemsetAsync(POINTER(to), value, count, stream));
}
SERVED(CUresult, cuMemsetD16Async, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream)) {
    IN_CONTEXT(fill(to, &value, sizeof value, count, stream, true));
}
SERVED(CUresult, cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t count, CUstream stream)) {
    IN_CONTEXT(fill(to, &value, sizeof value, count, stream, true));
}

/* ------------------------------------------------------------------------------------ streams and events */

SERVED(CUresult, cuStreamCreate, (CUstream * stream, unsigned flags)) {
    IN_CONTEXT(sim_cudaStreamCreateWithFlags(stream, flags));
}
SERVED(CUresult, cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority)) {
    IN_CONTEXT(sim_cudaStreamCreateWithPriority(stream, flags, priority));
}
SERVED(CUresult, cuStreamDestroy, (CUstream stream)) { IN_CONTEXT(sim_cudaStreamDestroy(stream)); }
SERVED(CUresult, cuStreamSynchronize, (CUstream stream)) { IN_CONTEXT(sim_cudaStreamSynchronize(stream)); }
SERVED(CUresult, cuStreamQuery, (CUstream stream)) { IN_CONTEXT(sim_cudaStreamQuery(stream)); }
SERVED(CUresult, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags)) {
    IN_CONTEXT(sim_cudaStreamWaitEvent(stream, event, flags));
}
SERVED(CUresult, cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void *data, unsigned flags)) {
    IN_CONTEXT(sim_cudaStreamAddCallback(stream, (cudaStreamCallback_t)(void *)callback, data, flags));
}
SERVED(CUresult, cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data)) {
    IN_CONTEXT(sim_cudaLaunchHostFunc(stream, function, data));
}
SERVED(CUresult, cuEventCreate, (CUevent * event, unsigned flags)) {
    IN_CONTEXT(sim_cudaEventCreateWithFlags(event, flags));
}
SERVED(CUresult, cuEventRecord, (CUevent event, CUstream stream)) { IN_CONTEXT(sim_cudaEventRecord(event, stream)); }
SERVED(CUresult, cuEventSynchronize, (CUevent event)) { IN_CONTEXT(sim_cudaEventSynchronize(event)); }
SERVED(CUresult, cuEventQuery, (CUevent event)) { IN_CONTEXT(sim_cudaEventQuery(event)); }
SERVED(CUresult, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end)) {
    IN_CONTEXT(sim_cudaEventElapsedTime(milliseconds, start, end));
}
SERVED(CUresult, cuEventDestroy, (CUevent event)) { IN_CONTEXT(sim_cudaEventDestroy(event)); }

/* ----------------------------------------------------------------------------------------------- NVRTC */

/* NVRTC itself compiles, and needs no GPU. It is asked for lines, so that mistakes in its kernels have theirs. */
__attribute__((visibility("default"))) int nvrtcCompileProgram(void *program, int count, const char *const *options) {
    int (*compile)(void *, int, const char *const *) = NULL;
    *(void **)&compile = dlsym(RTLD_NEXT, "nvrtcCompileProgram");
    const char **all = calloc((size_t)count + 1, sizeof *all);
    bool has_lines = false;
    for (int i = 0; i < count; i++) {
        all[i] = options[i];
        has_lines |= strstr(options[i], "-lineinfo") || strstr(options[i], "-generate-line-info") ||
                     !strcmp(options[i], "-G") || !strcmp(options[i], "--device-debug");
    }
    if (!has_lines)
        all[count] = "-lineinfo";
    int result = compile ? compile(program, count + !has_lines, all) : NVRTC_INTERNAL_ERROR;
    free(all);
    return result;
}
