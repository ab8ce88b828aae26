/* cuBLAS and cuRAND as far as programs of courses use them. The server computes with NumPy in the shared memory. */
#include "runtime.h"
#include "../include/cublas_v2.h"
#include "../include/curand.h"

#include <stdlib.h>
#include <string.h>

struct cublasContext {
    cudaStream_t stream;
    bool is_device_mode; /* alpha, beta and results lie in device memory */
};

struct curandGenerator_st {
    uint64_t number;
    cudaStream_t stream;
};

/* Begin a request: its name. Numbers follow with add. */
static struct message named(const char *function) {
    struct message message = {0};
    put_text(&message, function);
    return message;
}

static void add(struct message *message, double number) { put(message, &number, sizeof number); }
static void add_pointer(struct message *message, const void *pointer) { put_u64(message, (uint64_t)pointer); }

/* Send the request; the answer is a status, the time that the work would take, and one result. */
static int finish(struct message *message, cudaStream_t stream, double *result) {
    int status = CUBLAS_STATUS_EXECUTION_FAILED;
    if (!has_pending() && !sticky_error() && ask(LIBRARY_CALL, message)) {
        status = (int)get_u32(message);
        double seconds = get_double(message), value = get_double(message);
        time_kernel(stream, seconds, 1.0);
        if (result)
            *result = value;
    }
    forget(message);
    return status;
}

static void start(const char *function) { begin_call(function, __builtin_return_address(0)); }

static int end(int status) {
    pthread_mutex_unlock(&lock);
    return status;
}

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
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

SERVED(cublasStatus_t, cublasGetStream_v2, (cublasHandle_t handle, cudaStream_t *stream)) {
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

SERVED(cublasStatus_t, cublasSetPointerMode_v2, (cublasHandle_t handle, cublasPointerMode_t mode)) {
    handle->is_device_mode = mode == CUBLAS_POINTER_MODE_DEVICE;
    return CUBLAS_STATUS_SUCCESS;
}

SERVED(cublasStatus_t, cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode)) {
    (void)mode; /* sums are float32: more exact than TF32 */
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

SERVED(const char *, cublasGetStatusName, (cublasStatus_t status)) {
    return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                   : "CUBLAS_STATUS_EXECUTION_FAILED";
}

SERVED(const char *, cublasGetStatusString, (cublasStatus_t status)) {
    return status == CUBLAS_STATUS_SUCCESS         ? "the operation completed successfully"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter was passed to the function"
                                                   : "the GPU program failed to execute";
}

static cublasStatus_t strided(int n, int size, const void *x, int incx, void *y, int incy) {
    start("cublasSetVector");
    for (int i = 0; i < n; i++)
        memcpy((char *)writable(y) + (size_t)i * incy * size, (char *)writable(x) + (size_t)i * incx * size,
               (size_t)size);
    time_copy(0, (size_t)n * size, is_ours(y) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, false, true);
    return end(CUBLAS_STATUS_SUCCESS);
}

SERVED(cublasStatus_t, cublasSetVector, (int n, int size, const void *x, int incx, void *y, int incy)) {
    return strided(n, size, x, incx, y, incy);
}

SERVED(cublasStatus_t, cublasGetVector, (int n, int size, const void *x, int incx, void *y, int incy)) {
    return strided(n, size, x, incx, y, incy);
}

static cublasStatus_t columns(int rows, int cols, int size, const void *A, int lda, void *B, int ldb) {
    start("cublasSetMatrix");
    for (int j = 0; j < cols; j++)
        memcpy((char *)writable(B) + (size_t)j * ldb * size, (char *)writable(A) + (size_t)j * lda * size,
               (size_t)rows * size);
    time_copy(0, (size_t)rows * cols * size, is_ours(B) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, false,
              true);
    return end(CUBLAS_STATUS_SUCCESS);
}

SERVED(cublasStatus_t, cublasSetMatrix,
       (int rows, int cols, int size, const void *A, int lda, void *B, int ldb)) {
    return columns(rows, cols, size, A, lda, B, ldb);
}

SERVED(cublasStatus_t, cublasGetMatrix,
       (int rows, int cols, int size, const void *A, int lda, void *B, int ldb)) {
    return columns(rows, cols, size, A, lda, B, ldb);
}

#define SCALAR(pointer) (*(__typeof__(pointer))writable(pointer))
#define RESULT(pointer, value) (*(__typeof__(pointer))writable(pointer) = (__typeof__(*(pointer)))(value))

#define FUNCTIONS_OF(T, letter)                                                                              \
    static cublasStatus_t letter##gemms(cublasHandle_t handle, int transa, int transb, int m, int n, int k,  \
                                        const T *alpha, const T *A, int lda, long long strideA, const T *B,  \
                                        int ldb, long long strideB, const T *beta, T *C, int ldc,            \
                                        long long strideC, int count) {                                      \
        start("cublas" #letter "gemm");                                                                      \
        struct message message = named(#letter "gemm");                                                      \
        double numbers[] = {transa, transb, m, n, k, SCALAR(alpha), lda, (double)strideA, ldb,               \
                            (double)strideB, SCALAR(beta), ldc, (double)strideC, count};                     \
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)                                        \
            add(&message, numbers[i]);                                                                       \
        add_pointer(&message, A);                                                                            \
        add_pointer(&message, B);                                                                            \
        add_pointer(&message, C);                                                                            \
        return end(finish(&message, handle->stream, NULL));                                                  \
    }                                                                                                        \
    static cublasStatus_t letter##vectors(cublasHandle_t handle, const char *name, int n, double alpha,      \
                                          const void *x, int incx, const void *y, int incy, T *result) {     \
        start(name);                                                                                         \
        struct message message = named(name);                                                                \
        add(&message, n);                                                                                    \
        add(&message, alpha);                                                                                \
        add(&message, incx);                                                                                 \
        add(&message, incy);                                                                                 \
        add_pointer(&message, x);                                                                            \
        add_pointer(&message, y);                                                                            \
        double value = 0;                                                                                    \
        int status = finish(&message, handle->stream, &value);                                               \
        if (result)                                                                                          \
            RESULT(result, value);                                                                           \
        return end(status);                                                                                  \
    }

