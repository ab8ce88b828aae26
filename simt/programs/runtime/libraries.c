/* cuBLAS and cuRAND as far as programs of courses use them. The server computes with NumPy in the shared memory. */
#include "runtime.h"
#include "../include/cublas_v2.h"
#include "../include/curand.h"

#include <stdlib.h>
#include <string.h>

struct cublasContext {
    cudaStream_t stream;
    bool is_device_mode; /* alpha, beta and results lie in device memory */
    cublasMath_t math;
};

struct curandGenerator_st {
    uint64_t number;
    cudaStream_t stream;
    bool is_on_host; /* its numbers go to the program's own memory */
};

/* Send a request: its name, numbers and pointers. The answer is a status, the time that the work would take, and one
   result. Return `otherwise` as status where there is no answer. */
static int request(const char *name, const double *numbers, size_t count, const void *const *pointers,
                   size_t pointer_count, cudaStream_t stream, double *result, int otherwise) {
    int status = otherwise;
    struct message message = {0};
    put_text(&message, name);
    put_u32(&message, (uint32_t)count);
    put(&message, numbers, count * sizeof *numbers);
    put_u32(&message, (uint32_t)pointer_count);
    put(&message, pointers, pointer_count * sizeof *pointers);
    if (!has_pending() && !sticky_error() && ask(LIBRARY_CALL, &message)) {
        status = (int)get_u32(&message);
        double seconds = get_double(&message), value = get_double(&message);
        time_kernel(stream, seconds, 1.0);
        note_order(HOST_WAITS_FOR_ALL, NULL, 0); /* what a library uses, and when it waits, is not known */
        if (result)
            *result = value;
    }
    forget(&message);
    return status;
}

#define LIST(type, ...) (type[]){__VA_ARGS__}, sizeof((type[]){__VA_ARGS__}) / sizeof(type)
#define NUMBERS(...) LIST(const double, __VA_ARGS__)
#define POINTERS(...) LIST(const void *const, __VA_ARGS__)

/* ---------------------------------------------------------------------------------------------- cuBLAS */

struct status {
    int code;
    const char *name, *text;
};

static const struct status blas_statuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "the operation completed successfully"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
     "the function requires an architectural feature absent from the architecture of the device"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the GPU program failed to execute"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality requested is not supported"},
};

static const struct status *status_of(int code) {
    for (size_t i = 0; i < sizeof blas_statuses / sizeof *blas_statuses; i++)
        if (blas_statuses[i].code == code)
            return &blas_statuses[i];
    static const struct status unknown = {0, "unknown", "unknown status"};
    return &unknown;
}

SERVED(const char *, cublasGetStatusName, (cublasStatus_t status)) { return status_of((int)status)->name; }
SERVED(const char *, cublasGetStatusString, (cublasStatus_t status)) { return status_of((int)status)->text; }

/* Say whether a failure is the call's own; after a kernel's mistake all calls fail. */
static bool is_own(int status) { return status && !has_pending() && !sticky_error(); }

static cublasStatus_t end_blas(int status) {
    if (is_own(status))
        report_failure(status_of(status)->name, status_of(status)->text);
    end_call();
    return (cublasStatus_t)status;
}

/* Begin a call of cuBLAS, which needs a handle. */
#define BEGIN_BLAS(handle)                                                                                   \
    do {                                                                                                     \
        BEGIN();                                                                                             \
        if (!(handle))                                                                                       \
            return end_blas(CUBLAS_STATUS_NOT_INITIALIZED);                                                  \
    } while (0)
#define END_BLAS(handle, name, numbers, pointers, result)                                                    \
    return end_blas(request(name, numbers, pointers, (handle)->stream, result, CUBLAS_STATUS_EXECUTION_FAILED))

SERVED(cublasStatus_t, cublasCreate_v2, (cublasHandle_t * handle)) {
    *handle = calloc(1, sizeof **handle);
    return CUBLAS_STATUS_SUCCESS;
}

