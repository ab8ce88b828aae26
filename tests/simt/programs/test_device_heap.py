"""malloc, free, new and delete in kernels: blocks outlast kernels, come back, and end with NULL."""

import numpy as np

LISTS = """
#include <cstdio>
#include <cstdlib>

struct Node {
    int value;
    Node *next;
    __device__ Node(int value, Node *next) : value(value), next(next) {}
};

__global__ void build(Node **lists, char **texts) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    Node *first = nullptr;
    for (int i = 0; i < thread % 7; i++) first = new Node(1000 * thread + i, first);
    lists[thread] = first;
    texts[thread] = (char *)malloc(thread + 1);
    for (int i = 0; i <= thread; i++) texts[thread][i] = (char)thread;
}

__global__ void sum(Node **lists, char **texts, long long *sums) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    long long total = 0;
    for (Node *node = lists[thread]; node;) {
        Node *next = node->next;
        total += node->value;
        delete node;
        node = next;
    }
    for (int i = 0; i <= thread; i++) total += (unsigned char)texts[thread][i];
    free(texts[thread]);
    free(nullptr);
    sums[thread] = total;
}

int main() {
    const int n = 160;
    Node **lists;
    char **texts;
    long long *sums;
    cudaMalloc(&lists, n * sizeof *lists);
    cudaMalloc(&texts, n * sizeof *texts);
    cudaMallocManaged(&sums, n * sizeof *sums);
    for (int round = 0; round < 2; round++) {
        build<<<5, 32>>>(lists, texts);
        sum<<<2, 80>>>(lists, texts, sums);
        printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
        for (int i = 0; i < n; i++) printf("%lld ", sums[i]);
        printf("\\n");
    }
    cudaFree(lists);
    cudaFree(texts);
    cudaFree(sums);
}
"""


def test_what_one_kernel_allocates_another_uses(built):
    thread = np.arange(160)
    nodes = np.array([sum(1000 * t + i for i in range(t % 7)) for t in thread])
    expected = (nodes + thread * (thread + 1)).tolist()
    program = built(LISTS)
    out, told, code = program.run()
    assert (told, code) == ("", 0)
    for begin in (0, 2):
        assert out.splitlines()[begin] == "no error"
        assert [int(each) for each in out.splitlines()[begin + 1].split()] == expected
    out, told, code = program.run(LABKIT_PROGRAM="check")
    assert (code, "no mistake" in told) == (0, True), told
    out, told, code = program.run(LABKIT_PROGRAM="profile")
    assert (code, "build" in told) == (0, True), told


FULL = """
#include <cstdio>
#include <cstdlib>

__global__ void fill(unsigned bytes, char **blocks, int count, int *found) {
    for (int i = 0; i < count; i++) {
        blocks[i] = (char *)malloc(bytes);
        if (blocks[i]) {
            blocks[i][0] = blocks[i][bytes - 1] = 1;
            ++*found;
        }
    }
}
__global__ void release(char **blocks, int count) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) free(blocks[i]);
}
__global__ void churn(int rounds, int *failed) {
    for (int i = 0; i < rounds; i++) {
        int *block = new int[60];
        if (!block) { atomicAdd(failed, 1); continue; }
        for (int j = 0; j < 60; j++) block[j] = threadIdx.x;
        for (int j = 0; j < 60; j++) if (block[j] != threadIdx.x) atomicAdd(failed, 1000);
        delete[] block;
    }
}

int main(int count, char **) {
    const int most = 64;
    size_t limit = 0;
    cudaDeviceSetLimit(cudaLimitMallocHeapSize, 2 << 20);
    cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
    char **blocks;
    int *found;
    cudaMalloc(&blocks, most * sizeof *blocks);
    cudaMallocManaged(&found, 4 * sizeof *found);
    for (int i = 0; i < 4; i++) found[i] = 0;
    for (int round = 0; round < 2; round++) {
        fill<<<1, 1>>>(100000, blocks, most, found + round);
        release<<<1, 32>>>(blocks, most);
    }
    churn<<<4, 96>>>(50, found + 2);
    fill<<<1, 1>>>(3 << 20, blocks, 1, found + 3);
    cudaDeviceSynchronize();
    printf("%zu %d %d %d %d\\n", limit, found[0], found[1], found[2], found[3]);
    cudaFree(blocks);
    cudaFree(found);
}
"""


def test_a_full_heap_gives_null_and_freed_blocks_come_back(built):
    out, told, code = built(FULL).run()
    assert (told, code) == ("", 0)
    limit, first, second, failed, huge = map(int, out.split())
    assert limit == 2 << 20
    assert 0.7 * limit <= 100000 * first <= limit  # as far as whole blocks with their heads go
    assert second == first
    assert (failed, huge) == (0, 0)


RACE = """
#include <cstdlib>
__device__ int *shared_block;
__global__ void make() { shared_block = (int *)malloc(sizeof(int)); }
__global__ void race() { *shared_block = threadIdx.x + 32 * blockIdx.x; }
int main() {
    make<<<1, 1>>>();
    race<<<2, 1>>>();
    cudaDeviceSynchronize();
}
"""


def test_a_race_on_the_heap_is_found(built):
    _, told, _ = built(RACE).run(LABKIT_PROGRAM="check")
    assert "write after write: main.cu:5: race" in told


WRONG = """
#include <cstdio>
#include <cstdlib>
__global__ void wrong(int *x) { free(x); }
int main() {
    int *x;
    cudaMalloc(&x, 4);
    wrong<<<1, 1>>>(x);
    printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


def test_free_takes_what_malloc_gave_alone(built):
    out, told, _ = built(WRONG).run()
    assert out == "cudaErrorLaunchFailure\n"
    assert "main.cu:4" in told, told


LATE = """
#include <cstdio>
#include <cstdlib>
__device__ int found;
__global__ void fill(int n) {
    for (int i = 0; i < n; i++) found += malloc(1 << 20) != nullptr;
}
int main() {
    int many, first = cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20);
    fill<<<1, 1>>>(100);
    int late = cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20);
    int same = cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20);
    cudaMemcpyFromSymbol(&many, found, sizeof many);
    printf("%d %d %d %d\\n", first, late, same, many);
}
"""


def test_a_limit_that_comes_too_late_is_refused(built):
    out, told, code = built(LATE).run()
    first, late, same, many = map(int, out.split())
    assert (first, late, same, code) == (0, 1, 0, 0)  # cudaErrorInvalidValue, as on a GPU
    assert 24 <= many < 32
    assert "call cudaDeviceSetLimit before" in told
