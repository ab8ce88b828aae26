/* CUDA's rules for errors: one per thread that the next cudaGetLastError takes, and sticky ones that stay. */
#include "runtime.h"

#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static __thread cudaError_t last;
static __thread const char *function_name;
static __thread uint64_t sites[SITES];
static __thread int depth; /* of calls within calls: the outermost is the program's */
static cudaError_t sticky, pending;
static bool has_context;
extern bool is_forked, has_begun; /* start.c */

void tell(const char *format, ...) {
    char text[2048];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text - 1, format, values);
    va_end(values);
    if (length > (int)sizeof text - 2)
        length = sizeof text - 2;
    text[length++] = '\n';
    fflush(stdout);
    if (write(2, text, (size_t)length) < 0)
        return;
}

/* Note the addresses that lead to the call: labkit check makes lines of them. */
void note_sites(void *caller) {
    memset(sites, 0, sizeof sites);
    sites[0] = (uint64_t)caller;
    if (!is_watched)
        return;
    void *found[SITES + 4];
    int count = backtrace(found, SITES + 4), first = 0;
    while (first < count && found[first] != caller)
        first++;
    for (int i = 0; first + i < count && i < SITES; i++)
        sites[i] = (uint64_t)found[first + i];
}

cudaError_t begin_call(const char *function, void *caller) {
    pthread_mutex_lock(&lock);
    if (depth++)
        return sticky;
    function_name = function;
    has_context |= function[2] < 'A' || function[2] > 'Z'; /* it is no cuX, which makes none by itself */
    note_sites(caller);
    if (is_forked && !sticky)
        sticky = cudaErrorInitializationError;
    has_begun = true;
    return sticky;
}

const uint64_t *call_sites(void) { return sites; }
void use_sites(const uint64_t *earlier) { memcpy(sites, earlier, sizeof sites); }

static const char *name_of(cudaError_t code);

bool uses_runtime(void) { return has_context; }

void end_call(void) {
    depth--;
    pthread_mutex_unlock(&lock);
}

void report_failure(const char *name, const char *text) {
    if (!is_checked || is_forked)
        return;
    struct message message = {0};
    put_text(&message, function_name);
    put_text(&message, name);
    put_text(&message, text);
    put(&message, sites, sizeof sites);
    ask(FAILED_CALL, &message);
    forget(&message);
}

/* Have the server keep what a call has returned. */
static void note_returned(cudaError_t code) {
    if (!is_recorded || is_forked || code == cudaSuccess || code == cudaErrorNotReady)
        return;
    struct message message = {0};
    put_u32(&message, RETURNED);
    put_u32(&message, code);
    put_text(&message, function_name);
    ask(NOTED, &message);
    forget(&message);
}

static void report_look(void) {
    struct message message = {0};
    ask(LOOKED, &message);
    forget(&message);
}

cudaError_t done(cudaError_t code) {
    if (code != cudaSuccess && depth == 1) {
        if (code != cudaErrorNotReady)
            last = code;
        /* A kernel's mistake has been reported; the calls that fail after it say nothing new. */
        if (code != cudaErrorNotReady && code != sticky)
            report_failure(name_of(code), error_text(code));
        note_returned(code);
    }
    end_call();
    return code;
}

void end_with(cudaError_t code, const char *name) {
    if (code != cudaSuccess && depth == 1) {
        if (code != cudaErrorNotReady && code != sticky)
            report_failure(name ? name : name_of(code), error_text(code));
        note_returned(code);
    }
    end_call();
}

cudaError_t sticky_error(void) { return sticky; }
bool has_pending(void) { return pending != cudaSuccess; }

void set_pending(cudaError_t code) {
    if (!pending && !sticky)
        pending = code;
}

void show_pending(void) {
    if (pending)
        sticky = pending;
    pending = cudaSuccess;
}

void forget_errors(void) { /* cudaDeviceReset makes a new context */
    sticky = pending = last = cudaSuccess;
}

cudaError_t refuse(const char *what) {
    tell("labkit: %s is not supported without a GPU", what);
    return cudaErrorNotSupported;
}