SERVED(cublasStatus_t, cublasDestroy_v2, (cublasHandle_t handle)) {
    free(handle);
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

SERVED(cublasStatus_t, cublasGetVersion_v2, (cublasHandle_t handle, int *version)) {
    (void)handle;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

SERVED(cublasStatus_t, cublasSetStream_v2, (cublasHandle_t handle, cudaStream_t stream)) {
    BEGIN_BLAS(handle);
    handle->stream = stream;
    return end_blas(CUBLAS_STATUS_SUCCESS);
}

SERVED(cublasStatus_t, cublasGetStream_v2, (cublasHandle_t handle, cudaStream_t *stream)) {
    BEGIN_BLAS(handle);
    *stream = handle->stream;
    return end_blas(CUBLAS_STATUS_SUCCESS);
}

SERVED(cublasStatus_t, cublasSetPointerMode_v2, (cublasHandle_t handle, cublasPointerMode_t mode)) {
    BEGIN_BLAS(handle);
    handle->is_device_mode = mode == CUBLAS_POINTER_MODE_DEVICE;
    return end_blas(CUBLAS_STATUS_SUCCESS);
}

SERVED(cublasStatus_t, cublasGetPointerMode_v2, (cublasHandle_t handle, cublasPointerMode_t *mode)) {
    BEGIN_BLAS(handle);
    *mode = handle->is_device_mode ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST;
    return end_blas(CUBLAS_STATUS_SUCCESS);
}

/* Sums are float32 in every mode: more exact than TF32. */
SERVED(cublasStatus_t, cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode)) {
    BEGIN_BLAS(handle);
    handle->math = mode;
    return end_blas(CUBLAS_STATUS_SUCCESS);
}

SERVED(cublasStatus_t, cublasGetMathMode, (cublasHandle_t handle, cublasMath_t *mode)) {
    BEGIN_BLAS(handle);
    *mode = handle->math;
    return end_blas(CUBLAS_STATUS_SUCCESS);
}

SERVED(cublasStatus_t, cublasSetWorkspace_v2, (cublasHandle_t handle, void *memory, size_t bytes)) {
    BEGIN_BLAS(handle);
    (void)memory, (void)bytes;
    return end_blas(CUBLAS_STATUS_SUCCESS);
}

static cublasStatus_t strided(int n, int size, const void *x, int incx, void *y, int incy) {
    for (int i = 0; i < n; i++)
        memcpy((char *)writable(y) + (size_t)i * incy * size, (char *)writable(x) + (size_t)i * incx * size,
               (size_t)size);
    time_copy(0, (size_t)n * size, is_ours(y) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, false, true);
    return end_blas(CUBLAS_STATUS_SUCCESS);
}

SERVED(cublasStatus_t, cublasSetVector, (int n, int size, const void *x, int incx, void *y, int incy)) {
    BEGIN();
    return strided(n, size, x, incx, y, incy);
}

SERVED(cublasStatus_t, cublasGetVector, (int n, int size, const void *x, int incx, void *y, int incy)) {
    BEGIN();
    return strided(n, size, x, incx, y, incy);
}

static cublasStatus_t columns(int rows, int cols, int size, const void *A, int lda, void *B, int ldb) {
    for (int j = 0; j < cols; j++)
        memcpy((char *)writable(B) + (size_t)j * ldb * size, (char *)writable(A) + (size_t)j * lda * size,
               (size_t)rows * size);
    time_copy(0, (size_t)rows * cols * size, is_ours(B) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, false,
              true);
    return end_blas(CUBLAS_STATUS_SUCCESS);
}

SERVED(cublasStatus_t, cublasSetMatrix,
       (int rows, int cols, int size, const void *A, int lda, void *B, int ldb)) {
    BEGIN();
    return columns(rows, cols, size, A, lda, B, ldb);
}

SERVED(cublasStatus_t, cublasGetMatrix,
       (int rows, int cols, int size, const void *A, int lda, void *B, int ldb)) {
    BEGIN();
    return columns(rows, cols, size, A, lda, B, ldb);
}

#define SCALAR(pointer) (double)(*(__typeof__(pointer))writable(pointer))
#define RESULT(pointer, value) (*(__typeof__(pointer))writable(pointer) = (__typeof__(*(pointer)))(value))

/* A function for float and for double: simt/programs/library.py finds both by this word. */
#define REAL(X, name, parameters) cublasStatus_t sim_cublas##X##name parameters
#define VECTORS(X, name, alpha, x, y, result)                                                                \
    END_BLAS(h, #X name, NUMBERS(n, alpha, inc##x, inc##y), POINTERS(x, y), result)
#define VECTORS_TO(X, name, x, y)                                                                            \
    BEGIN_BLAS(h);                                                                                           \
    double value = 0;                                                                                        \
    int status = request(#X name, NUMBERS(n, 0, inc##x, inc##y), POINTERS(x, y), h->stream, &value,          \
                         CUBLAS_STATUS_EXECUTION_FAILED);                                                    \
    if (!status)                                                                                             \
        RESULT(result, value);                                                                               \
    return end_blas(status)
#define PRODUCTS(A, sa, B, sb, C, sc, type, count, is_batched)                                               \
    END_BLAS(h, "gemm",                                                                                      \
             NUMBERS(ta, tb, m, n, k, SCALAR(alpha), lda, (double)(sa), ldb, (double)(sb), SCALAR(beta), ldc, \
                     (double)(sc), count, type, type, type, is_batched),                                     \
             POINTERS(A, B, C), NULL)

#define FUNCTIONS_OF(X, T, TYPE)                                                                             \
    REAL(X, gemm_v2,                                                                                         \
         (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha, \
          const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc)) {                         \
        BEGIN_BLAS(h);                                                                                       \
        PRODUCTS(A, 0, B, 0, C, 0, TYPE, 1, 0);                                                              \
    }                                                                                                        \
    REAL(X, gemmStridedBatched,                                                                              \
         (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha, \
          const T *A, int lda, long long sa, const T *B, int ldb, long long sb, const T *beta, T *C,         \
          int ldc, long long sc, int count)) {                                                               \
        BEGIN_BLAS(h);                                                                                       \
        PRODUCTS(A, sa, B, sb, C, sc, TYPE, count, 0);                                                       \
    }                                                                                                        \
    REAL(X, gemmBatched,                                                                                     \
         (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha, \
          const T *const A[], int lda, const T *const B[], int ldb, const T *beta, T *const C[], int ldc,    \
          int count)) {                                                                                      \
        BEGIN_BLAS(h);                                                                                       \
        PRODUCTS(A, 0, B, 0, C, 0, TYPE, count, 1);                                                          \
    }                                                                                                        \
    REAL(X, geam,                                                                                            \
         (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const T *alpha,        \
          const T *A, int lda, const T *beta, const T *B, int ldb, T *C, int ldc)) {                         \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "geam", NUMBERS(ta, tb, m, n, SCALAR(alpha), lda, SCALAR(beta), ldb, ldc),            \
                 POINTERS(A, B, C), NULL);                                                                   \
    }                                                                                                        \
    REAL(X, dgmm,                                                                                            \
         (cublasHandle_t h, cublasSideMode_t side, int m, int n, const T *A, int lda, const T *x, int incx,  \
          T *C, int ldc)) {                                                                                  \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "dgmm", NUMBERS(side, m, n, lda, incx, ldc), POINTERS(A, x, C), NULL);                \
    }                                                                                                        \
    REAL(X, symm_v2,                                                                                         \
         (cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n, const T *alpha,      \
          const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc)) {                         \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "symm", NUMBERS(side, uplo, m, n, SCALAR(alpha), lda, ldb, SCALAR(beta), ldc),        \
                 POINTERS(A, B, C), NULL);                                                                   \
    }                                                                                                        \
    REAL(X, syrk_v2,                                                                                         \
         (cublasHandle_t h, cublasFillMode_t uplo, cublasOperation_t t, int n, int k, const T *alpha,        \
          const T *A, int lda, const T *beta, T *C, int ldc)) {                                              \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "syrk", NUMBERS(uplo, t, n, k, SCALAR(alpha), lda, SCALAR(beta), ldc),                \
                 POINTERS(A, C), NULL);                                                                      \
    }                                                                                                        \
    REAL(X, trsm_v2,                                                                                         \
         (cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t t,               \
          cublasDiagType_t diag, int m, int n, const T *alpha, const T *A, int lda, T *B, int ldb)) {        \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "trsm", NUMBERS(side, uplo, t, diag, m, n, SCALAR(alpha), lda, ldb), POINTERS(A, B),  \
                 NULL);                                                                                      \
    }                                                                                                        \
    REAL(X, gemv_v2,                                                                                         \
         (cublasHandle_t h, cublasOperation_t t, int m, int n, const T *alpha, const T *A, int lda,          \
          const T *x, int incx, const T *beta, T *y, int incy)) {                                            \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "gemv", NUMBERS(t, m, n, SCALAR(alpha), lda, incx, SCALAR(beta), incy),               \
                 POINTERS(A, x, y), NULL);                                                                   \
    }                                                                                                        \
    REAL(X, symv_v2,                                                                                         \
         (cublasHandle_t h, cublasFillMode_t uplo, int n, const T *alpha, const T *A, int lda, const T *x,   \
          int incx, const T *beta, T *y, int incy)) {                                                        \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "symv", NUMBERS(uplo, n, SCALAR(alpha), lda, incx, SCALAR(beta), incy),               \
                 POINTERS(A, x, y), NULL);                                                                   \
    }                                                                                                        \
    REAL(X, ger_v2,                                                                                          \
         (cublasHandle_t h, int m, int n, const T *alpha, const T *x, int incx, const T *y, int incy, T *A,  \
          int lda)) {                                                                                        \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "ger", NUMBERS(m, n, SCALAR(alpha), incx, incy, lda), POINTERS(x, y, A), NULL);       \
    }                                                                                                        \
    REAL(X, trsv_v2,                                                                                         \
         (cublasHandle_t h, cublasFillMode_t uplo, cublasOperation_t t, cublasDiagType_t diag, int n,        \
          const T *A, int lda, T *x, int incx)) {                                                            \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "trsv", NUMBERS(uplo, t, diag, n, lda, incx), POINTERS(A, x), NULL);                  \
    }                                                                                                        \
    REAL(X, trmv_v2,                                                                                         \
         (cublasHandle_t h, cublasFillMode_t uplo, cublasOperation_t t, cublasDiagType_t diag, int n,        \
          const T *A, int lda, T *x, int incx)) {                                                            \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "trmv", NUMBERS(uplo, t, diag, n, lda, incx), POINTERS(A, x), NULL);                  \
    }                                                                                                        \
    REAL(X, axpy_v2, (cublasHandle_t h, int n, const T *alpha, const T *x, int incx, T *y, int incy)) {      \
        BEGIN_BLAS(h);                                                                                       \
        VECTORS(X, "axpy", SCALAR(alpha), x, y, NULL);                                                       \
    }                                                                                                        \
    REAL(X, scal_v2, (cublasHandle_t h, int n, const T *alpha, T *x, int incx)) {                            \
        BEGIN_BLAS(h);                                                                                       \
        VECTORS(X, "scal", SCALAR(alpha), x, x, NULL);                                                       \
    }                                                                                                        \
    REAL(X, copy_v2, (cublasHandle_t h, int n, const T *x, int incx, T *y, int incy)) {                      \
        BEGIN_BLAS(h);                                                                                       \
        VECTORS(X, "copy", 0, x, y, NULL);                                                                   \
    }                                                                                                        \
    REAL(X, swap_v2, (cublasHandle_t h, int n, T *x, int incx, T *y, int incy)) {                            \
        BEGIN_BLAS(h);                                                                                       \
        VECTORS(X, "swap", 0, x, y, NULL);                                                                   \
    }                                                                                                        \
    REAL(X, rot_v2,                                                                                          \
         (cublasHandle_t h, int n, T *x, int incx, T *y, int incy, const T *cosine, const T *sine)) {        \
        BEGIN_BLAS(h);                                                                                       \
        END_BLAS(h, #X "rot", NUMBERS(n, SCALAR(cosine), SCALAR(sine), incx, incy), POINTERS(x, y), NULL);   \
    }                                                                                                        \
    REAL(X, dot_v2, (cublasHandle_t h, int n, const T *x, int incx, const T *y, int incy, T *result)) {      \
        VECTORS_TO(X, "dot", x, y);                                                                          \
    }                                                                                                        \
    REAL(X, nrm2_v2, (cublasHandle_t h, int n, const T *x, int incx, T *result)) {                           \
        VECTORS_TO(X, "nrm2", x, x);                                                                         \
    }                                                                                                        \
    REAL(X, asum_v2, (cublasHandle_t h, int n, const T *x, int incx, T *result)) {                           \
        VECTORS_TO(X, "asum", x, x);                                                                         \
    }

FUNCTIONS_OF(S, float, CUDA_R_32F)
FUNCTIONS_OF(D, double, CUDA_R_64F)

SERVED(cublasStatus_t, cublasIsamax_v2, (cublasHandle_t h, int n, const float *x, int incx, int *result)) {
    VECTORS_TO(S, "amax", x, x);
}

SERVED(cublasStatus_t, cublasIdamax_v2, (cublasHandle_t h, int n, const double *x, int incx, int *result)) {
    VECTORS_TO(D, "amax", x, x);
}

SERVED(cublasStatus_t, cublasIsamin_v2, (cublasHandle_t h, int n, const float *x, int incx, int *result)) {
    VECTORS_TO(S, "amin", x, x);
}

SERVED(cublasStatus_t, cublasIdamin_v2, (cublasHandle_t h, int n, const double *x, int incx, int *result)) {
    VECTORS_TO(D, "amin", x, x);
}

/* ---------------------------------------------------------------------- products of numbers of other types */

static double from_half(uint16_t bits) {
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent ? (double)(1024 + fraction) : (double)fraction;
    for (uint32_t i = exponent ? exponent : 1; i < 25; i++)
        magnitude /= 2;
    for (uint32_t i = 25; i < exponent; i++)
        magnitude *= 2;
    if (exponent == 31)
        magnitude = fraction ? __builtin_nan("") : __builtin_inf();
    return bits >> 15 ? -magnitude : magnitude;
}

/* Return alpha or beta, whose type follows from that of the sums. */
static double scalar_of(const void *pointer, cublasComputeType_t compute) {
    const void *at = writable(pointer);
    switch (compute) {
    case CUBLAS_COMPUTE_16F: case CUBLAS_COMPUTE_16F_PEDANTIC: return from_half(*(const uint16_t *)at);
    case CUBLAS_COMPUTE_64F: case CUBLAS_COMPUTE_64F_PEDANTIC: return *(const double *)at;
    case CUBLAS_COMPUTE_32I: case CUBLAS_COMPUTE_32I_PEDANTIC: return *(const int32_t *)at;
    default: return *(const float *)at;
    }
}

/* Say whether cuBLAS has a product of these types. */
static bool has_product(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute) {
    if (a != b)
        return false;
    switch (compute) {
    case CUBLAS_COMPUTE_16F: case CUBLAS_COMPUTE_16F_PEDANTIC: return a == CUDA_R_16F && c == a;
    case CUBLAS_COMPUTE_64F: case CUBLAS_COMPUTE_64F_PEDANTIC: return a == CUDA_R_64F && c == a;
    case CUBLAS_COMPUTE_32I: case CUBLAS_COMPUTE_32I_PEDANTIC: return a == CUDA_R_8I && c == CUDA_R_32I;
    case CUBLAS_COMPUTE_32F: case CUBLAS_COMPUTE_32F_PEDANTIC:
        return c == CUDA_R_32F ? a == c || a == CUDA_R_16F || a == CUDA_R_16BF || a == CUDA_R_8I
                               : c == a && (a == CUDA_R_16F || a == CUDA_R_16BF);
    default: return a == CUDA_R_32F && c == a;
    }
}

#define PRODUCTS_OF(A, sa, B, sb, C, sc, count, is_batched)                                                  \
    BEGIN_BLAS(h);                                                                                           \
    (void)algorithm;                                                                                         \
    if (!has_product(Atype, Btype, Ctype, compute))                                                          \
        return end_blas(CUBLAS_STATUS_NOT_SUPPORTED);                                                        \
    END_BLAS(h, "gemm",                                                                                      \
             NUMBERS(ta, tb, m, n, k, scalar_of(alpha, compute), lda, (double)(sa), ldb, (double)(sb),       \
                     scalar_of(beta, compute), ldc, (double)(sc), count, Atype, Btype, Ctype, is_batched),   \
             POINTERS(A, B, C), NULL)

SERVED(cublasStatus_t, cublasGemmEx,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
        const void *A, cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb, const void *beta,
        void *C, cudaDataType Ctype, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)) {
    PRODUCTS_OF(A, 0, B, 0, C, 0, 1, 0);
}

