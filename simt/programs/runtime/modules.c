/* What nvcc's code calls before main(), and launches. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FATBIN_MAGIC 0xBA55ED50u

struct fatbin_wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *linked; /* version 2: the files' fat binaries, up to a NULL */
};

struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};

struct module {
    const struct fatbin_wrapper *wrapper;
    bool is_own; /* the program has loaded it by itself */
    bool is_loaded, is_unloaded;
    uint32_t number;
};

struct variable {
    const void *host;
    const char *name;
    struct module *module;
    void **managed; /* the program's pointer to a __managed__ variable */
    uint64_t start, bytes;
};

static struct kernel **kernels;
static size_t kernel_count;
static struct variable *variables;
static size_t variable_count;
static struct module **modules;
static uint32_t module_count;

static bool has_heap; /* a module whose kernels allocate memory has been loaded */
bool heap_is_made(void) { return has_heap; }

/* Managed variables lie in this process's memory: tell the server where. */
static void put_managed(struct message *message, uint32_t module) {
    uint32_t count = 0;
    for (size_t i = 0; i < variable_count; i++)
        count += variables[i].managed && variables[i].module->number == module;
    put_u32(message, count);
    for (size_t i = 0; i < variable_count; i++)
        if (variables[i].managed && variables[i].module->number == module) {
            put_u64(message, variables[i].start);
            put_text(message, variables[i].name);
        }
}

/* Give the server a module's device code; return an error of CUDA. The code is asked for no earlier than the first use,
   unless the program has loaded the module by itself: then it is to know what is wrong with it. */
static cudaError_t give(struct module *module) {
    if (module->is_loaded)
        return cudaSuccess;
    struct message message = {0};
    put_u32(&message, module->number);
    put_u32(&message, module->is_own);
    put_u64(&message, heap_bytes());
    put_managed(&message, module->number);
    const void *const one[] = {module->wrapper->data, NULL};
    for (const void *const *each = module->wrapper->version == 2 ? module->wrapper->linked : one; *each; each++) {
        const struct fatbin_header *header = *each;
        put(&message, header, header->header_bytes + header->bytes);
        has_heap |= memmem(header, header->header_bytes + header->bytes, "malloc_param_0", 14) != NULL;
    }
    cudaError_t code = ask(LOAD, &message) ? get_u32(&message) : cudaErrorUnknown;
    module->is_loaded = !code;
    forget(&message);
    return code;
}

static bool load(struct module *module) { return !give(module); }

/* A new server has not been given any module yet. */
void forget_modules(void) {
    for (uint32_t i = 0; i < module_count; i++)
        modules[i]->is_loaded = false;
}

static struct module *new_module(const struct fatbin_wrapper *wrapper) {
    struct module *module = calloc(1, sizeof *module);
    module->wrapper = wrapper;
    module->number = module_count;
    modules = realloc(modules, (module_count + 1) * sizeof *modules);
    modules[module_count++] = module;
    return module;
}

SERVED(void **, __cudaRegisterFatBinary, (void *binary)) { return (void **)new_module(binary); }

SERVED(void, __cudaRegisterFatBinaryEnd, (void **handle)) { (void)handle; }
SERVED(void, __cudaUnregisterFatBinary, (void **handle)) { (void)handle; }
/* The program is about to read a managed variable: it needs its first value. */
SERVED(char, __cudaInitModule, (void **handle)) { return load((struct module *)handle); }

static void add_kernel(struct kernel *kernel) {
    kernels = realloc(kernels, (kernel_count + 1) * sizeof *kernels);
    kernels[kernel_count++] = kernel;
}

