"""cuBLAS's calls of all three levels, and products of halves and bytes, against NumPy in float64."""

import re

import ml_dtypes
import numpy as np
import pytest

HEAD = """
#include <cstdio>
#include <cstring>
#include <vector>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define OK(call)                                                                     \\
    do {                                                                             \\
        cublasStatus_t s_ = call;                                                    \\
        if (s_) printf("line %d: %s\\n", __LINE__, cublasGetStatusString(s_));       \\
    } while (0)

// The numbers of the test: the same formula is in Python.
static double value(int i, int seed) { return ((i * 37 + seed * 11) % 17 - 8) / 4.0; }

template <class T> struct Array {
    T *data;
    int n;
    Array(int n, int seed) : n(n) {
        cudaMallocManaged(&data, n * sizeof(T));
        for (int i = 0; i < n; i++) data[i] = T((float)value(i, seed));
    }
    ~Array() { cudaFree(data); }
    operator T *() { return data; }
    void print(const char *name) {
        cudaDeviceSynchronize();
        printf("%s:", name);
        for (int i = 0; i < n; i++) printf(" %.17g", (double)(float)data[i]);
        printf("\\n");
    }
};
"""


def values(n, seed, dtype=np.float64):
    return (((np.arange(n) * 37 + seed * 11) % 17 - 8) / 4).astype(dtype)


def matrix(rows, columns, seed):
    """Return a matrix as cuBLAS has it: column by column."""
    return values(rows * columns, seed).reshape(columns, rows).T.copy()


def printed(text):
    """Return the arrays that a program prints, by name."""
    assert not re.search(r"^line \d+", text, re.M), text
    rows = (line.partition(":") for line in text.splitlines())
    return {name: np.array(numbers.split(), float) for name, _, numbers in rows}


VECTORS = (
    HEAD
    + """
int main() {
    cublasHandle_t h;
    OK(cublasCreate(&h));
    const int n = 13;
    const T alpha = 1.5, c = 0.6, s = 0.8;
    T number;
    int place;
    {
        Array<T> x(n, 1), y(n, 2);
        OK(cublasXaxpy(h, n, &alpha, x, 1, y, 1));
        y.print("axpy");
        OK(cublasXscal(h, n, &alpha, x, 1));
        x.print("scal");
        OK(cublasXswap(h, n, x, 1, y, 1));
        x.print("swap x");
        y.print("swap y");
        OK(cublasXrot(h, n, x, 1, y, 1, &c, &s));
        x.print("rot x");
        y.print("rot y");
        OK(cublasXcopy(h, n, x, 1, y, 1));
        y.print("copy");
    }
    Array<T> x(n, 1), y(n, 2);
    OK(cublasXdot(h, 6, x, 2, y, -1, &number));
    printf("dot: %.17g\\n", (double)number);
    OK(cublasXnrm2(h, n, x, 1, &number));
    printf("nrm2: %.17g\\n", (double)number);
    OK(cublasXasum(h, n, x, 1, &number));
    printf("asum: %.17g\\n", (double)number);
    OK(cublasIXamax(h, n, x, 1, &place));
    printf("amax: %d\\n", place);
    OK(cublasIXamin(h, n, x, 1, &place));
    printf("amin: %d\\n", place);
    T *device;  // results may stay on the device, too
    cudaMalloc(&device, sizeof(T));
    OK(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
    OK(cublasXdot(h, n, x, 1, y, 1, device));
    cudaMemcpy(&number, device, sizeof(T), cudaMemcpyDeviceToHost);
    printf("dot there: %.17g\\n", (double)number);
    cudaFree(device);
    OK(cublasDestroy(h));
}
"""
)
MATRICES = (
    HEAD
    + """
int main() {
    cublasHandle_t h;
    OK(cublasCreate(&h));
    cublasMath_t math;
    OK(cublasSetMathMode(h, CUBLAS_PEDANTIC_MATH));
    OK(cublasGetMathMode(h, &math));
    printf("math: %d\\n", (int)math);
    const int m = 5, n = 4, k = 3;
    const T alpha = 1.5, beta = -0.5, one = 1;
    const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER, upper = CUBLAS_FILL_MODE_UPPER;
    {
        Array<T> A(m * n, 1), x(n, 2), y(m, 3);
        OK(cublasXgemv(h, CUBLAS_OP_N, m, n, &alpha, A, m, x, 1, &beta, y, 1));
        y.print("gemv");
        OK(cublasXger(h, m, n, &alpha, y, 1, x, 1, A, m));
        A.print("ger");
    }
    {
        Array<T> A(n * n, 1), x(n, 2), y(n, 3);
        for (int i = 0; i < n; i++) A[i + i * n] = 4;
        OK(cublasXsymv(h, lower, n, &alpha, A, n, x, 1, &beta, y, 1));
        y.print("symv");
        OK(cublasXtrmv(h, upper, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, n, A, n, x, 1));
        x.print("trmv");
        OK(cublasXtrsv(h, upper, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, n, A, n, x, 1));
        x.print("trsv");
        Array<T> B(n * m, 4);
        OK(cublasXtrsm(h, CUBLAS_SIDE_LEFT, lower, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, m, &alpha, A, n, B,
            n));
        B.print("trsm left");
        Array<T> D(m * n, 5);
        OK(cublasXtrsm(h, CUBLAS_SIDE_RIGHT, upper, CUBLAS_OP_T, CUBLAS_DIAG_UNIT, m, n, &one, A, n, D, m));
        D.print("trsm right");
        Array<T> C(m * n, 6), E(m * n, 7);
        OK(cublasXsymm(h, CUBLAS_SIDE_RIGHT, upper, m, n, &alpha, A, n, E, m, &beta, C, m));
        C.print("symm");
        Array<T> G(m * n, 8);
        OK(cublasXdgmm(h, CUBLAS_SIDE_RIGHT, m, n, E, m, y, 1, G, m));
        G.print("dgmm");
    }
    {
        Array<T> A(m * k, 1), C(m * m, 2);
        OK(cublasXsyrk(h, lower, CUBLAS_OP_N, m, k, &alpha, A, m, &beta, C, m));
        C.print("syrk");
    }
    {
        Array<T> A(3 * m * k, 1), B(3 * k * n, 2), C(3 * m * n, 3), D(3 * m * n, 4);
        OK(cublasXgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &alpha, A, m, m * k, B, n, k * n,
            &beta,
                                     C, m, m * n, 3));
        C.print("strided");
        T **pointers;
        cudaMallocManaged(&pointers, 9 * sizeof(T *));
        for (int i = 0; i < 3; i++) {
            pointers[i] = A + i * m * k;
            pointers[3 + i] = B + i * k * n;
            pointers[6 + i] = D + (2 - i) * m * n;
        }
        OK(cublasXgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &alpha, pointers, m, pointers + 3, n,
            &beta,
                              pointers + 6, m, 3));
        D.print("batched");
        cudaFree(pointers);
    }
    OK(cublasDestroy(h));
}
"""
)


