"""Products of matrices by warps: WMMA, ldmatrix and mma.sync, against NumPy in float64."""

import itertools

import numpy as np
import pytest

import simt

SHAPES = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
WMMA = """#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
template <int M, int N, int K, class AB, class LA, class LB, class T>
__global__ void f(const AB* a, const AB* b, const T* c, T* d, int lda, int ldb) {
    __shared__ AB tile[M * K];
    for (int i = threadIdx.x; i < M * K; i += 32) tile[i] = a[i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, M, N, K, AB, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, AB, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, T> fc;
    wmma::load_matrix_sync(fa, tile, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(fc, c, M, wmma::mem_col_major);
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] = fc.x[i] * T(2.f);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d, fc, N, wmma::mem_row_major);
}"""


@pytest.mark.parametrize("m, n, k", SHAPES)
def test_products_of_matrices_in_half_precision(m, n, k):
    orders, types = ("row", "col"), ("float", "half")
    names = {
        (x, y, t): f"f<{m}, {n}, {k}, half, wmma::{x}_major, wmma::{y}_major, {t}>"
        for x, y, t in itertools.product(orders, orders, types)
    }
    module = simt.RawModule(code=WMMA, name_expressions=tuple(names.values()))
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(k, n)).astype(np.float16)
    for (x, y, type_), name in list(names.items())[:: 1 if (m, n) == (16, 16) else 3]:
        dtype = {"float": np.float32, "half": np.float16}[type_]
        c, d = rng.normal(size=(m, n)).astype(dtype), np.zeros((m, n), dtype)
        given = (
            a if x == "row" else np.ascontiguousarray(a.T),
            b if y == "row" else np.ascontiguousarray(b.T),
        )
        strides = np.int32(k if x == "row" else m), np.int32(n if y == "row" else k)
        module.get_function(name)(1, 32, (*given, np.ascontiguousarray(c.T), d, *strides))
        exact = a.astype(float) @ b.astype(float) + 2 * c.astype(float)
        # k + 1 roundings of partial sums at the most, each half a step of the largest
        largest = np.abs(a.astype(float)) @ np.abs(b.astype(float)) + 2 * np.abs(c.astype(float))
        bound = largest * (k + 1) * 2.0**-24 + (np.abs(exact) * 2.0**-11 if type_ == "half" else 0)
        assert (np.abs(d - exact) <= bound).all(), name


def test_products_of_bfloat16_and_tf32():
    source = (
        WMMA
        + """
    extern "C" __global__ void g(const float* a, const float* b, float* d) {
        wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
        wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
        wmma::fill_fragment(fc, 0.f);
        wmma::load_matrix_sync(fa, a, 8); wmma::load_matrix_sync(fb, b, 8);
        for (int i = 0; i < fb.num_elements; i++) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
        wmma::mma_sync(fc, fa, fb, fc);
        wmma::store_matrix_sync(d, fc, 16, wmma::mem_row_major);
    }"""
    )
    name = "f<16, 16, 16, __nv_bfloat16, wmma::row_major, wmma::row_major, float>"
    module = simt.RawModule(code=source, name_expressions=(name,))
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 16, 16)).astype(np.float32)
    bits = [(v.view(np.uint32) >> 16).astype(np.uint16) for v in (x, y)]
    exact = np.matmul(*((v.astype(np.uint32) << 16).view(np.float32).astype(float) for v in bits))
    d = np.zeros((16, 16), np.float32)
    module.get_function(name)(1, 32, (*bits, np.zeros_like(d), d, np.int32(16), np.int32(16)))
    np.testing.assert_allclose(d, exact, rtol=0, atol=2e-5)

    a, b = x.reshape(-1)[:128].reshape(16, 8), y.reshape(-1)[:128].reshape(16, 8)
    module.get_function("g")(1, 32, (np.ascontiguousarray(a), np.ascontiguousarray(b), d))
    cut = (a.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(float)  # the hardware cuts 13 bits off
    near = ((b.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32).astype(float)
    np.testing.assert_allclose(d, cut @ near.T, rtol=0, atol=1e-5)


def test_ldmatrix_and_mma():
    source = """#include <cuda_fp16.h>
    extern "C" __global__ void f(const half* a, const half* b, float* d) {
        __shared__ half sa[16][16], sb[16][8];
        int t = threadIdx.x; unsigned ra[4], rb[2]; float c[4] = {1, 1, 1, 1};
        for (int i = t; i < 256; i += 32) sa[i / 16][i % 16] = a[i];
        for (int i = t; i < 128; i += 32) sb[i / 8][i % 8] = b[i];
        __syncwarp();
        unsigned pa = __cvta_generic_to_shared(&sa[t % 16][t / 16 * 8]);
        unsigned pb = __cvta_generic_to_shared(&sb[t % 16][0]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
            : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7},"
            " {%8,%9}, {%0,%1,%2,%3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
        asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(rb[0]) : "r"(rb[0]));
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" :: "r"(pb), "r"(rb[0]));
        __syncwarp();
        for (int i = t; i < 64; i += 32) d[128 + i] = __half2float(sb[i / 8][i % 8]);
        for (int i = 0; i < 4; i++) d[(t / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = c[i];
    }"""
    rng = np.random.default_rng(7)
    a, b = rng.integers(-8, 9, (16, 16)).astype(np.float16), rng.integers(-8, 9, (16, 8)).astype(np.float16)
    d = np.zeros((24, 8), np.float32)
    simt.RawModule(code=source).get_function("f")(1, 32, (a, b, d))
    np.testing.assert_array_equal(d[:16], a.astype(np.float32) @ b.astype(np.float32) + 1)
    np.testing.assert_array_equal(d[16:], b[:8])


@pytest.mark.parametrize("saturates", ["false", "true"])
@pytest.mark.parametrize("m, n, k", SHAPES)
def test_products_of_bytes(m, n, k, saturates):
    source = """#include <mma.h>
    using namespace nvcuda;
    template <int M, int N, int K, class T> __global__ void f(const T* a, const T* b, const int* c, int* d) {
        wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::row_major> fb;
        wmma::fragment<wmma::accumulator, M, N, K, int> fc;
        wmma::load_matrix_sync(fa, a, K); wmma::load_matrix_sync(fb, b, N);
        wmma::load_matrix_sync(fc, c, N, wmma::mem_row_major);
        wmma::mma_sync(fc, fa, fb, fc, SATURATES);
        wmma::store_matrix_sync(d, fc, N, wmma::mem_row_major);
    }"""
    names = {np.int8: f"f<{m}, {n}, {k}, signed char>", np.uint8: f"f<{m}, {n}, {k}, unsigned char>"}
    module = simt.RawModule(
        code=source, options=[f"-DSATURATES={saturates}"], name_expressions=list(names.values())
    )
    rng = np.random.default_rng(8)
    for dtype, name in names.items():
        a, b = (rng.integers(0, 256, shape).astype(np.uint8).view(dtype) for shape in ((m, k), (k, n)))
        c, d = rng.choice([2**31 - 9, -(2**31) + 9, 5], (m, n)).astype(np.int32), np.zeros((m, n), np.int32)
        module.get_function(name)(1, 32, (a, b, c, d))
        exact = a.astype(np.int64) @ b.astype(np.int64) + c
        right = exact.clip(-(2**31), 2**31 - 1) if saturates == "true" else exact
        np.testing.assert_array_equal(d, right.astype(np.int32))