FUNCTIONS_OF(float, S)
FUNCTIONS_OF(double, D)

SERVED(cublasStatus_t, cublasSgemm_v2,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float *alpha,
        const float *A, int lda, const float *B, int ldb, const float *beta, float *C, int ldc)) {
    return Sgemms(h, ta, tb, m, n, k, alpha, A, lda, 0, B, ldb, 0, beta, C, ldc, 0, 1);
}

SERVED(cublasStatus_t, cublasDgemm_v2,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const double *alpha,
        const double *A, int lda, const double *B, int ldb, const double *beta, double *C, int ldc)) {
    return Dgemms(h, ta, tb, m, n, k, alpha, A, lda, 0, B, ldb, 0, beta, C, ldc, 0, 1);
}

SERVED(cublasStatus_t, cublasSgemmStridedBatched,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float *alpha,
        const float *A, int lda, long long sa, const float *B, int ldb, long long sb, const float *beta, float *C,
        int ldc, long long sc, int count)) {
    return Sgemms(h, ta, tb, m, n, k, alpha, A, lda, sa, B, ldb, sb, beta, C, ldc, sc, count);
}

SERVED(cublasStatus_t, cublasDgemmStridedBatched,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const double *alpha,
        const double *A, int lda, long long sa, const double *B, int ldb, long long sb, const double *beta,
        double *C, int ldc, long long sc, int count)) {
    return Dgemms(h, ta, tb, m, n, k, alpha, A, lda, sa, B, ldb, sb, beta, C, ldc, sc, count);
}

static cublasStatus_t gemv(cublasHandle_t handle, const char *name, int trans, int m, int n, double alpha,
                           const void *A, int lda, const void *x, int incx, double beta, void *y, int incy) {
    start(name);
    struct message message = named(name);
    double numbers[] = {trans, m, n, alpha, lda, incx, beta, incy};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add(&message, numbers[i]);
    add_pointer(&message, A);
    add_pointer(&message, x);
    add_pointer(&message, y);
    return end(finish(&message, handle->stream, NULL));
}