SERVED(void, __cudaRegisterFunction,
       (void **handle, const char *host, char *device_function, const char *name, int thread_limit, void *thread,
        void *block, void *block_dim, void *grid_dim, int *warp_size)) {
    (void)device_function, (void)thread_limit, (void)thread, (void)block, (void)block_dim, (void)grid_dim;
    (void)warp_size;
    struct kernel *kernel = calloc(1, sizeof *kernel);
    kernel->host = host;
    kernel->name = strdup(name);
    kernel->module = ((struct module *)handle)->number;
    kernel->max_dynamic_shared = -1;
    kernel->carveout = -1;
    add_kernel(kernel);
}

static void add_variable(struct variable variable) {
    variables = realloc(variables, (variable_count + 1) * sizeof *variables);
    variables[variable_count++] = variable;
}

SERVED(void, __cudaRegisterVar,
       (void **handle, char *host, char *device_address, const char *name, int is_extern, size_t bytes,
        int is_constant, int is_global)) {
    (void)device_address, (void)is_extern, (void)bytes, (void)is_constant, (void)is_global;
    add_variable((struct variable){.host = host, .name = name, .module = (struct module *)handle});
}

SERVED(void, __cudaRegisterManagedVar,
       (void **handle, void **host, char *device_address, const char *name, int is_extern, size_t bytes,
        int is_constant, int is_global)) {
    (void)device_address, (void)is_extern, (void)is_constant, (void)is_global;
    /* The program reads the variable through this pointer, from its first line on. */
    *host = allocate(bytes, MANAGED, 512);
    add_variable((struct variable){.host = host,
                                   .name = name,
                                   .module = (struct module *)handle,
                                   .managed = host,
                                   .start = (uint64_t)*host,
                                   .bytes = bytes});
}

/* Ask the server where a variable lies; its start stays 0 where there is none. */
static void find_variable(struct variable *variable) {
    struct message message = {0};
    put_u32(&message, variable->module->number);
    put_text(&message, variable->name);
    if (load(variable->module) && ask(FIND_VARIABLE, &message)) {
        variable->start = get_u64(&message);
        variable->bytes = get_u64(&message);
        if (variable->start)
            note_variable(variable->start, variable->bytes, get_u32(&message));
    }
    forget(&message);
}

void *symbol(const void *host, size_t *bytes) {
    for (size_t i = 0; i < variable_count; i++) {
        struct variable *found = &variables[i];
        if (found->host != host && !(found->managed && *found->managed == host))
            continue;
        if (!found->start)
            find_variable(found);
        *bytes = found->bytes;
        return (void *)found->start;
    }
    return NULL;
}

struct kernel *find_kernel(const void *host, cudaError_t *why) {
    *why = cudaErrorInvalidResourceHandle; /* as CUDA 13; earlier ones cudaErrorInvalidDeviceFunction */
    struct kernel *found = NULL;
    for (size_t i = 0; i < kernel_count && !found; i++)
        if (kernels[i]->host == host || kernels[i] == host)
            found = kernels[i];
    if (!found || modules[found->module]->is_unloaded)
        return NULL;
    if (found->is_known)
        return found;
    if (!load(modules[found->module]))
        return NULL;
    struct message message = {0};
    put_u32(&message, found->module);
    put_text(&message, found->name);
    if (ask(KERNEL, &message)) {
        cudaError_t code = get_u32(&message);
        if (code) {
            *why = code;
            forget(&message);
            return NULL;
        }
        found->number = get_u32(&message);
        found->max_threads = get_u32(&message);
        found->static_shared = get_u32(&message);
        for (int i = 0; i < 3; i++)
            found->cluster[i] = get_u32(&message);
        found->is_cooperative = get_u32(&message);
        found->parameter_bytes = get_u32(&message);
        found->parameter_count = get_u32(&message);
        found->offsets = calloc(found->parameter_count + 1, sizeof(uint32_t));
        found->sizes = calloc(found->parameter_count + 1, sizeof(uint32_t));
        for (uint32_t i = 0; i < found->parameter_count; i++) {
            found->offsets[i] = get_u32(&message);
            found->sizes[i] = get_u32(&message);
        }
        found->is_known = true;
    }
    forget(&message);
    return found->is_known ? found : NULL;
}

