"""What labkit does not serve is refused when a program is built: by name, with file and line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simt.common.errors import CompileError
from simt.programs import messages
from simt.programs.program import build_program

ROOT = Path(__file__).parents[3]
NESTED = """
__global__ void child(int *x) { x[threadIdx.x] = 1; }
__global__ void parent(int *x) {
    if (threadIdx.x == 0)
        child<<<1, 32>>>(x);
}
int main() {
    int *x;
    cudaMalloc(&x, 128);
    parent<<<1, 32>>>(x);
    return cudaDeviceSynchronize();
}
"""
LINE = 5  # of the launch in NESTED


def refused(folder, source, *options):
    """Build a program that is to fail; return the messages."""
    (folder / "main.cu").write_text(source)
    call = [sys.executable, "-m", "labkit", "nvcc", *options, "main.cu", "-o", "main"]
    done = subprocess.run(
        call, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode
    assert not (folder / "main").exists()
    return done.stderr


@pytest.mark.parametrize("options", [(), ("-rdc=true", "-lcudadevrt")])
def test_a_kernel_that_launches_a_kernel_is_refused_with_its_line(nvcc, tmp_path, options):
    told = refused(tmp_path, NESTED, *options)
    assert re.search(rf"^main\.cu:{LINE}: error: labkit does not support launching a kernel", told, re.M)
    assert "separate compilation" not in told


def test_objects_are_looked_through_when_they_are_linked(nvcc, tmp_path):
    folder = nvcc("-dc", "apart.cu", "-o", "apart.o", apart_cu=NESTED)
    call = [sys.executable, "-m", "labkit", "nvcc", "apart.o", "-o", "apart"]
    done = subprocess.run(
        call, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"apart.cu:{LINE}: error: labkit does not support launching a kernel" in done.stderr


@pytest.mark.parametrize(
    ("header", "library"),
    [
        ("cufft.h", "cuFFT"),
        ("cusparse.h", "cuSPARSE"),
        ("cusolverDn.h", "cuSOLVER"),
        ("cudnn.h", "cuDNN"),
    ],
)
def test_a_library_that_is_not_here_is_named(header, library):
    compilers = [
        f"main.cu:3:10: fatal error: {header}: No such file or directory\n",
        f"main.cu:3:10: fatal error: '{header}' file not found\n",
    ]
    excerpt = [f"    3 | #include <{header}>\n", "      |          ^~~~\n", "compilation terminated.\n"]
    for missing in compilers:
        (told,) = messages.explained([missing, *excerpt])
        assert told.startswith(f"main.cu:3: error: this program uses {library} (<{header}>)")


def test_other_messages_stay_as_they_are():
    lines = [
        "main.cu:3:10: fatal error: mine.h: No such file or directory\n",
        "    3 | #include <mine.h>\n",
        "compilation terminated.\n",
        'main.cu(7): error: identifier "cout" is undefined\n',
        "      cout << 1;\n",
    ]
    assert list(messages.explained(lines)) == lines


def test_a_missing_library_is_refused_by_nvcc_and_in_a_cell(nvcc, tmp_path):
    source = "#include <cstdio>\n#include <cufft.h>\nint main() { cufftHandle plan; return 0; }\n"
    told = refused(tmp_path, source)
    assert told.startswith("main.cu:2: error: this program uses cuFFT (<cufft.h>)")
    assert "No such file" not in told
    with pytest.raises(CompileError, match=r":2: error: this program uses cuFFT"):
        build_program(source)


def test_a_call_of_cublas_that_is_not_served_is_named(nvcc, tmp_path):
    source = "#include <cublas_v2.h>\nint main() {\n    return cublasCtpmv(0, 1);\n}\n"
    told = refused(tmp_path, source)
    assert "main.cu:3: error: labkit does not support cublasCtpmv" in told
