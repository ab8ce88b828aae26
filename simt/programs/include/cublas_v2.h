/* The part of cuBLAS's interface that labkit serves without a GPU, for machines without NVIDIA's own header.
   A function that is not here is not served: the compiler names it. */
#ifndef LABKIT_CUBLAS_V2_H
#define LABKIT_CUBLAS_V2_H
#include <cuda_runtime_api.h>
#ifdef __cplusplus
extern "C" {
#endif
#define CUBLAS_VERSION 130000

typedef struct cublasContext *cublasHandle_t;
typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
const char *cublasGetStatusName(cublasStatus_t status);
const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasSetVector(int n, int size, const void *x, int incx, void *y, int incy);
cublasStatus_t cublasGetVector(int n, int size, const void *x, int incx, void *y, int incy);
cublasStatus_t cublasSetMatrix(int rows, int cols, int size, const void *A, int lda, void *B, int ldb);
cublasStatus_t cublasGetMatrix(int rows, int cols, int size, const void *A, int lda, void *B, int ldb);

#define LABKIT_CUBLAS_OF(T, letter)                                                                          \
    cublasStatus_t cublas##letter##gemm_v2(cublasHandle_t handle, cublasOperation_t transa,                  \
                                           cublasOperation_t transb, int m, int n, int k, const T *alpha,    \
                                           const T *A, int lda, const T *B, int ldb, const T *beta, T *C,    \
                                           int ldc);                                                         \
    cublasStatus_t cublas##letter##gemmStridedBatched(                                                       \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,      \
        const T *alpha, const T *A, int lda, long long strideA, const T *B, int ldb, long long strideB,      \
        const T *beta, T *C, int ldc, long long strideC, int count);                                         \
    cublasStatus_t cublas##letter##gemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n,     \
                                           const T *alpha, const T *A, int lda, const T *x, int incx,        \
                                           const T *beta, T *y, int incy);                                   \
    cublasStatus_t cublas##letter##geam(cublasHandle_t handle, cublasOperation_t transa,                     \
                                        cublasOperation_t transb, int m, int n, const T *alpha, const T *A,  \
                                        int lda, const T *beta, const T *B, int ldb, T *C, int ldc);         \
    cublasStatus_t cublas##letter##axpy_v2(cublasHandle_t handle, int n, const T *alpha, const T *x,         \
                                           int incx, T *y, int incy);                                        \
    cublasStatus_t cublas##letter##scal_v2(cublasHandle_t handle, int n, const T *alpha, T *x, int incx);    \
    cublasStatus_t cublas##letter##copy_v2(cublasHandle_t handle, int n, const T *x, int incx, T *y,         \
                                           int incy);                                                        \
    cublasStatus_t cublas##letter##dot_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y,    \
                                          int incy, T *result);                                              \
    cublasStatus_t cublas##letter##nrm2_v2(cublasHandle_t handle, int n, const T *x, int incx, T *result);   \
    cublasStatus_t cublas##letter##asum_v2(cublasHandle_t handle, int n, const T *x, int incx, T *result);
LABKIT_CUBLAS_OF(float, S)
LABKIT_CUBLAS_OF(double, D)

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasSgemm cublasSgemm_v2
#define cublasDgemm cublasDgemm_v2
#define cublasSgemv cublasSgemv_v2
#define cublasDgemv cublasDgemv_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasDaxpy cublasDaxpy_v2
#define cublasSscal cublasSscal_v2
#define cublasDscal cublasDscal_v2
#define cublasScopy cublasScopy_v2
#define cublasDcopy cublasDcopy_v2
#define cublasSdot cublasSdot_v2
#define cublasDdot cublasDdot_v2
#define cublasSnrm2 cublasSnrm2_v2
#define cublasDnrm2 cublasDnrm2_v2
#define cublasSasum cublasSasum_v2
#define cublasDasum cublasDasum_v2
#define CUBLAS_API_H_ /* what helpers of NVIDIA's samples ask for */
#ifdef __cplusplus
}
#endif
#endif