/* --------------------------------------------------------------------- modules that the program loads by itself */

#define PTX_ENTRY 1

struct fatbin_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
};

/* Return a copy of an image as a fat binary; NULL for what is none and no PTX. */
static void *copied_image(const char *image) {
    struct fatbin_header header;
    if (!strncmp(image, "\x50\xED\x55\xBA", 4)) { /* FATBIN_MAGIC; text may be shorter */
        memcpy(&header, image, sizeof header);
        size_t bytes = header.header_bytes + header.bytes;
        return memcpy(malloc(bytes), image, bytes);
    }
    image += strspn(image, " \t\r\n");
    if (strncmp(image, "//", 2) && strncmp(image, "/*", 2) && strncmp(image, ".version", 8))
        return NULL;
    size_t length = strlen(image);
    struct fatbin_entry entry = {PTX_ENTRY, 0, sizeof entry, length};
    header = (struct fatbin_header){FATBIN_MAGIC, 1, sizeof header, sizeof entry + length};
    char *made = malloc(sizeof header + sizeof entry + length);
    memcpy(made, &header, sizeof header);
    memcpy(made + sizeof header, &entry, sizeof entry);
    memcpy(made + sizeof header + sizeof entry, image, length);
    return made;
}

struct module *load_module(const void *image, cudaError_t *why) {
    void *copy = copied_image(image);
    if (!copy) {
        tell("labkit: this module is neither PTX nor a fat binary of nvcc");
        *why = cudaErrorInvalidKernelImage;
        return NULL;
    }
    struct fatbin_wrapper *wrapper = calloc(1, sizeof *wrapper);
    *wrapper = (struct fatbin_wrapper){.version = 1, .data = copy};
    struct module *module = new_module(wrapper);
    module->is_own = true;
    *why = give(module);
    module->is_unloaded = *why;
    return *why ? NULL : module;
}

static bool is_loaded_module(const struct module *module) {
    for (uint32_t i = 0; i < module_count; i++)
        if (modules[i] == module)
            return module->is_own && !module->is_unloaded;
    return false;
}

bool unload_module(struct module *module) {
    bool is_there = is_loaded_module(module);
    if (is_there)
        module->is_unloaded = true;
    return is_there;
}

struct kernel *kernel_of_module(struct module *module, const char *name, cudaError_t *why) {
    if (!is_loaded_module(module)) {
        *why = cudaErrorInvalidResourceHandle;
        return NULL;
    }
    for (size_t i = 0; i < kernel_count; i++)
        if (kernels[i]->module == module->number && !strcmp(kernels[i]->name, name))
            return kernels[i];
    struct kernel *kernel = calloc(1, sizeof *kernel);
    *kernel = (struct kernel){.name = strdup(name), .module = module->number, .max_dynamic_shared = -1, .carveout = -1};
    kernel->host = kernel;
    add_kernel(kernel);
    if (find_kernel(kernel, why)) {
        *why = cudaSuccess;
        return kernel;
    }
    kernel_count--;
    free(kernel->name);
    free(kernel);
    return NULL;
}

void *variable_of_module(struct module *module, const char *name, size_t *bytes) {
    if (!is_loaded_module(module))
        return NULL;
    struct variable variable = {.name = name, .module = module};
    find_variable(&variable);
    *bytes = variable.bytes;
    return (void *)variable.start;
}

bool know_resources(struct kernel *kernel) {
    if (kernel->has_resources)
        return true;
    struct message message = {0};
    put_u32(&message, kernel->number);
    if (ask(RESOURCES, &message)) {
        kernel->registers = get_u32(&message);
        kernel->local_bytes = get_u32(&message);
        kernel->has_resources = true;
    }
    forget(&message);
    return kernel->has_resources;
}

void pack(const struct kernel *kernel, void *const *arguments, void *parameters) {
    for (uint32_t i = 0; i < kernel->parameter_count; i++)
        memcpy((char *)parameters + kernel->offsets[i], arguments[i], kernel->sizes[i]);
}