SERVED(cublasStatus_t, cublasGemmStridedBatchedEx,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
        const void *A, cudaDataType Atype, int lda, long long sa, const void *B, cudaDataType Btype, int ldb,
        long long sb, const void *beta, void *C, cudaDataType Ctype, int ldc, long long sc, int count,
        cublasComputeType_t compute, cublasGemmAlgo_t algorithm)) {
    PRODUCTS_OF(A, sa, B, sb, C, sc, count, 0);
}

SERVED(cublasStatus_t, cublasGemmBatchedEx,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
        const void *const A[], cudaDataType Atype, int lda, const void *const B[], cudaDataType Btype, int ldb,
        const void *beta, void *const C[], cudaDataType Ctype, int ldc, int count, cublasComputeType_t compute,
        cublasGemmAlgo_t algorithm)) {
    PRODUCTS_OF(A, 0, B, 0, C, 0, count, 1);
}

#define HALVES(A, sa, B, sb, C, sc, count, is_batched)                                                       \
    const cudaDataType Atype = CUDA_R_16F, Btype = CUDA_R_16F, Ctype = CUDA_R_16F;                           \
    const cublasComputeType_t compute = CUBLAS_COMPUTE_16F;                                                  \
    const int algorithm = 0;                                                                                 \
    PRODUCTS_OF(A, sa, B, sb, C, sc, count, is_batched)