def named(source, letter):
    """Return the program for float (S) or double (D)."""
    source = source.replace("cublasIX", f"cublasI{letter.lower()}").replace("cublasX", f"cublas{letter}")
    return source.replace("#define OK", f"using T = {'float' if letter == 'S' else 'double'};\n#define OK")


@pytest.mark.parametrize("letter", "SD")
def test_vectors_are_what_numpy_makes_of_them(built, letter):
    out, told, code = built(named(VECTORS, letter)).run()
    assert (told, code) == ("", 0)
    found = printed(out)
    x, y = values(13, 1), values(13, 2)
    added = 1.5 * x + y
    turned = 0.6 * added + 0.8 * 1.5 * x, 0.6 * 1.5 * x - 0.8 * added
    expected = {
        "axpy": added,
        "scal": 1.5 * x,
        "swap x": added,
        "swap y": 1.5 * x,
        "rot x": turned[0],
        "rot y": turned[1],
        "copy": turned[0],
        "dot": x[:12:2] @ y[5::-1],
        "nrm2": np.sqrt(x @ x),
        "asum": np.abs(x).sum(),
        "amax": np.argmax(np.abs(x)) + 1,
        "amin": np.argmin(np.abs(x)) + 1,
        "dot there": x @ y,
    }
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        np.testing.assert_allclose(found[name], np.atleast_1d(numbers), rtol=2e-6, atol=1e-6, err_msg=name)


