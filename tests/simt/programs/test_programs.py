"""The whole programs of programs/ build, run without a GPU, print right numbers, and notice wrong results.

What NumPy computes from the same random numbers is the reference. Records of a GPU are held to it, too.
"""

import os
import platform
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "benchmarks")]

import record_programs  # noqa: E402
from record_programs import PROGRAMS, commands, sources  # noqa: E402

from labkit import program_magic  # noqa: E402
from labkit.c.compile import find_compiler  # noqa: E402
from simt.programs import toolkit  # noqa: E402

# `make test` runs each fourth: short names belong to programs with few kernels, which take less time.
NAMES = sorted((path.name for path in sources()), key=len)
RECORDS = sorted((ROOT / "data" / "h200" / "programs").glob("*.txt"))
MOST = 2**24  # elements that NumPy computes in no time


# --------------------------------------------------------------------------------- what a run should print


def draws(count, seed):
    """Return what std::mt19937 with this seed gives."""
    return np.random.RandomState(seed).randint(0, 2**32, count, dtype=np.uint32)


def floats(count, seed, scale=1):
    """Return the programs' random floats, from 0 to `scale`."""
    return np.float32(scale) * ((draws(count, seed) >> 8).astype(np.float32) / np.float32(2**24))


def sum_of_product(A, B):
    """Return the sum of A B: of the sums of A's columns times those of B's rows."""
    return float(A.sum(0, dtype=np.float64) @ B.sum(1, dtype=np.float64))


def product(rows, inner, cols, make):
    """Return the sum of a product of random matrices."""
    return sum_of_product(
        make(rows * inner, 1).reshape(rows, inner), make(inner * cols, 2).reshape(inner, cols)
    )


def numbers(pattern, text):
    """Return all numbers that the pattern's group finds."""
    return [float(number) for number in re.findall(pattern, text, re.M)]


def check_saxpy(args, text):
    n = int(args[0]) if args else 1 << 18
    assert numbers(r"^saxpy: (\d+) elements", text) == [n]
    expected = np.sum(2.5 * floats(n, 1).astype(np.float64) + floats(n, 2))
    assert numbers(r"^sum of y: (.*)", text) == [pytest.approx(expected, rel=1e-7, abs=1e-6)]


def check_sum(args, text):
    n = int(args[0]) if args else 1000000
    if n > MOST:
        return
    expected = floats(n, 1).sum(dtype=np.float64)
    assert numbers(r"^sum on the CPU: (.*)", text) == [pytest.approx(expected, abs=1e-3)]
    assert numbers(r"^sum on the GPU: (.*)", text) == [pytest.approx(expected, rel=1e-6, abs=1e-3)]


def check_histogram(args, text):
    if args and not args[0].isdigit():
        counts = Counter((PROGRAMS / args[0]).read_bytes())
    else:
        raw = draws(int(args[0]) if args else 1000000, 1)
        values, found = np.unique((raw & 15) * (raw >> 4 & 15), return_counts=True)
        counts = Counter(dict(zip(values.tolist(), found.tolist(), strict=True)))
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:5]
    assert re.findall(r"^value +(\d+): (\d+)", text, re.M) == [(str(v), str(n)) for v, n in most]


def check_streams(args, text):
    n = int(args[0]) if args else 1 << 18
    assert numbers(r" in (\d+) chunks", text) == [int(args[1]) if len(args) > 1 else 8]
    if n <= MOST:
        expected = 2 * np.sum(((draws(n, 1) >> 8).astype(np.float64) + 1) / 2**24)
        assert numbers(r"sum of y ([\d.]+)", text) == [pytest.approx(expected, rel=1e-6)] * 2


def check_matmul_int(args, text):
    sizes = [int(arg) for arg in args] or [64]
    assert numbers(r"^N = (\d+)", text) == sizes
    expected = [product(n, n, n, lambda *given: draws(*given) % 10) for n in sizes]
    assert numbers(r"^sum of C: (.*)", text) == expected
    table = re.findall(r"^ *(\d+)x(\d+) +([\d.]+) ms .*?([\d.]+) ms .*?([\d.]+) x$", text, re.M)
    assert [int(row[0]) for row in table] == [1, 2, 4, 8, 16, 32] * len(sizes)
    for _, _, naive, tiled, gain in table:
        assert float(gain) == pytest.approx(float(naive) / float(tiled), rel=0.1, abs=0.01)