SERVED(cublasStatus_t, cublasHgemm,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const __half *alpha,
        const __half *A, int lda, const __half *B, int ldb, const __half *beta, __half *C, int ldc)) {
    HALVES(A, 0, B, 0, C, 0, 1, 0);
}

SERVED(cublasStatus_t, cublasHgemmStridedBatched,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const __half *alpha,
        const __half *A, int lda, long long sa, const __half *B, int ldb, long long sb, const __half *beta,
        __half *C, int ldc, long long sc, int count)) {
    HALVES(A, sa, B, sb, C, sc, count, 0);
}

SERVED(cublasStatus_t, cublasHgemmBatched,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const __half *alpha,
        const __half *const A[], int lda, const __half *const B[], int ldb, const __half *beta, __half *const C[],
        int ldc, int count)) {
    HALVES(A, 0, B, 0, C, 0, count, 1);
}

/* --------------------------------------------------------------------------------------------- cuRAND */

static uint64_t generators;

static curandStatus_t end_random(curandStatus_t status) {
    if (is_own((int)status))
        report_failure(status == CURAND_STATUS_LENGTH_NOT_MULTIPLE ? "CURAND_STATUS_LENGTH_NOT_MULTIPLE"
                       : status == CURAND_STATUS_TYPE_ERROR        ? "CURAND_STATUS_TYPE_ERROR"
                       : status == CURAND_STATUS_NOT_INITIALIZED   ? "CURAND_STATUS_NOT_INITIALIZED"
                       : status == CURAND_STATUS_OUT_OF_RANGE      ? "CURAND_STATUS_OUT_OF_RANGE"
                                                                   : "CURAND_STATUS_LAUNCH_FAILURE",
                       status == CURAND_STATUS_LENGTH_NOT_MULTIPLE
                           ? "normally distributed numbers come in pairs: ask for an even count"
                           : "no numbers were generated");
    end_call();
    return status;
}