SERVED(cudaError_t, cudaGetLastError, (void)) {
    BEGIN();
    cudaError_t code = last;
    last = cudaSuccess;
    if (is_checked && code && !is_forked)
        report_look();
    note_returned(code);
    end_call();
    return code;
}

SERVED(cudaError_t, cudaPeekAtLastError, (void)) {
    BEGIN();
    cudaError_t code = last;
    if (is_checked && code && !is_forked)
        report_look();
    note_returned(code);
    end_call();
    return code;
}

struct known_error {
    cudaError_t code;
    const char *name, *text;
};

#define NAMED(code, text) {code, #code, text}
/* The texts are those that CUDA's runtime prints. */
static const struct known_error known[] = {
    NAMED(cudaSuccess, "no error"),
    NAMED(cudaErrorInvalidValue, "invalid argument"),
    NAMED(cudaErrorMemoryAllocation, "out of memory"),
    NAMED(cudaErrorInitializationError, "initialization error"),
    NAMED(cudaErrorCudartUnloading, "driver shutting down"),
    NAMED(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    NAMED(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    NAMED(cudaErrorInvalidSymbol, "invalid device symbol"),
    NAMED(cudaErrorInvalidHostPointer, "invalid host pointer"),
    NAMED(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    NAMED(cudaErrorInvalidTexture, "invalid texture reference"),
    NAMED(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    NAMED(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    NAMED(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    NAMED(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    NAMED(cudaErrorInvalidDeviceFunction, "invalid device function"),
    NAMED(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    NAMED(cudaErrorInvalidDevice, "invalid device ordinal"),
    NAMED(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    NAMED(cudaErrorDeviceUninitialized, "invalid device context"),
    NAMED(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    NAMED(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    NAMED(cudaErrorInvalidPtx, "a PTX JIT compilation failed"),
    NAMED(cudaErrorUnsupportedPtxVersion, "the provided PTX was compiled with an unsupported toolchain."),
    NAMED(cudaErrorInvalidSource, "device kernel image is invalid"),
    NAMED(cudaErrorFileNotFound, "file not found"),
    NAMED(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    NAMED(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    NAMED(cudaErrorSymbolNotFound, "named symbol not found"),
    NAMED(cudaErrorNotReady, "device not ready"),
    NAMED(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    NAMED(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    NAMED(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    NAMED(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    NAMED(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    NAMED(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    NAMED(cudaErrorContextIsDestroyed, "context is destroyed"),
    NAMED(cudaErrorAssert, "device-side assert triggered"),
    NAMED(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    NAMED(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    NAMED(cudaErrorHardwareStackError, "hardware stack error"),
    NAMED(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    NAMED(cudaErrorMisalignedAddress, "misaligned address"),
    NAMED(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space"),
    NAMED(cudaErrorInvalidPc, "invalid program counter"),
    NAMED(cudaErrorLaunchFailure, "unspecified launch failure"),
    NAMED(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    NAMED(cudaErrorNotPermitted, "operation not permitted"),
    NAMED(cudaErrorNotSupported, "operation not supported"),
    NAMED(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    NAMED(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    NAMED(cudaErrorStreamCaptureUnmatched, "capture was not initiated in this stream"),
    NAMED(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    NAMED(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    NAMED(cudaErrorTimeout, "wait operation timed out"),
    NAMED(cudaErrorGraphExecUpdateFailure,
          "the graph update was not performed because it included changes which violated constraints specific to "
          "instantiated graph update"),
    NAMED(cudaErrorInvalidClusterSize, "cluster misconfiguration"),
    NAMED(cudaErrorUnknown, "unknown error"),
};

static const struct known_error *described(cudaError_t code) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return &known[i];
    return NULL;
}

static const char *name_of(cudaError_t code) {
    const struct known_error *found = described(code);
    return found ? found->name : "unrecognized error code";
}

const char *error_text(cudaError_t code) {
    const struct known_error *found = described(code);
    return found ? found->text : "unrecognized error code";
}

SERVED(const char *, cudaGetErrorName, (cudaError_t code)) { return name_of(code); }
SERVED(const char *, cudaGetErrorString, (cudaError_t code)) { return error_text(code); }