def check_matmul_shapes(args, text):
    m, k, _, n = [int(arg) for arg in args] or [48, 40, 40, 56]
    assert f"({m} x {k}) ({k} x {n}) = ({m} x {n})" in text
    assert numbers(r"^sum of C: (.*)", text) == [
        pytest.approx(product(m, k, n, lambda *given: floats(*given, 5)), rel=1e-6)
    ]
    assert re.findall(r"^(tiled|not tiled) +(\d+) ", text, re.M) == [
        ("not tiled", "16"),
        *(("tiled", str(tile)) for tile in (4, 8, 16, 32)),
    ]


def check_matmul_copies(args, text):
    sizes = [2 ** int(arg) for arg in args] or [64]
    assert numbers(r"^sum of C: (.*)", text) == [
        pytest.approx(product(n, n, n, floats), rel=1e-6) for n in sizes
    ]
    assert numbers(r"^ *(\d+)x\d+ ", text) == [4, 8, 16, 32] * len(sizes)


def check_matmul_cpu(args, text):
    def generator(count, state):
        drawn = []
        for _ in range(count):
            state = (state * 1664525 + 1013904223) % 2**32
            drawn.append((state >> 8) / 2**24)
        return np.array(drawn)

    sizes = [2 ** int(arg) for arg in args] or [128]
    sums = numbers(r"^sum of C: (.*)", text)
    assert len(sums) == len(sizes)
    for n, found in zip(sizes, sums, strict=True):
        if n <= 256:
            assert found == pytest.approx(product(n, n, n, generator), rel=1e-6)


def check_sgemm_peak(args, text):
    sizes = [int(arg) for arg in args] or [64, 100]
    assert "a block of 33 x 33 threads: invalid argument" in text
    expected = [1.5 * product(n, n, n, floats) + 0.5 * floats(n * n, 3).sum(dtype=np.float64) for n in sizes]
    assert numbers(r"^sum of C: (.*)", text) == [pytest.approx(each, rel=1e-6) for each in expected]
    rows = [row for part in re.split(r"^n = ", text, flags=re.M)[1:] for row in of_size(part)]
    assert [row[1] for row in rows if row[1] != "cuBLAS"] == ["tiled", "unrolled", "pitched"] * len(sizes)
    for n, _, ms, gflops in rows:  # printed times have four digits
        assert 2 * n**3 / (ms + 6e-5) / 1e6 - 0.1 <= gflops <= 2 * n**3 / (ms - 6e-5) / 1e6 + 0.1


def of_size(part):
    """Return size, kernel, time and rate of each row of a table of sgemm_peak."""
    n = int(part.partition(":")[0])
    found = re.findall(r"^(\w+) +([\d.]+) +([\d.]+) +[\d.]+ %", part, re.M)
    return [(n, kernel, float(ms), float(gflops)) for kernel, ms, gflops in found]


def check_transpose_int(args, text):
    n, times = [int(arg) for arg in [*args, *("200", "2")[len(args) :]]]
    assert numbers(r"(\d+) times$", text) == [times]
    table = re.findall(r"^(\w+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) ", text, re.M)
    assert [row[0] for row in table] == ["naive", "shared", "padded", "unrolled"]
    for _, *row in table:
        total, total_rate, kernels, rate = map(float, row)
        for ms, gb_per_s in ((total, total_rate), (kernels, rate)):
            assert gb_per_s == pytest.approx(2 * 4 * n * n * times / ms / 1e6, rel=0.02, abs=0.01)


CHECKS = {name: globals()[f"check_{name.partition('.')[0]}"] for name in NAMES}


# ------------------------------------------------------------------------------------------ build and run


def words(command):
    """Return the command with the compilers that are here."""
    compiler, *others = shlex.split(command)
    if compiler == "nvcc":
        try:
            toolkit.toolkit(), toolkit.host_compiler()
        except toolkit.NoCompiler as error:
            pytest.skip(str(error))
        return [sys.executable, "-m", "labkit", "nvcc", *others]
    found = find_compiler()
    if found is None:
        pytest.skip("needs a C compiler")
    return [*found, *others]