SERVED(curandStatus_t, curandGetVersion, (int *version)) {
    *version = 10400;
    return CURAND_STATUS_SUCCESS;
}

static curandStatus_t create(curandGenerator_t *generator, curandRngType_t type, bool is_on_host) {
    if (type >= CURAND_RNG_QUASI_DEFAULT) {
        tell("labkit: quasirandom generators of cuRAND are not supported without a GPU");
        return end_random(CURAND_STATUS_TYPE_ERROR);
    }
    *generator = calloc(1, sizeof **generator);
    (*generator)->number = ++generators;
    (*generator)->is_on_host = is_on_host;
    return end_random(CURAND_STATUS_SUCCESS);
}

SERVED(curandStatus_t, curandCreateGenerator, (curandGenerator_t * generator, curandRngType_t type)) {
    BEGIN();
    return create(generator, type, false);
}

SERVED(curandStatus_t, curandCreateGeneratorHost, (curandGenerator_t * generator, curandRngType_t type)) {
    BEGIN();
    return create(generator, type, true);
}

SERVED(curandStatus_t, curandDestroyGenerator, (curandGenerator_t generator)) {
    free(generator);
    return generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}

SERVED(curandStatus_t, curandSetStream, (curandGenerator_t generator, cudaStream_t stream)) {
    BEGIN();
    if (generator)
        generator->stream = stream;
    return end_random(generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED);
}