/* Check a launch as a GPU does, before anything runs. */
static cudaError_t check_launch(struct kernel *kernel, dim3 grid, dim3 block, size_t shared) {
    const struct cudaDeviceProp *gpu = &the_machine()->properties;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || grid.x > (uint32_t)gpu->maxGridSize[0] ||
        grid.y > (uint32_t)gpu->maxGridSize[1] || grid.z > (uint32_t)gpu->maxGridSize[2] ||
        block.x > (uint32_t)gpu->maxThreadsDim[0] || block.y > (uint32_t)gpu->maxThreadsDim[1] ||
        block.z > (uint32_t)gpu->maxThreadsDim[2] || threads > (uint32_t)gpu->maxThreadsPerBlock)
        return cudaErrorInvalidValue; /* CUDA 13 says so; earlier ones cudaErrorInvalidConfiguration */
    if (threads > kernel->max_threads)
        return cudaErrorInvalidValue;
    size_t limit = gpu->sharedMemPerBlock - kernel->static_shared;
    if (kernel->max_dynamic_shared > (int64_t)limit)
        limit = (size_t)kernel->max_dynamic_shared;
    if (shared > limit)
        return cudaErrorInvalidValue;
    if (threads > 256 && know_resources(kernel) &&
        (uint64_t)((kernel->registers + 7) / 8 * 8) * ((threads + 31) / 32 * 32) > (uint64_t)gpu->regsPerBlock)
        return cudaErrorLaunchOutOfResources;
    return cudaSuccess;
}

struct kept_launch {
    struct kernel *kernel;
    dim3 grid, block;
    size_t shared;
    bool is_cooperative;
    unsigned char parameters[];
};

static cudaError_t run_kernel(const struct kept_launch *kept, cudaStream_t stream) {
    struct kernel *kernel = kept->kernel;
    if (has_pending()) /* after a failed kernel no other one runs */
        return cudaSuccess;
    struct message message = {0};
    put_u32(&message, kernel->number);
    uint32_t sizes[6] = {kept->grid.x,  kept->grid.y,  kept->grid.z,
                         kept->block.x, kept->block.y, kept->block.z};
    put(&message, sizes, sizeof sizes);
    put_u32(&message, (uint32_t)kept->shared);
    put_u32(&message, kept->is_cooperative);
    put_u32(&message, is_timed());
    put(&message, call_sites(), SITES * sizeof(uint64_t));
    put(&message, kept->parameters, kernel->parameter_bytes);
    if (!ask(LAUNCH, &message)) {
        set_pending(cudaErrorUnknown);
        return cudaSuccess;
    }
    cudaError_t code = get_u32(&message);
    bool is_refused = get_u32(&message); /* before anything ran */
    double seconds = get_double(&message), share = get_double(&message);
    uint32_t length = get_u32(&message);
    if (length) { /* what the kernel printed stands where a GPU's would, among the program's own lines */
        fwrite(message.data + message.read, 1, length, stdout);
    }
    forget(&message);
    time_kernel(stream, seconds, share);
    if (!code)
        note_order(RAN, (uint64_t[]){stream_handle(stream)}, 1);
    if (code && is_refused)
        return code;
    if (code)
        set_pending(code);
    return cudaSuccess;
}

static void run_kept(const void *data, cudaStream_t stream) { run_kernel(data, stream); }

cudaError_t launch(struct kernel *kernel, dim3 grid, dim3 block, const void *parameters, size_t shared,
                   cudaStream_t stream, bool is_cooperative) {
    cudaError_t code = check_stream(stream);
    if (!code)
        code = check_launch(kernel, grid, block, shared);
    if (code)
        return code;
    size_t bytes = sizeof(struct kept_launch) + kernel->parameter_bytes;
    struct kept_launch *kept = calloc(1, bytes);
    *kept = (struct kept_launch){kernel, grid, block, shared, is_cooperative};
    memcpy(kept->parameters, parameters, kernel->parameter_bytes);
    if (!keep_for_graph(stream, run_kept, kept, bytes))
        code = run_kernel(kept, stream);
    free(kept);
    return code;
}

struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    uint64_t sites[SITES]; /* that lead to `<<<`; cudaLaunchKernel itself is called by nvcc's code */
};
static __thread struct configuration pushed[16];
static __thread int depth;
static __thread bool is_popped; /* pushed[depth] is that of the launch that comes now */

static cudaError_t launch_host(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream, bool is_cooperative) {
    if (is_popped)
        use_sites(pushed[depth].sites);
    is_popped = false;
    cudaError_t code;
    struct kernel *kernel = find_kernel(host, &code);
    if (!kernel)
        return code;
    unsigned char *parameters = calloc(1, kernel->parameter_bytes + 1);
    pack(kernel, arguments, parameters);
    code = launch(kernel, grid, block, parameters, shared, stream, is_cooperative);
    free(parameters);
    return code;
}

SERVED(unsigned, __cudaPushCallConfiguration, (dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)) {
    if (depth == 16)
        return 1;
    struct configuration *top = &pushed[depth++];
    *top = (struct configuration){grid, block, shared, stream, {0}};
    note_sites(__builtin_return_address(0));
    memcpy(top->sites, call_sites(), sizeof top->sites);
    return 0;
}

SERVED(cudaError_t, __cudaPopCallConfiguration, (dim3 * grid, dim3 *block, size_t *shared, void *stream)) {
    if (!depth)
        return cudaErrorMissingConfiguration;
    struct configuration top = pushed[--depth];
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared;
    *(cudaStream_t *)stream = top.stream;
    is_popped = true;
    return cudaSuccess;
}

SERVED(cudaError_t, cudaLaunchKernel,
       (const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(launch_host(host, grid, block, arguments, shared, stream, false));
}

SERVED(cudaError_t, __cudaLaunchKernel,
       (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(launch_host(kernel, grid, block, arguments, shared, stream, false));
}

SERVED(cudaError_t, __cudaGetKernel, (cudaKernel_t * kernel, const void *host)) {
    *kernel = (cudaKernel_t)host; /* both names lead to the same kernel */
    return cudaSuccess;
}

SERVED(cudaError_t, cudaGetKernel, (cudaKernel_t * kernel, const void *host)) {
    *kernel = (cudaKernel_t)host;
    return cudaSuccess;
}

SERVED(cudaError_t, cudaLaunchCooperativeKernel,
       (const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)) {
    BEGIN_CALL();
    return done(launch_host(host, grid, block, arguments, shared, stream, true));
}

SERVED(cudaError_t, cudaLaunchKernelExC,
       (const cudaLaunchConfig_t *config, const void *host, void **arguments)) {
    BEGIN_CALL();
    bool is_cooperative = false;
    for (unsigned i = 0; config && i < config->numAttrs; i++) {
        if (config->attrs[i].id == cudaLaunchAttributeCooperative)
            is_cooperative = config->attrs[i].val.cooperative;
        else if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            return done(refuse("a cluster size given at the launch"));
    }
    if (!config)
        return done(cudaErrorInvalidValue);
    return done(launch_host(host, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                            config->stream, is_cooperative));
}

/* ------------------------------------------------------------------------------ attributes of functions */

SERVED(cudaError_t, cudaFuncGetAttributes, (struct cudaFuncAttributes * attributes, const void *host)) {
    BEGIN_CALL();
    cudaError_t code;
    struct kernel *kernel = find_kernel(host, &code);
    if (!attributes || !kernel)
        return done(attributes ? code : cudaErrorInvalidValue);
    if (!know_resources(kernel))
        return done(cudaErrorUnknown);
    memset(attributes, 0, sizeof *attributes);
    const struct cudaDeviceProp *gpu = &the_machine()->properties;
    int fitting = gpu->regsPerBlock / (int)((kernel->registers + 7) / 8 * 8) / 32 * 32;
    attributes->sharedSizeBytes = kernel->static_shared;
    attributes->localSizeBytes = kernel->local_bytes;
    attributes->numRegs = (int)kernel->registers;
    attributes->maxThreadsPerBlock = (int)kernel->max_threads < fitting ? (int)kernel->max_threads : fitting;
    attributes->ptxVersion = attributes->binaryVersion = 10 * gpu->major + gpu->minor;
    attributes->maxDynamicSharedSizeBytes = kernel->max_dynamic_shared >= 0
                                                ? kernel->max_dynamic_shared
                                                : (int)(gpu->sharedMemPerBlock - kernel->static_shared);
    attributes->preferredShmemCarveout = kernel->carveout;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaFuncSetAttribute, (const void *host, enum cudaFuncAttribute attribute, int value)) {
    BEGIN_CALL();
    cudaError_t code;
    struct kernel *kernel = find_kernel(host, &code);
    if (!kernel)
        return done(code);
    const struct cudaDeviceProp *gpu = &the_machine()->properties;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || (size_t)value > gpu->sharedMemPerBlockOptin - kernel->static_shared)
            return done(cudaErrorInvalidValue);
        kernel->max_dynamic_shared = value;
    } else if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
        if (value < -1 || value > 100)
            return done(cudaErrorInvalidValue);
        kernel->carveout = value;
    } else if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
        return done(cudaSuccess);
    } else {
        return done(cudaErrorInvalidValue);
    }
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaFuncSetCacheConfig, (const void *host, enum cudaFuncCache config)) {
    BEGIN_CALL();
    (void)config;
    cudaError_t code;
    return done(find_kernel(host, &code) ? cudaSuccess : code);
}

