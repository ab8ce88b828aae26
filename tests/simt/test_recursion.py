"""Functions that call themselves, or others by pointer, against the same functions in Python."""

import numpy as np
import pytest

import simt

THREADS = range(64)


def run(source, threads, *args, name="f"):
    simt.RawModule(code=source).get_function(name)(1, threads, args)
    return args


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def ackermann(m, n):
    return n + 1 if m == 0 else ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def test_two_calls_of_itself():
    source = """__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
    extern "C" __global__ void f(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 13); }"""
    (out,) = run(source, 64, np.zeros(64, np.int32))
    assert out.tolist() == [fibonacci(t % 13) for t in THREADS]


def test_a_call_as_an_argument_of_itself():
    source = """__device__ int ackermann(int m, int n) {
        return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
    }
    extern "C" __global__ void f(int* out) {
        out[threadIdx.x] = ackermann(threadIdx.x % 3, threadIdx.x % 4);
    }"""
    (out,) = run(source, 64, np.zeros(64, np.int32))
    assert out.tolist() == [ackermann(t % 3, t % 4) for t in THREADS]


def test_functions_that_call_each_other():
    source = """__device__ int odd(int n);
    __device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
    __device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
    extern "C" __global__ void f(int* out) {
        int t = threadIdx.x % 20;
        out[threadIdx.x] = even(t) + 2 * odd(t / 2);
    }"""
    (out,) = run(source, 64, np.zeros(64, np.int32))
    assert out.tolist() == [(t % 20 % 2 == 0) + 2 * (t % 20 // 2 % 2) for t in THREADS]


def test_quicksort_in_global_memory():
    source = """__device__ void sort(int* a, int first, int last) {
        if (first >= last) return;
        int pivot = a[last], i = first;
        for (int j = first; j < last; j++)
            if (a[j] < pivot) { int t = a[i]; a[i] = a[j]; a[j] = t; i++; }
        int t = a[i]; a[i] = a[last]; a[last] = t;
        sort(a, first, i - 1);
        sort(a, i + 1, last);
    }
    extern "C" __global__ void f(int* data) { sort(data + 16 * threadIdx.x, 0, 15); }"""
    data = np.random.default_rng(1).integers(0, 100, (33, 16), dtype=np.int32)
    (out,) = run(source, 33, data.copy())
    np.testing.assert_array_equal(out, np.sort(data, axis=1))


def test_structures_and_arrays_of_each_call():
    """A local array of one call must not be that of another, and structures go in and out by value."""
    source = """struct Place { float x, y; double z; };
    __device__ __noinline__ Place walk(Place p, int n, const float* steps) {
        if (n == 0) return p;
        float mine[4];
        for (int i = 0; i < 4; i++) mine[i] = steps[i] * n;
        Place q = walk({p.x + mine[n & 3], 2 * p.y, p.z + 1}, n - 1, steps);
        q.y += mine[(n + 1) & 3];
        return q;
    }
    extern "C" __global__ void f(const float* steps, Place* out) {
        out[threadIdx.x] = walk({(float)threadIdx.x, 1, 0}, threadIdx.x % 5, steps);
    }"""
    steps = np.arange(4, dtype=np.float32) + 0.5

    def walk(x, y, z, n):
        if n == 0:
            return x, y, z
        mine = [float(step) * n for step in steps]
        x, y, z = walk(x + mine[n & 3], 2 * y, z + 1, n - 1)
        return x, y + mine[(n + 1) & 3], z

    out = np.zeros(64, [("x", "f4"), ("y", "f4"), ("z", "f8")])
    run(source, 64, steps, out)
    assert [tuple(row) for row in out.tolist()] == [walk(float(t), 1.0, 0.0, t % 5) for t in THREADS]


def test_too_deep_is_named_with_its_line():
    source = """__device__ __noinline__ int sum(const int* x, int n) {
        return n == 0 ? 0 : x[n - 1] ^ 3 * sum(x, n - 1);
    }
    extern "C" __global__ void f(const int* x, int* out, int n) { out[0] = sum(x, n); }"""
    x = np.arange(10000, dtype=np.int32)
    *_, out, _ = run(source, 1, x, np.zeros(1, np.int32), np.int32(10))
    expected = 0
    for value in range(10):
        expected = value ^ 3 * expected
    assert out[0] == expected
    with pytest.raises(simt.SimtError, match=r"line 2: the recursion is too deep for a stack of 1024 bytes"):
        run(source, 1, x, out, np.int32(10000))


def test_function_pointers():
    source = """__device__ __noinline__ int twice(int a) { return 2 * a; }
    __device__ __noinline__ int next(int a) { return a + 1; }
    __device__ __noinline__ int factorial(int a) { return a < 2 ? 1 : a * factorial(a - 1); }
    __device__ int (*table[])(int) = {twice, next, factorial};
    __device__ __noinline__ int both(int (*f)(int), int (*g)(int), int x) { return f(g(x)); }
    extern "C" __global__ void f(int* out) {
        int t = threadIdx.x;
        out[t] = both(table[t % 3], table[t / 3 % 3], t % 4);
    }"""
    (out,) = run(source, 64, np.zeros(64, np.int32))
    table = [lambda a: 2 * a, lambda a: a + 1, lambda a: int(np.prod(range(1, a + 1)))]
    assert out.tolist() == [table[t % 3](table[t // 3 % 3](t % 4)) for t in THREADS]


def test_virtual_functions():
    source = """struct Shape { float size; __device__ Shape(float s) : size(s) {}
                   __device__ virtual float area() const { return 0; } };
    struct Square : Shape { using Shape::Shape;
                   __device__ float area() const override { return size * size; } };
    struct Circle : Shape { using Shape::Shape;
                   __device__ float area() const override { return 3 * size; } };
    extern "C" __global__ void f(float* out) {
        int t = threadIdx.x;
        Square square(t); Circle circle(t); Shape none(t);
        const Shape* shapes[3] = {&square, &circle, &none};
        out[t] = shapes[t % 3]->area();
    }"""
    (out,) = run(source, 64, np.zeros(64, np.float32))
    assert out.tolist() == [[t * t, 3 * t, 0][t % 3] for t in THREADS]


def test_a_null_function_pointer_is_named():
    source = """__device__ __noinline__ int twice(int a) { return 2 * a; }
    __device__ int (*table[2])(int) = {twice, nullptr};
    extern "C" __global__ void f(int* out) {
        out[0] = table[out[0]](5);
    }"""
    assert run(source, 1, np.zeros(1, np.int32))[0][0] == 10
    with pytest.raises(simt.SimtError, match=r"line 4: a call through a pointer that points to no function"):
        run(source, 1, np.ones(1, np.int32))