static curandStatus_t random_numbers(curandGenerator_t generator, const char *name, const void *output,
                                     size_t count, double first, double second, size_t bytes_of_one) {
    if (!generator)
        return end_random(CURAND_STATUS_NOT_INITIALIZED);
    bool is_apart = generator->is_on_host && bytes_of_one && count;
    void *target = is_apart ? allocate(count * bytes_of_one, PINNED, 512) : (void *)output;
    int status = request(name, NUMBERS((double)generator->number, (double)count, first, second),
                         POINTERS(target), generator->stream, NULL, CURAND_STATUS_LAUNCH_FAILURE);
    if (is_apart) {
        memcpy((void *)output, writable(target), count * bytes_of_one);
        release(target, PINNED);
    }
    return end_random(status ? CURAND_STATUS_LAUNCH_FAILURE : CURAND_STATUS_SUCCESS);
}

/* Normally distributed numbers are made in pairs. */
#define REFUSE_ODD(count)                                                                                    \
    if ((count) % 2)                                                                                         \
    return end_random(CURAND_STATUS_LENGTH_NOT_MULTIPLE)

SERVED(curandStatus_t, curandSetPseudoRandomGeneratorSeed, (curandGenerator_t generator, unsigned long long seed)) {
    BEGIN();
    return random_numbers(generator, "seed", NULL, 0, (double)(seed >> 32), (double)(seed & 0xffffffffu), 0);
}