def build(name, folder, way=None):
    """Build a program of `folder` as its head says, in the way for this processor or another."""
    if way is None:
        way = name.endswith(".c") and platform.machine() not in ("x86_64", "AMD64")
    command = commands(PROGRAMS / name, "build")[way]
    done = subprocess.run(words(command), cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


def environment():
    """Return the variables under which a program runs without a GPU."""
    return os.environ | {"LABKIT_DEVICE": "simt", "PYTHONPATH": str(ROOT)}


def run(command, folder, stdin=""):
    """Run a built program."""
    return subprocess.run(
        command.split(),
        cwd=folder,
        env=environment(),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return what builds a program once, and returns the folder where it lies beside its source."""
    folders = {}

    def once(name):
        if name not in folders:
            folder = tmp_path_factory.mktemp(name.replace(".", "_"))
            (folder / name).write_text((PROGRAMS / name).read_text(encoding="utf-8"), encoding="utf-8")
            build(name, folder)
            folders[name] = folder
        return folders[name]

    return once


@pytest.mark.parametrize("name", NAMES)
def test_a_program_passes_with_its_default_sizes(built, name):
    command = commands(PROGRAMS / name, "run")[0]
    done = run(command, built(name))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("PASS\n")
    CHECKS[name](command.split()[1:], done.stdout)


# Sizes that no block divides, and other ways to call a program. `make test` runs each fifth, of programs that
# the test above has built.
ODD = (
    ("sum.cu", "777"),
    ("saxpy.cu", "1000"),
    ("saxpy.cu", "1"),
    ("streams.cu", "1001 7"),
    ("matmul_int.cu", "33 7"),
    ("matmul_shapes.cu", "5 70 70 3"),
    ("matmul_copies.cu", "5"),
    ("histogram.cu", "5000"),
    ("sgemm_peak.cu", "1 45"),
    ("transpose_int.cu", "33 1"),
    ("matmul_cpu.c", "3 4"),
    ("sum.cu", "1"),
    ("matmul_shapes.cu", "32 32 32 32"),
    ("histogram.cu", "1"),
    ("histogram.cu", "histogram.cu"),
)


@pytest.mark.parametrize(("name", "args"), ODD)
def test_a_program_passes_with_odd_sizes(built, name, args):
    done = run(f"./{name.partition('.')[0]} {args}", built(name))
    assert done.returncode == 0, done.stdout + done.stderr
    CHECKS[name](args.split(), done.stdout)


def test_sizes_may_be_asked_from_the_user(built):
    done = run("./matmul_shapes", built("matmul_shapes.cu"), stdin="6\n20\n\n9\n")
    assert "(6 x 20) (20 x 9) = (6 x 9)" in done.stdout and done.stdout.endswith("PASS\n")


@pytest.mark.parametrize(("way", "last"), [(1, "cuBLAS"), (2, "pitched")])
def test_sgemm_peak_has_cublas_in_the_table_and_other_tiles(tmp_path, way, last):
    (tmp_path / "sgemm_peak.cu").write_text((PROGRAMS / "sgemm_peak.cu").read_text(encoding="utf-8"))
    build("sgemm_peak.cu", tmp_path, way)
    done = run("./sgemm_peak", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    check_sgemm_peak([], done.stdout)
    assert re.findall(r"^(\w+) .* %$", done.stdout, re.M)[-1] == last


REFUSED = {
    "./matmul_shapes 4 5 6 7": "A has 5 columns and B 6 rows",
    "./saxpy -3": "'-3' is no number of elements",
    "./matmul_int 64 1e3": "'1e3' is no size",
    "./matmul_cpu 64": "'64' is no exponent",
    "./histogram nowhere": "nowhere: No such file",
    "./transpose_int 0": "'0': give a whole number from 1 to 32768",
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_wrong_argument_is_named(built, command):
    name = next(name for name in NAMES if command.startswith(f"./{name.partition('.')[0]} "))
    done = run(command, built(name))
    assert (done.returncode, done.stdout.replace("matmul_cpu on one core\n", "")) == (1, "")
    assert REFUSED[command] in done.stderr


# A mistake in a kernel, which the program's own check must find.
MISTAKES = {
    "saxpy.cu": ("if (i < n)", "if (i < n - 1)"),
    "sum.cu": ("i < n; i +=", "i < n - 1; i +="),
    "histogram.cu": ("atomicAdd(&block_counts[x[i]], 1)", "atomicAdd(&block_counts[x[i] ^ 1], 1)"),
    "streams.cu": ("if (i < n)", "if (i < n - 1)"),
    "matmul_int.cu": ("k < side", "k < side - 1"),
    "matmul_shapes.cu": ("k < TILE", "k < TILE - 1"),
    "matmul_copies.cu": ("C[row * n + col] +=", "C[row * n + col] ="),
    "matmul_cpu.c": ("if (k0 > 0)", "if (k0 > n)"),
    "sgemm_peak.cu": ("beta * *element", "alpha * *element"),
    "transpose_int.cu": ("tile[threadIdx.x][threadIdx.y + i]", "tile[threadIdx.y][threadIdx.x]"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_program_notices_a_wrong_result(tmp_path, name):
    right, wrong = MISTAKES[name]
    source = (PROGRAMS / name).read_text(encoding="utf-8")
    assert right in source
    (tmp_path / name).write_text(source.replace(right, wrong), encoding="utf-8")
    build(name, tmp_path)
    done = run(f"./{name.partition('.')[0]}", tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "FAIL")


# ------------------------------------------------------------------------------------------------- records


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_what_a_gpu_printed_is_right(path):
    name = next(name for name in NAMES if name.partition(".")[0] == path.stem)
    runs = re.split(r"^\$ \./", path.read_text(encoding="utf-8"), flags=re.M)[1:]
    assert len(runs) >= len(commands(PROGRAMS / name, "run"))
    for each in runs:
        command, _, text = each.partition("\n")
        said = text.partition("\n$ ")[0]
        assert said.rstrip().endswith("PASS"), command
        if not command.endswith(".cu"):  # the histogram of a source, which may have changed since
            CHECKS[name](command.split()[1:], said)


# -------------------------------------------------------------------------------------------------- the house


def test_each_program_stands_alone_and_has_a_head():
    macros = set()
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"// {path.name}: ")
        assert re.findall(r'^#include "', text, re.M) == []
        assert max(map(len, text.splitlines())) <= 110
        for build in commands(path, "build"):
            assert path.name in build and f"-o {path.stem}" in build
        assert {run.split()[0] for run in commands(path, "run")} == {f"./{path.stem}"}
        macros |= {text.partition("// Ends the program with file, line")[2].partition("while (0)")[0]}
    assert len(macros - {""}) == 1, "CUDA_CHECK is the same in all of them"


def test_every_program_is_in_the_table():
    page = (PROGRAMS / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[([\w.]+)\]", page, re.M)) == sorted(NAMES)
    assert all((PROGRAMS / link).exists() for link in re.findall(r"\]\(([^)]+)\)", page))


def test_a_transcript_has_each_command_above_what_it_printed(monkeypatch, tmp_path):
    source = tmp_path / "hello.c"
    source.write_text(
        "// hello.c: says hello\n//\n"
        "// build:  false hello.c    not here\n//         cp /bin/echo hello  here\n"
        "// run:    ./hello 1  once\n//         ./hello 2\n// prints: it\n\n#include <stdio.h>\n"
    )
    assert record_programs.transcript(source) == (
        "$ cp /bin/echo hello\n\n$ ./hello 1\n1\n\n$ ./hello 2\n2\n",
        True,
    )


# -------------------------------------------------------------------------------------------------- notebooks


class Printing:
    """Stands for a program: what it prints comes in these pieces."""

    def __init__(self, *pieces):
        self.pieces = pieces

    def run(self, *arguments, on_text, **how):
        for name, text in self.pieces:
            on_text(name, text)


def test_a_remark_is_no_error_however_it_arrives(capsys):
    """A busy machine reads the remark in several pieces."""
    remark, mistake = "labkit: no GPU here. Times are predicted\n", "line 3: invalid argument"
    pieces = [("stderr", part) for part in ("labkit: ", remark[8:20], remark[20:] + mistake[:4], mistake[4:])]
    program_magic.run(Printing(*pieces[:2], ("stdout", "7\n"), *pieces[2:]), program_magic.read_line(""))
    told = capsys.readouterr()
    assert (told.out, told.err) == ("7\n" + remark, mistake)