SERVED(cudaError_t, cudaFuncGetName, (const char **name, const void *host)) {
    BEGIN_CALL();
    cudaError_t code;
    struct kernel *kernel = find_kernel(host, &code);
    if (!kernel || !name)
        return done(code);
    *name = kernel->name;
    return done(cudaSuccess);
}

/* ------------------------------------------------------------------------------------------ occupancy */

static cudaError_t occupancy(int *blocks, const void *host, int block, size_t shared) {
    cudaError_t code;
    struct kernel *kernel = find_kernel(host, &code);
    if (!kernel)
        return code;
    if (!blocks || block <= 0)
        return cudaErrorInvalidValue;
    struct message message = {0};
    put_u32(&message, kernel->number);
    put_u32(&message, (uint32_t)block);
    put_u32(&message, (uint32_t)shared);
    *blocks = ask(OCCUPANCY, &message) ? (int)get_u32(&message) : 0;
    forget(&message);
    return cudaSuccess;
}

SERVED(cudaError_t, cudaOccupancyMaxActiveBlocksPerMultiprocessor,
       (int *blocks, const void *host, int block, size_t shared)) {
    BEGIN_CALL();
    return done(occupancy(blocks, host, block, shared));
}

SERVED(cudaError_t, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *blocks, const void *host, int block, size_t shared, unsigned flags)) {
    BEGIN_CALL();
    (void)flags;
    return done(occupancy(blocks, host, block, shared));
}

SERVED(cudaError_t, cudaOccupancyAvailableDynamicSMemPerBlock,
       (size_t * bytes, const void *host, int blocks, int block)) {
    BEGIN_CALL();
    const struct cudaDeviceProp *gpu = &the_machine()->properties;
    int found = 0;
    size_t room = gpu->sharedMemPerBlock;
    while (room >= 256) {
        cudaError_t code = occupancy(&found, host, block, room);
        if (code)
            return done(code);
        if (found >= blocks)
            break;
        room -= 256;
    }
    *bytes = room;
    return done(cudaSuccess);
}