SERVED(cublasStatus_t, cublasSgemv_v2,
       (cublasHandle_t h, cublasOperation_t t, int m, int n, const float *alpha, const float *A, int lda,
        const float *x, int incx, const float *beta, float *y, int incy)) {
    return gemv(h, "Sgemv", t, m, n, SCALAR(alpha), A, lda, x, incx, SCALAR(beta), y, incy);
}

SERVED(cublasStatus_t, cublasDgemv_v2,
       (cublasHandle_t h, cublasOperation_t t, int m, int n, const double *alpha, const double *A, int lda,
        const double *x, int incx, const double *beta, double *y, int incy)) {
    return gemv(h, "Dgemv", t, m, n, SCALAR(alpha), A, lda, x, incx, SCALAR(beta), y, incy);
}

static cublasStatus_t geam(cublasHandle_t handle, const char *name, int ta, int tb, int m, int n, double alpha,
                           const void *A, int lda, double beta, const void *B, int ldb, void *C, int ldc) {
    start(name);
    struct message message = named(name);
    double numbers[] = {ta, tb, m, n, alpha, lda, beta, ldb, ldc};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add(&message, numbers[i]);
    add_pointer(&message, A);
    add_pointer(&message, B);
    add_pointer(&message, C);
    return end(finish(&message, handle->stream, NULL));
}

SERVED(cublasStatus_t, cublasSgeam,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const float *alpha,
        const float *A, int lda, const float *beta, const float *B, int ldb, float *C, int ldc)) {
    return geam(h, "Sgeam", ta, tb, m, n, SCALAR(alpha), A, lda, SCALAR(beta), B, ldb, C, ldc);
}

SERVED(cublasStatus_t, cublasDgeam,
       (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const double *alpha,
        const double *A, int lda, const double *beta, const double *B, int ldb, double *C, int ldc)) {
    return geam(h, "Dgeam", ta, tb, m, n, SCALAR(alpha), A, lda, SCALAR(beta), B, ldb, C, ldc);
}

SERVED(cublasStatus_t, cublasSaxpy_v2,
       (cublasHandle_t h, int n, const float *alpha, const float *x, int incx, float *y, int incy)) {
    return Svectors(h, "Saxpy", n, SCALAR(alpha), x, incx, y, incy, NULL);
}

SERVED(cublasStatus_t, cublasDaxpy_v2,
       (cublasHandle_t h, int n, const double *alpha, const double *x, int incx, double *y, int incy)) {
    return Dvectors(h, "Daxpy", n, SCALAR(alpha), x, incx, y, incy, NULL);
}

SERVED(cublasStatus_t, cublasSscal_v2, (cublasHandle_t h, int n, const float *alpha, float *x, int incx)) {
    return Svectors(h, "Sscal", n, SCALAR(alpha), x, incx, x, incx, NULL);
}

SERVED(cublasStatus_t, cublasDscal_v2, (cublasHandle_t h, int n, const double *alpha, double *x, int incx)) {
    return Dvectors(h, "Dscal", n, SCALAR(alpha), x, incx, x, incx, NULL);
}

SERVED(cublasStatus_t, cublasScopy_v2, (cublasHandle_t h, int n, const float *x, int incx, float *y, int incy)) {
    return Svectors(h, "Scopy", n, 0, x, incx, y, incy, NULL);
}

SERVED(cublasStatus_t, cublasDcopy_v2, (cublasHandle_t h, int n, const double *x, int incx, double *y, int incy)) {
    return Dvectors(h, "Dcopy", n, 0, x, incx, y, incy, NULL);
}

SERVED(cublasStatus_t, cublasSdot_v2,
       (cublasHandle_t h, int n, const float *x, int incx, const float *y, int incy, float *result)) {
    return Svectors(h, "Sdot", n, 0, x, incx, y, incy, result);
}

SERVED(cublasStatus_t, cublasDdot_v2,
       (cublasHandle_t h, int n, const double *x, int incx, const double *y, int incy, double *result)) {
    return Dvectors(h, "Ddot", n, 0, x, incx, y, incy, result);
}

