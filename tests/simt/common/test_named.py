"""Names of parameters in CUDA C++ and C, and of the elements that an access goes to."""

import numpy as np
import pytest

from simt.common.buffer_names import Named, named_array, parameter_name, parameter_names


@pytest.mark.parametrize(
    ("declaration", "name"),
    [
        ("const float* A", "A"),
        ("const float *__restrict__ A", "A"),
        ("unsigned int n", "n"),
        ("int n = 3", "n"),
        ("float A[]", "A"),
        ("float A[32][ N ]", "A"),
        ("float (*A)[32]", "A"),
        ("float (*const A)[32]", "A"),
        ("Pair<float, 3> &pair", "pair"),
        ("void", ""),
        ("float *", ""),
        ("", ""),
    ],
)
def test_the_name_in_a_declaration(declaration, name):
    assert parameter_name(declaration) == name


@pytest.mark.parametrize(
    ("source", "kernel", "names"),
    [
        ('extern "C" __global__ void f(float* x, int n) {}', "f", ["x", "n"]),
        ("__global__ void __launch_bounds__(256) f(float* x, int n) {}", "f", ["x", "n"]),
        (
            "// __global__ void f(int no, int no2)\n__global__ void f(float* /* in */ x, int n) {}",
            "f",
            ["x", "n"],
        ),
        ("template <int T> __global__ void f(Pair<int, T> x, int n) {}", "f<16>", ["x", "n"]),
        ("namespace a { __global__ void f(float* x, int n) {} }", "a::f", ["x", "n"]),
        (
            "__device__ void f(float a, int b) {}\n__global__ void g(float* x, int n) { f(1, 2); }",
            "g",
            ["x", "n"],
        ),
        (
            "#if A\n__global__ void f(int a, int b) {}\n#else\n__global__ void f(int c, int b) {}\n#endif",
            "f",
            [],
        ),
        ("__global__ void f(float* x) {}", "f", []),
        ("__global__ void f(float*, int) {}", "f", []),
        ("#define F(name) __global__ void name(int a, int b) {}\nF(f)", "f", []),
        ("__global__ void f(float* x, int n", "f", []),
    ],
)
def test_the_names_of_a_kernels_parameters(source, kernel, names):
    assert parameter_names(source, kernel, 2) == names


ARRAY, MATRIX = np.zeros(5, np.float32), np.zeros((3, 4), np.float64)
X, A, BYTES = named_array(ARRAY, 0, "x"), named_array(MATRIX, 1, "A"), Named("the 16 bytes", 16)


@pytest.mark.parametrize(
    ("memory", "offset", "size", "text"),
    [
        (X, 20, 4, "`x[5]` is past the end of `x`, which has 5 elements"),
        (X, -4, 4, "`x[-1]` is before the start of `x`, which has 5 elements"),
        (named_array(ARRAY[:1], 0, "x"), 4, 4, "`x[1]` is past the end of `x`, which has 1 element"),
        (X, 20, 0, "`x[5]` is past the end of `x`, which has 5 elements"),
        (X, 16, 16, "elements 4 to 7 (float32) reach past the end of `x`, which has 5 elements"),
        (X, 18, 4, "it ends 2 bytes past the end of `x`"),
        (A, 96, 8, "`A[12]` (`A[3, 0]`) is past the end of `A`, which has 3 x 4 elements"),
        (A, -8, 8, "`A[-1]` (`A[-1, 3]`) is before the start of `A`, which has 3 x 4 elements"),
        (named_array(MATRIX, 1), 96, 8, "element 12 is past the end of argument 1 (float64, shape (3, 4))"),
        (BYTES, 16, 4, "it ends 4 bytes past the end of the 16 bytes"),
        (BYTES, 16, 0, "past the end of the 16 bytes"),
        (BYTES, -1, 1, "1 byte before the start of the 16 bytes"),
    ],
)
def test_where_an_access_is(memory, offset, size, text):
    assert memory.outside(offset, size) == text