def expected_matrices():
    m, n, k = 5, 4, 3
    alpha, beta = 1.5, -0.5
    A, x = matrix(m, n, 1), values(n, 2)
    gemv = alpha * A @ x + beta * values(m, 3)
    S = matrix(n, n, 1)
    np.fill_diagonal(S, 4)
    lower, upper = np.tril(S), np.triu(S)
    by_lower, by_upper = lower + np.tril(S, -1).T, upper + np.triu(S, 1).T
    symv = alpha * by_lower @ x + beta * values(n, 3)
    unit = np.triu(S, 1) + np.eye(n)
    E = matrix(m, n, 7)
    C = matrix(m, m, 2)
    K = matrix(m, k, 1)
    syrk = np.where(np.tri(m, dtype=bool), alpha * K @ K.T + beta * C, C)
    As = values(3 * m * k, 1).reshape(3, k, m).transpose(0, 2, 1)
    Bs = values(3 * k * n, 2).reshape(3, k, n)
    before = [values(3 * m * n, seed).reshape(3, n, m).transpose(0, 2, 1) for seed in (3, 4)]
    strided = alpha * As @ Bs + beta * before[0]
    batched = (alpha * As @ Bs)[::-1] + beta * before[1]
    columns = {
        "gemv": gemv,
        "ger": A + alpha * np.outer(gemv, x),
        "symv": symv,
        "trmv": upper.T @ x,
        "trsv": x,
        "trsm left": np.linalg.solve(lower, alpha * matrix(n, m, 4)),
        "trsm right": matrix(m, n, 5) @ np.linalg.inv(unit.T),
        "symm": alpha * E @ by_upper + beta * matrix(m, n, 6),
        "dgmm": E * symv,
        "syrk": syrk,
    }
    flat = {name: each.T.ravel() for name, each in columns.items()}
    flat |= {"strided": strided.transpose(0, 2, 1).ravel(), "batched": batched.transpose(0, 2, 1).ravel()}
    return flat | {"math": np.array([2.0])}


@pytest.mark.parametrize("letter", "SD")
def test_matrices_are_what_numpy_makes_of_them(built, letter):
    out, told, code = built(named(MATRICES, letter)).run()
    assert (told, code) == ("", 0)
    found, expected = printed(out), expected_matrices()
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        np.testing.assert_allclose(found[name], numbers, rtol=1e-5, atol=2e-5, err_msg=name)


MIXED = (
    HEAD
    + """
int main() {
    cublasHandle_t h;
    OK(cublasCreate(&h));
    const int m = 6, n = 5, k = 7;
    const float alpha = 1.25f, beta = 0.5f;
    const cublasGemmAlgo_t any = CUBLAS_GEMM_DEFAULT;
    const cublasOperation_t N = CUBLAS_OP_N, T = CUBLAS_OP_T;
    Array<__half> A(m * k, 1), B(k * n, 2), C(m * n, 3), D(m * n, 4);
    Array<float> F(m * n, 5), G(m * n, 6);
    OK(cublasGemmEx(h, N, N, m, n, k, &alpha, A, CUDA_R_16F, m, B, CUDA_R_16F, k, &beta, F, CUDA_R_32F, m,
                    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP));
    F.print("half to float");
    OK(cublasGemmEx(h, T, N, m, n, k, &alpha, A, CUDA_R_16F, k, B, CUDA_R_16F, k, &beta, C, CUDA_R_16F, m,
                    CUDA_R_32F, any));  // the type of sums as until CUDA 10
    C.print("half");
    const __half one_half = __float2half(1.25f), half_half = __float2half(0.5f);
    OK(cublasHgemm(h, N, N, m, n, k, &one_half, A, m, B, k, &half_half, D, m));
    D.print("Hgemm");
    Array<__nv_bfloat16> P(m * k, 1), Q(k * n, 2), R(m * n, 3);
    OK(cublasGemmEx(h, N, N, m, n, k, &alpha, P, CUDA_R_16BF, m, Q, CUDA_R_16BF, k, &beta, R, CUDA_R_16BF, m,
                    CUBLAS_COMPUTE_32F, any));
    R.print("bfloat16");
    Array<float> X(m * k, 1), Y(k * n, 2);
    OK(cublasGemmEx(h, N, N, m, n, k, &alpha, X, CUDA_R_32F, m, Y, CUDA_R_32F, k, &beta, G, CUDA_R_32F, m,
                    CUBLAS_COMPUTE_32F_FAST_TF32, any));
    G.print("float");
    signed char *bytes;
    int *sums;
    cudaMallocManaged(&bytes, m * k + k * n);
    cudaMallocManaged(&sums, m * n * sizeof(int));
    for (int i = 0; i < m * k + k * n; i++) bytes[i] = (signed char)(i * 37 % 255 - 127);
    const int whole = 1, nothing = 0;
    OK(cublasGemmEx(h, N, N, m, n, k, &whole, bytes, CUDA_R_8I, m, bytes + m * k, CUDA_R_8I, k, &nothing,
        sums,
                    CUDA_R_32I, m, CUBLAS_COMPUTE_32I, any));
    cudaDeviceSynchronize();
    printf("bytes:");
    for (int i = 0; i < m * n; i++) printf(" %d", sums[i]);
    printf("\\n");
    Array<__half> As(2 * m * k, 1), Bs(2 * k * n, 2);
    Array<float> Cs(2 * m * n, 3), Ds(2 * m * n, 3);
    OK(cublasGemmStridedBatchedEx(h, N, N, m, n, k, &alpha, As, CUDA_R_16F, m, m * k, Bs, CUDA_R_16F, k,
        k * n,
                                  &beta, Cs, CUDA_R_32F, m, m * n, 2, CUBLAS_COMPUTE_32F, any));
    Cs.print("strided");
    void **pointers;
    cudaMallocManaged(&pointers, 6 * sizeof(void *));
    for (int i = 0; i < 2; i++) {
        pointers[i] = As + i * m * k;
        pointers[2 + i] = Bs + i * k * n;
        pointers[4 + i] = Ds + i * m * n;
    }
    OK(cublasGemmBatchedEx(h, N, N, m, n, k, &alpha, pointers, CUDA_R_16F, m, pointers + 2, CUDA_R_16F, k,
        &beta,
                           pointers + 4, CUDA_R_32F, m, 2, CUBLAS_COMPUTE_32F, any));
    Ds.print("batched");
    cublasStatus_t mixed = cublasGemmEx(h, N, N, m, n, k, &alpha, A, CUDA_R_16F, m, Y, CUDA_R_32F, k, &beta,
        F,
                                        CUDA_R_32F, m, CUBLAS_COMPUTE_32F, any);
    printf("refused: %d\\n", (int)mixed);
    cudaFree(bytes);
    cudaFree(sums);
    cudaFree(pointers);
    OK(cublasDestroy(h));
}
"""
)