SERVED(curandStatus_t, curandSetGeneratorOffset, (curandGenerator_t generator, unsigned long long offset)) {
    BEGIN();
    return random_numbers(generator, "offset", NULL, offset, 0, 0, 0);
}

SERVED(curandStatus_t, curandSetGeneratorOrdering, (curandGenerator_t generator, curandOrdering_t order)) {
    BEGIN();
    (void)order;
    return end_random(generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED);
}

SERVED(curandStatus_t, curandGenerateSeeds, (curandGenerator_t generator)) {
    BEGIN();
    return end_random(generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED);
}

SERVED(curandStatus_t, curandGenerate, (curandGenerator_t generator, unsigned int *output, size_t count)) {
    BEGIN();
    return random_numbers(generator, "bits", output, count, 0, 0, sizeof *output);
}

SERVED(curandStatus_t, curandGenerateUniform, (curandGenerator_t generator, float *output, size_t count)) {
    BEGIN();
    return random_numbers(generator, "uniform", output, count, 0, 0, sizeof *output);
}

SERVED(curandStatus_t, curandGenerateUniformDouble,
       (curandGenerator_t generator, double *output, size_t count)) {
    BEGIN();
    return random_numbers(generator, "uniform double", output, count, 0, 0, sizeof *output);
}

SERVED(curandStatus_t, curandGenerateNormal,
       (curandGenerator_t generator, float *output, size_t count, float mean, float deviation)) {
    BEGIN();
    REFUSE_ODD(count);
    return random_numbers(generator, "normal", output, count, mean, deviation, sizeof *output);
}

SERVED(curandStatus_t, curandGenerateNormalDouble,
       (curandGenerator_t generator, double *output, size_t count, double mean, double deviation)) {
    BEGIN();
    REFUSE_ODD(count);
    return random_numbers(generator, "normal double", output, count, mean, deviation, sizeof *output);
}

SERVED(curandStatus_t, curandGenerateLogNormal,
       (curandGenerator_t generator, float *output, size_t count, float mean, float deviation)) {
    BEGIN();
    REFUSE_ODD(count);
    return random_numbers(generator, "lognormal", output, count, mean, deviation, sizeof *output);
}

SERVED(curandStatus_t, curandGenerateLogNormalDouble,
       (curandGenerator_t generator, double *output, size_t count, double mean, double deviation)) {
    BEGIN();
    REFUSE_ODD(count);
    return random_numbers(generator, "lognormal double", output, count, mean, deviation, sizeof *output);
}

SERVED(curandStatus_t, curandGeneratePoisson,
       (curandGenerator_t generator, unsigned int *output, size_t count, double rate)) {
    BEGIN();
    if (!(rate >= 0))
        return end_random(CURAND_STATUS_OUT_OF_RANGE);
    return random_numbers(generator, "poisson", output, count, rate, 0, sizeof *output);
}
