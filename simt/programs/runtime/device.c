/* The one device, as the server describes the GPU that it stands for. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct machine machine;
static char *description; /* lines "key value" */

void forget_errors(void);
void forget_streams(void);

static double number(const char *key, double otherwise) {
    size_t length = strlen(key);
    for (const char *at = description; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (!strncmp(at, key, length) && at[length] == ' ')
            return atof(at + length + 1);
    return otherwise;
}

static void describe(struct cudaDeviceProp *gpu) {
    memset(gpu, 0, sizeof *gpu);
    snprintf(gpu->name, sizeof gpu->name, "NVIDIA %.200s (simulated by labkit)", machine.name);
    memcpy(gpu->uuid.bytes, "labkit simulator", sizeof gpu->uuid.bytes);
    gpu->totalGlobalMem = machine.memory_bytes;
    gpu->sharedMemPerBlock = 48 << 10;
    gpu->regsPerBlock = 65536;
    gpu->warpSize = 32;
    gpu->memPitch = 0x7fffffff;
    gpu->maxThreadsPerBlock = 1024;
    gpu->maxThreadsDim[0] = gpu->maxThreadsDim[1] = 1024;
    gpu->maxThreadsDim[2] = 64;
    gpu->maxGridSize[0] = 0x7fffffff;
    gpu->maxGridSize[1] = gpu->maxGridSize[2] = 65535;
    gpu->totalConstMem = 64 << 10;
    gpu->major = (int)number("major", 9);
    gpu->minor = (int)number("minor", 0);
    gpu->textureAlignment = 512;
    gpu->texturePitchAlignment = 32;
    gpu->multiProcessorCount = (int)number("multiprocessors", 132);
    gpu->canMapHostMemory = 1;
    gpu->maxTexture1D = 131072;
    gpu->maxTexture2D[0] = 131072;
    gpu->maxTexture2D[1] = 65536;
    gpu->maxTexture3D[0] = gpu->maxTexture3D[1] = gpu->maxTexture3D[2] = 16384;
    gpu->surfaceAlignment = 512;
    gpu->concurrentKernels = 1;
    gpu->ECCEnabled = (int)number("ecc", 1);
    gpu->asyncEngineCount = 3;
    gpu->unifiedAddressing = 1;
    gpu->memoryBusWidth = (int)number("bus_bits", 0);
    gpu->l2CacheSize = (int)number("l2_bytes", 0);
    gpu->maxThreadsPerMultiProcessor = (int)number("threads_per_sm", 2048);
    gpu->streamPrioritiesSupported = 1;
    gpu->globalL1CacheSupported = gpu->localL1CacheSupported = 1;
    gpu->sharedMemPerMultiprocessor = (size_t)number("shared_per_sm", 0);
    gpu->regsPerMultiprocessor = (int)number("registers_per_sm", 65536);
    gpu->managedMemory = gpu->concurrentManagedAccess = 1;
    gpu->computePreemptionSupported = 1;
    gpu->cooperativeLaunch = 1;
    gpu->sharedMemPerBlockOptin = (size_t)number("shared_per_block", 0);
    gpu->maxBlocksPerMultiProcessor = (int)number("blocks_per_sm", 32);
    gpu->reservedSharedMemPerBlock = (size_t)number("reserved_shared", 1024);
    gpu->memoryPoolsSupported = 1;
    gpu->clusterLaunch = gpu->major >= 9;
}

const struct machine *the_machine(void) {
    if (machine.is_known)
        return &machine;
    struct message message = {0};
    machine.is_known = true;
    if (ask(MACHINE, &message)) {
        description = strndup((char *)message.data, message.length);
        const char *name = strstr(description, "name ");
        snprintf(machine.name, sizeof machine.name, "%.*s", (int)strcspn(name + 5, "\n"), name + 5);
    }
    forget(&message);
    machine.launch_seconds = number("launch_seconds", 0);
    machine.copy_seconds = number("copy_seconds", 0);
    machine.pageable_copy_seconds = number("pageable_copy_seconds", 0);
    machine.pinned_rate = number("pinned_rate", 1e9);
    machine.pageable_rate = number("pageable_rate", 1e9);
    machine.device_rate = number("device_rate", 1e9);
    machine.memory_bytes = (size_t)number("memory_bytes", 0);
    describe(&machine.properties);
    return &machine;
}

SERVED(cudaError_t, cudaGetDeviceCount, (int *count)) {
    BEGIN_CALL();
    *count = 1;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaGetDevice, (int *device)) {
    BEGIN_CALL();
    *device = 0;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaSetDevice, (int device)) {
    BEGIN_CALL();
    return done(device ? cudaErrorInvalidDevice : cudaSuccess);
}

SERVED(cudaError_t, cudaInitDevice, (int device, unsigned device_flags, unsigned flags)) {
    BEGIN_CALL();
    (void)device_flags, (void)flags;
    return done(device ? cudaErrorInvalidDevice : cudaSuccess);
}

SERVED(cudaError_t, cudaChooseDevice, (int *device, const struct cudaDeviceProp *wanted)) {
    BEGIN_CALL();
    (void)wanted;
    *device = 0;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaSetValidDevices, (int *devices, int count)) {
    BEGIN_CALL();
    return done(count && devices[0] ? cudaErrorInvalidDevice : cudaSuccess);
}

SERVED(cudaError_t, cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device)) {
    BEGIN_CALL();
    if (device || !properties)
        return done(device ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    *properties = the_machine()->properties;
    return done(cudaSuccess);
}

static int attribute_of(enum cudaDeviceAttr attribute, bool *is_known) {
    const struct cudaDeviceProp *gpu = &the_machine()->properties;
    *is_known = true;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return gpu->maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: return gpu->maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY: return gpu->maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ: return gpu->maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return gpu->maxGridSize[0];
    case cudaDevAttrMaxGridDimY: return gpu->maxGridSize[1];
    case cudaDevAttrMaxGridDimZ: return gpu->maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock: return (int)gpu->sharedMemPerBlock;
    case cudaDevAttrTotalConstantMemory: return (int)gpu->totalConstMem;
    case cudaDevAttrWarpSize: return gpu->warpSize;
    case cudaDevAttrMaxPitch: return (int)gpu->memPitch;
    case cudaDevAttrMaxRegistersPerBlock: return gpu->regsPerBlock;
    case cudaDevAttrClockRate: return (int)number("clock_khz", 0);
    case cudaDevAttrTextureAlignment: return (int)gpu->textureAlignment;
    case cudaDevAttrMultiProcessorCount: return gpu->multiProcessorCount;
    case cudaDevAttrKernelExecTimeout: return 0;
    case cudaDevAttrIntegrated: return 0;
    case cudaDevAttrCanMapHostMemory: return 1;
    case cudaDevAttrComputeMode: return cudaComputeModeDefault;
    case cudaDevAttrConcurrentKernels: case cudaDevAttrGpuOverlap: return 1;
    case cudaDevAttrEccEnabled: return gpu->ECCEnabled;
    case cudaDevAttrPciBusId: case cudaDevAttrPciDeviceId: case cudaDevAttrPciDomainId: return 0;
    case cudaDevAttrTccDriver: return 0;
    case cudaDevAttrMemoryClockRate: return (int)number("memory_clock_khz", 0);
    case cudaDevAttrGlobalMemoryBusWidth: return gpu->memoryBusWidth;
    case cudaDevAttrL2CacheSize: return gpu->l2CacheSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return gpu->maxThreadsPerMultiProcessor;
    case cudaDevAttrAsyncEngineCount: return gpu->asyncEngineCount;
    case cudaDevAttrUnifiedAddressing: return 1;
    case cudaDevAttrComputeCapabilityMajor: return gpu->major;
    case cudaDevAttrComputeCapabilityMinor: return gpu->minor;
    case cudaDevAttrStreamPrioritiesSupported: return 1;
    case cudaDevAttrGlobalL1CacheSupported: case cudaDevAttrLocalL1CacheSupported: return 1;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return (int)gpu->sharedMemPerMultiprocessor;
    case cudaDevAttrMaxRegistersPerMultiprocessor: return gpu->regsPerMultiprocessor;
    case cudaDevAttrManagedMemory: case cudaDevAttrConcurrentManagedAccess: return 1;
    case cudaDevAttrIsMultiGpuBoard: case cudaDevAttrMultiGpuBoardGroupID: return 0;
    case cudaDevAttrHostNativeAtomicSupported: return 0;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: return (int)number("single_to_double", 2);
    case cudaDevAttrPageableMemoryAccess: case cudaDevAttrPageableMemoryAccessUsesHostPageTables: return 0;
    case cudaDevAttrComputePreemptionSupported: return 1;
    case cudaDevAttrCanUseHostPointerForRegisteredMem: return 0;
    case cudaDevAttrCooperativeLaunch: return 1;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return (int)gpu->sharedMemPerBlockOptin;
    case cudaDevAttrHostRegisterSupported: return 1;
    case cudaDevAttrDirectManagedMemAccessFromHost: return 0;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return gpu->maxBlocksPerMultiProcessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return (int)gpu->reservedSharedMemPerBlock;
    case cudaDevAttrMemoryPoolsSupported: return 1;
    case cudaDevAttrMaxTexture1DLinearWidth: return 1 << 28;
    case cudaDevAttrClusterLaunch: return gpu->clusterLaunch;
    default: *is_known = false; return 0;
    }
}