def test_products_of_halves_and_bytes(built):
    out, told, code = built(MIXED).run()
    assert (told, code) == ("", 0)
    found = printed(out)
    m, n, k = 6, 5, 7

    def product(seed, A=None):
        A = matrix(m, k, 1) if A is None else A
        return (1.25 * A @ matrix(k, n, 2) + 0.5 * matrix(m, n, seed)).T.ravel()

    half, brain = np.float16, ml_dtypes.bfloat16
    every = (np.arange(m * k + k * n) * 37 % 255 - 127).astype(int)
    left, right = every[: m * k].reshape(k, m).T, every[m * k :].reshape(n, k).T
    As = values(2 * m * k, 1).reshape(2, k, m).transpose(0, 2, 1)
    Bs = values(2 * k * n, 2).reshape(2, n, k).transpose(0, 2, 1)
    before = values(2 * m * n, 3).reshape(2, n, m).transpose(0, 2, 1)
    both = (1.25 * As @ Bs + 0.5 * before).transpose(0, 2, 1).ravel()
    expected = {
        "half to float": product(5),
        "half": product(3, values(m * k, 1).reshape(m, k)).astype(half),
        "Hgemm": product(4).astype(half),
        "bfloat16": product(3).astype(brain),
        "float": product(6),
        "bytes": (left @ right).T.ravel(),
        "strided": both,
        "batched": both,
        "refused": np.array([15]),
    }
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():  # all are sums of few multiples of 1/64: exact in float32
        np.testing.assert_array_equal(found[name], numbers.astype(float), err_msg=name)


WRONG = (
    HEAD
    + """
int main() {
    cublasHandle_t h;
    cublasCreate(&h);
    Array<float> A(64, 1);
    const float one = 1;
    cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, A, 4, A, 8, &one, A, 8);
    cublasDestroy(h);
}
"""
)


def test_a_failed_call_is_reported_with_its_line(nvcc, built, monkeypatch):
    program = built(WRONG)
    line = WRONG[: WRONG.index("cublasSgemm")].count("\n") + 1
    _, told, _ = program.run(LABKIT_PROGRAM="check")
    assert f"main.cu:{line}: cublasSgemm_v2 failed: CUBLAS_STATUS_INVALID_VALUE" in told
    assert "a matrix of 8 x 8 with columns 4 elements apart" in told
