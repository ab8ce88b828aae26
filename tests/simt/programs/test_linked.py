"""A program whose files use each other's device functions and variables builds in every usual way."""

import shutil
import subprocess

import pytest

from simt.common.errors import SimtError
from simt.programs.server.linking import linked

MAIN = r"""
#include <cstdio>
extern __device__ int count;
extern __constant__ int table[4];
__device__ int twice(int);
void report();
static __device__ int same_name(int x) { return x + 1; }
__global__ void fill(int *out) {
    out[threadIdx.x] = twice(threadIdx.x) + table[threadIdx.x % 4] + same_name(0);
    if (threadIdx.x == 0)
        printf("in the first file: %d\n", count), count = 7;
}
int main() {
    int *d, h[32], values[4] = {100, 200, 300, 400};
    cudaMalloc(&d, sizeof h);
    cudaMemcpyToSymbol(table, values, sizeof values);
    fill<<<1, 32>>>(d);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("%d %d %s\n", h[3], h[31], cudaGetErrorString(cudaGetLastError()));
    report();
    cudaFree(d);
}
"""
OTHER = r"""
#include <cstdio>
__device__ int count = 3;
__constant__ int table[4];
static __device__ int same_name(int x) { return x * 2; }
__device__ int twice(int x) { return same_name(x); }
__global__ void show() { printf("in the second file: %d\n", count); }
void report() {
    int value;
    show<<<1, 1>>>();
    cudaMemcpyFromSymbol(&value, count, sizeof value);
    printf("on the host: %d\n", value);
}
"""
# twice(3) + 400 + 1 and twice(31) + 400 + 1
EXPECTED = "in the first file: 3\n407 463 no error\nin the second file: 7\non the host: 7\n"


def test_files_are_linked_in_one_call_or_in_several(nvcc, program_at):
    folder = nvcc("-rdc=true", "main.cu", "other.cu", "-o", "one", main_cu=MAIN, other_cu=OTHER)
    assert program_at(folder / "one").run() == (EXPECTED, "", 0)
    nvcc("-dc", "main.cu", "other.cu")
    nvcc("main.o", "other.o", "-o", "two")
    assert program_at(folder / "two").run() == (EXPECTED, "", 0)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_the_host_compiler_links_objects_that_nvcc_has_made(nvcc, program_at):
    c = "int three(void) { return 3; }\n"
    main = r"""
    #include <cstdio>
    extern "C" int three(void);
    __global__ void add(int *x, int n) { *x += n; }
    int main() {
        int *x;
        cudaMallocManaged(&x, sizeof *x);
        *x = 4;
        add<<<1, 1>>>(x, three());
        cudaDeviceSynchronize();
        printf("%d\n", *x);
    }
    """
    folder = nvcc("-c", "main.cu", "-o", "main.o", main_cu=main, three_c=c)
    nvcc("main.o", "-shared", "-o", "found.so")  # says where the library is
    said = subprocess.run(["readelf", "-d", folder / "found.so"], capture_output=True, text=True).stdout
    place = said.split("path: [")[1].split("]")[0]
    subprocess.run(["gcc", "-c", "three.c"], cwd=folder, check=True)
    link = ["g++", "main.o", "three.o", "-o", "host", f"-L{place}", "-lcudart", f"-Wl,-rpath,{place}"]
    subprocess.run(link, cwd=folder, check=True)
    assert program_at(folder / "host").run() == ("7\n", "", 0)


HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def test_a_namesake_stays_with_its_own_file():
    one = (
        HEAD
        + ".global .align 1 .b8 $str[2] = {97, 0};\n.visible .func f()\n{\nmov.u64 %rd1, $str;\nret;\n}\n"
    )
    two = one.replace("97", "98").replace("func f", "func g")
    text = linked([one, two])
    assert text.count(".version") == 1
    names = [line.split()[4].split("[")[0] for line in text.splitlines() if ".b8" in line]
    assert len(set(names)) == 2
    for function, value in (("f", "97"), ("g", "98")):
        body = text[text.index(f"func {function}()\n{{") :]
        used = body[body.index("%rd1, ") + 6 : body.index(";")]
        assert f"{used}[2] = {{{value}, 0}}" in text


def test_a_definition_comes_before_a_weak_one_and_an_extern_one():
    weak = HEAD + ".weak .func f()\n{\nbar.sync 0;\nret;\n}\n"
    strong = HEAD + ".visible .func f()\n{\nbar.sync 1;\nret;\n}\n"
    declared = HEAD + ".extern .func f()\n;\n"
    for texts in ([weak, strong, declared], [declared, strong, weak], [strong, declared, weak]):
        text = linked(texts)
        assert "bar.sync 1" in text
        assert "bar.sync 0" not in text
        assert ".extern" not in text
    with pytest.raises(SimtError, match="two files of the program define `f`"):
        linked([strong, strong])


def test_files_are_renumbered():
    text = HEAD + '.visible .entry {}()\n{{\n.loc 1 5 0\nret;\n}}\n.file 1 "{}.cu"\n'
    joined = linked([text.format("a", "a"), text.format("b", "b")])
    assert '.file 1 "a.cu"' in joined
    assert '.file 2 "b.cu"' in joined
    assert ".loc 2 5 0" in joined[joined.index("entry b") :]