SERVED(cudaError_t, cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device)) {
    BEGIN_CALL();
    if (device || !value)
        return done(device ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    bool is_known;
    *value = attribute_of(attribute, &is_known);
    if (!is_known)
        tell("labkit: device attribute %d has no value without a GPU", (int)attribute);
    return done(is_known ? cudaSuccess : cudaErrorInvalidValue);
}

SERVED(cudaError_t, cudaDriverGetVersion, (int *version)) {
    BEGIN_CALL();
    *version = CUDART_VERSION;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaRuntimeGetVersion, (int *version)) {
    BEGIN_CALL();
    *version = CUDART_VERSION;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaSetDeviceFlags, (unsigned flags)) {
    BEGIN_CALL();
    (void)flags;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaGetDeviceFlags, (unsigned *flags)) {
    BEGIN_CALL();
    *flags = cudaDeviceMapHost;
    return done(cudaSuccess);
}

/* As on a GPU, a reset frees all memory and forgets every error, sticky ones too. */
SERVED(cudaError_t, cudaDeviceReset, (void)) {
    BEGIN();
    forget_streams();
    bool could_free = sticky_error() == cudaSuccess;
    forget_errors();
    if (is_checked && could_free) {
        struct message message = {0};
        ask(LEFT, &message);
        forget(&message);
    }
    for (uint64_t i = allocations->count; i-- > 0;) {
        struct allocation row = allocations->rows[i];
        if (row.kind == DEVICE || (row.kind == MANAGED && row.sites[0]))
            release((void *)row.start, row.kind);
    }
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaDeviceSetCacheConfig, (enum cudaFuncCache config)) {
    BEGIN_CALL();
    (void)config;
    return done(cudaSuccess);
}

/* Since Volta, banks of shared memory are 4 bytes wide, whatever is asked for. */
SERVED(cudaError_t, cudaDeviceSetSharedMemConfig, (enum cudaSharedMemConfig config)) {
    BEGIN_CALL();
    (void)config;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaFuncSetSharedMemConfig, (const void *function, enum cudaSharedMemConfig config)) {
    BEGIN_CALL();
    (void)function, (void)config;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaDeviceGetSharedMemConfig, (enum cudaSharedMemConfig * config)) {
    BEGIN_CALL();
    if (!config)
        return done(cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
    return done(cudaSuccess);
}

static size_t limits[16] = {[cudaLimitStackSize] = 1024,
                            [cudaLimitPrintfFifoSize] = 1 << 20,
                            [cudaLimitMallocHeapSize] = 8 << 20,
                            [cudaLimitDevRuntimeSyncDepth] = 2,
                            [cudaLimitDevRuntimePendingLaunchCount] = 2048,
                            [cudaLimitMaxL2FetchGranularity] = 64};

uint64_t heap_bytes(void) { return limits[cudaLimitMallocHeapSize]; }

SERVED(cudaError_t, cudaDeviceSetLimit, (enum cudaLimit limit, size_t value)) {
    BEGIN_CALL();
    if ((unsigned)limit >= 16)
        return done(cudaErrorInvalidValue);
    if (limit == cudaLimitMallocHeapSize && value != limits[limit] && heap_is_made()) {
        tell("labkit: the size of the kernels' heap is fixed once the program has used a kernel or a __managed__ "
             "variable: call cudaDeviceSetLimit before");
        return done(cudaErrorInvalidValue);
    }
    limits[limit] = value;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaDeviceGetLimit, (size_t * value, enum cudaLimit limit)) {
    BEGIN_CALL();
    if ((unsigned)limit >= 16)
        return done(cudaErrorInvalidValue);
    *value = limits[limit];
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaDeviceCanAccessPeer, (int *can, int device, int peer)) {
    BEGIN_CALL();
    *can = 0;
    return done(device || peer ? cudaErrorInvalidDevice : cudaSuccess);
}

SERVED(cudaError_t, cudaDeviceEnablePeerAccess, (int peer, unsigned flags)) {
    BEGIN_CALL();
    (void)flags;
    return done(peer ? cudaErrorInvalidDevice : cudaErrorPeerAccessUnsupported);
}

SERVED(cudaError_t, cudaDeviceGetPCIBusId, (char *text, int length, int device)) {
    BEGIN_CALL();
    if (device || length < 13)
        return done(device ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    snprintf(text, (size_t)length, "0000:00:00.0");
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaProfilerStart, (void)) {
    BEGIN_CALL();
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaProfilerStop, (void)) {
    BEGIN_CALL();
    return done(cudaSuccess);
}