SERVED(cublasStatus_t, cublasSnrm2_v2, (cublasHandle_t h, int n, const float *x, int incx, float *result)) {
    return Svectors(h, "Snrm2", n, 0, x, incx, x, incx, result);
}

SERVED(cublasStatus_t, cublasDnrm2_v2, (cublasHandle_t h, int n, const double *x, int incx, double *result)) {
    return Dvectors(h, "Dnrm2", n, 0, x, incx, x, incx, result);
}

SERVED(cublasStatus_t, cublasSasum_v2, (cublasHandle_t h, int n, const float *x, int incx, float *result)) {
    return Svectors(h, "Sasum", n, 0, x, incx, x, incx, result);
}

SERVED(cublasStatus_t, cublasDasum_v2, (cublasHandle_t h, int n, const double *x, int incx, double *result)) {
    return Dvectors(h, "Dasum", n, 0, x, incx, x, incx, result);
}

/* --------------------------------------------------------------------------------------------- cuRAND */

static uint64_t generators;

SERVED(curandStatus_t, curandCreateGenerator, (curandGenerator_t * generator, curandRngType_t type)) {
    if (type >= CURAND_RNG_QUASI_DEFAULT) {
        tell("labkit: quasirandom generators of cuRAND are not served without a GPU");
        return CURAND_STATUS_TYPE_ERROR;
    }
    *generator = calloc(1, sizeof **generator);
    (*generator)->number = ++generators;
    return CURAND_STATUS_SUCCESS;
}

SERVED(curandStatus_t, curandDestroyGenerator, (curandGenerator_t generator)) {
    free(generator);
    return CURAND_STATUS_SUCCESS;
}

SERVED(curandStatus_t, curandSetStream, (curandGenerator_t generator, cudaStream_t stream)) {
    generator->stream = stream;
    return CURAND_STATUS_SUCCESS;
}

static curandStatus_t random_numbers(curandGenerator_t generator, const char *name, const void *output,
                                     size_t count, double first, double second) {
    start(name);
    struct message message = named(name);
    add(&message, (double)generator->number);
    add(&message, (double)count);
    add(&message, first);
    add(&message, second);
    add_pointer(&message, output);
    return end(finish(&message, generator->stream, NULL)) ? CURAND_STATUS_LAUNCH_FAILURE : CURAND_STATUS_SUCCESS;
}

SERVED(curandStatus_t, curandSetPseudoRandomGeneratorSeed, (curandGenerator_t generator, unsigned long long seed)) {
    return random_numbers(generator, "seed", NULL, 0, (double)(seed >> 32), (double)(seed & 0xffffffffu));
}

SERVED(curandStatus_t, curandSetGeneratorOffset, (curandGenerator_t generator, unsigned long long offset)) {
    return random_numbers(generator, "offset", NULL, offset, 0, 0);
}

SERVED(curandStatus_t, curandGenerate, (curandGenerator_t generator, unsigned int *output, size_t count)) {
    return random_numbers(generator, "bits", output, count, 0, 0);
}

SERVED(curandStatus_t, curandGenerateUniform, (curandGenerator_t generator, float *output, size_t count)) {
    return random_numbers(generator, "uniform", output, count, 0, 0);
}

SERVED(curandStatus_t, curandGenerateUniformDouble,
       (curandGenerator_t generator, double *output, size_t count)) {
    return random_numbers(generator, "uniform double", output, count, 0, 0);
}

SERVED(curandStatus_t, curandGenerateNormal,
       (curandGenerator_t generator, float *output, size_t count, float mean, float deviation)) {
    return random_numbers(generator, "normal", output, count, mean, deviation);
}

SERVED(curandStatus_t, curandGenerateNormalDouble,
       (curandGenerator_t generator, double *output, size_t count, double mean, double deviation)) {
    return random_numbers(generator, "normal double", output, count, mean, deviation);
}

SERVED(curandStatus_t, curandGenerateLogNormal,
       (curandGenerator_t generator, float *output, size_t count, float mean, float deviation)) {
    return random_numbers(generator, "lognormal", output, count, mean, deviation);
}
