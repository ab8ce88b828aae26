"""A kernel of a module allocates memory, and others of it use and free it, in the simulator from Python."""

import numpy as np

import simt

SOURCE = r"""
extern "C" __global__ void make(int** blocks, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 2) return;
    blocks[i] = new int[n];
    for (int j = 0; blocks[i] && j < n; j++) blocks[i][j] = i + j;
}
extern "C" __global__ void use(int** blocks, int* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[i] = 0;
    for (int j = 0; blocks[i] && j < n; j++) sums[i] += blocks[i][j];
    delete[] blocks[i];
}
"""
THREADS, N = 96, 1000


def test_blocks_of_all_threads_lie_apart_and_are_used_again():
    module = simt.RawModule(code=SOURCE)
    make, use = module.get_function("make"), module.get_function("use")
    expected = np.where(np.arange(THREADS) % 3 == 2, 0, np.arange(THREADS) * N + N * (N - 1) // 2)
    for _ in range(40):  # 10 MB in all, from a heap of 8
        blocks, sums = np.zeros(THREADS, np.uint64), np.full(THREADS, -1, np.int32)
        make((3,), (32,), (blocks, np.int32(N)))
        given = np.sort(blocks[blocks > 0])
        assert len(given) == 64
        assert np.diff(given).min() >= 4 * N
        assert not (given % 16).any()
        use((3,), (32,), (blocks, sums, np.int32(N)))
        np.testing.assert_array_equal(sums, expected)


def test_a_heap_that_is_full_gives_null_and_a_new_start_empties_it():
    module = simt.RawModule(code=SOURCE)
    make = module.get_function("make")
    counts = []
    for _ in range(2):
        blocks = np.zeros(THREADS, np.uint64)
        make((3,), (32,), (blocks, np.int32(50_000)))
        counts.append(np.count_nonzero(blocks))
        module.restart()
    assert counts[0] == counts[1]
    assert 0.8 * 2**23 <= counts[0] * 200_000 <= 2**23


def test_kernels_that_allocate_are_checked_and_profiled():
    module = simt.RawModule(code=SOURCE)
    make = module.get_function("make")
    blocks = np.zeros(32, np.uint64)
    assert make.check((1,), (32,), (blocks, np.int32(10))) == []
    assert make.profile((1,), (32,), (blocks, np.int32(10))).lines.line.max() == 6
    findings = make.check((1,), (32,), (blocks[:30], np.int32(10)))  # thread 30 writes behind the array
    assert {(each.kind, each.line) for each in findings} >= {("out of bounds", 5)}
    assert {each.kind for each in findings} == {"out of bounds"}
