"""The rehearsal before a launch on a GPU: mistakes are found in a few blocks, right kernels pass, quickly."""

import resource
from time import process_time

import numpy as np
import pytest

import simt
from labkit import kernels
from labkit.devices import preflight
from labkit.devices.preflight import Rehearsals, choose_blocks, rehearse
from labkit.kernels.problem import problem
from simt.common.errors import BarrierError, InvalidAccess, LaunchError, SimtError, Timeout
from simt.kernel import launch_of
from tests import gallery

NAIVE, TILED = (kernels.source(f"matmul/{name}") for name in ("1_naive", "2_tiled"))


def compiled(source, name="matmul", *options):
    return simt.RawModule(code=source, options=options).get_function(name)


def body(text, parameters="float* x, int n"):
    """A kernel of this body, each line in a line of its own from line 2 on."""
    return compiled(f'extern "C" __global__ void f({parameters}) {{\n{text}\n}}', "f")


def zeros(case):
    """Arguments of a launch that take no memory before they are touched."""
    return (*(np.zeros(shape, case.dtype) for shape in case.shapes().values()), *case.scalars())


def on_problem(kernel, case, tile=16, timeout=5):
    """Rehearse a launch with one thread per element."""
    rehearse(kernel, launch_of(*case.launch(tile), zeros(case), 0, timeout))


def test_the_blocks_are_the_corners_the_middle_and_some_between():
    blocks = choose_blocks((10, 7, 1))
    assert blocks[:2] == [69, 0]
    assert {0, 9, 60, 69, 35} <= set(blocks)  # the corners, and block (5, 3)
    assert len(blocks) == len(set(blocks)) <= 17
    assert set(choose_blocks((5, 4, 3))) >= {
        x + 5 * (y + 4 * z) for x in (0, 4) for y in (0, 3) for z in (0, 2)
    }
    assert max(choose_blocks((2**31 - 1, 65535, 65535))) == (2**31 - 1) * 65535**2 - 1


@pytest.mark.parametrize("grid", [(1, 1, 1), (3, 1, 1), (8, 1, 1), (3, 3, 1), (2, 3, 2)])
def test_of_few_blocks_all_are_tried(grid):
    assert sorted(choose_blocks(grid)) == list(range(np.prod(grid)))


SECOND = "        __syncthreads();  // everyone has read the tiles before anyone overwrites them"
FIRST = "        __syncthreads();  // the tiles are complete before anyone reads them"
LEAVE = "if (row >= M || col >= N) return;"
SUM = "sum += A_tile[y][k] * B_tile[k][x];"
PLANTED = {
    "no guard": (
        NAIVE,
        "row >= M || col >= N",
        "false",
        InvalidAccess,
        r"`A\[\d+\]` \(`A\[\d+, \d+\]`\) is past the end of `A`, which has 4097 x 4099",
    ),
    "a row too many": (NAIVE, "row >= M", "row > M", InvalidAccess, "invalid global read"),
    "a column too many": (NAIVE, "col >= N", "col > N", InvalidAccess, "invalid global"),
    "a term too many": (NAIVE, "k < K", "k <= K", InvalidAccess, "invalid global read"),
    "no guard of the tile": (
        TILED,
        "row < M && k0 + x < K ?",
        "true ?",
        InvalidAccess,
        "past the end of `A`",
    ),
    "shared index": (TILED, SUM, "sum += A_tile[y][k] * B_tile[k + 1][x];", InvalidAccess, "shared memory"),
    "no first barrier": (TILED, FIRST, "", SimtError, "race .*_tile"),
    "no second barrier": (TILED, SECOND, "", SimtError, "race .*_tile"),
    "divergent barrier": (TILED, FIRST, f"if (row < M) {FIRST}", BarrierError, "must reach"),
    "early return": (TILED, "    T sum = 0;", f"    {LEAVE} T sum = 0;", BarrierError, "never reach"),
    "endless loop": (NAIVE, "++k", "k += 0", Timeout, "Does its condition ever become false"),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_mistakes_are_found_in_a_few_blocks_of_many(planted):
    """Sizes that no tile divides."""
    source, old, new, error, message = planted
    assert source.count(old) == 1
    changed = source.replace(old, new)
    with pytest.raises(error, match=message) as raised:
        on_problem(compiled(changed), problem("matmul", 4097, 4095, 4099), timeout=0.5)
    assert type(raised.value) is error
    finding = raised.value.finding
    assert f"line {finding.line}: " in str(raised.value)
    assert finding.source in changed.splitlines()[finding.line - 1]
    assert "(blocks: 15 of 65792). Nothing has run on the GPU." in str(raised.value)


@pytest.fixture
def large(monkeypatch):
    """Arrays are copied only where what they hold decides."""
    monkeypatch.setattr(preflight, "SMALL_BYTES", 0)


def tried(case, kernel):
    """Rehearse a case of the gallery as a launch on a GPU is rehearsed."""
    args = tuple(case.args(simt.empty).values())

    def on_host(contents):
        return [np.zeros_like(a) if isinstance(a, np.ndarray) and not contents else a for a in args]

    launch = launch_of(case.grid, case.block, args, case.shared_mem, timeout=0.5)
    return Rehearsals(kernel).first(launch, on_host)


@pytest.mark.slow  # the gallery once more
@pytest.mark.parametrize("case", gallery.cases("clean"), ids=lambda case: case.name)
def test_right_kernels_pass(case, large):
    """Also those that count on other blocks, and those whose loops end only for the right contents."""
    kernel = simt.RawModule(code=case.source, options=case.options, name_expressions=case.name_expressions)
    assert tried(case, kernel.get_function(case.entry))


@pytest.mark.parametrize("case", gallery.cases("bugs"), ids=lambda case: case.name)
def test_mistakes_do_not_pass(case):
    with pytest.raises(SimtError) as raised:
        kernel = simt.RawModule(
            code=case.source, options=case.options, name_expressions=case.name_expressions
        )
        tried(case, kernel.get_function(case.entry))
    assert isinstance(raised.value, LaunchError) == bool(case.refused)


def test_large_arrays_take_no_memory_and_little_time():
    """C = A B of 16384 x 16384 elements each, 3.2 GB, by tiles; the second time the code is there."""
    kernel, case = compiled(TILED, "matmul", "-DTILE=32"), problem("matmul", 16384, 16384, 16384)
    on_problem(kernel, problem("matmul", 64, 64, 64), tile=32)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, process_time()
    on_problem(kernel, case, tile=32)
    assert process_time() - start < 1.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 * 1024, "kilobytes"


class Launches:
    """A kernel's rehearsals, with a count of those that ran and whether contents were wanted."""

    def __init__(self, kernel):
        self.rehearsals, self.wanted = Rehearsals(kernel), []

    def __call__(self, *args, grid=(1, 1, 1), shared_mem=0):
        def on_host(contents):
            self.wanted.append(contents)
            return args

        return self.rehearsals.first(launch_of(grid, 32, args, shared_mem, timeout=1), on_host)


def test_launches_that_are_alike_are_tried_once():
    launch = Launches(body("if (threadIdx.x < n) x[threadIdx.x] *= factor;", "float* x, int n, float factor"))
    x = np.zeros(32, np.float32)
    assert launch(x, np.int32(32), np.float32(2))
    assert not launch(x, np.int32(32), np.float32(3)), "a factor changes results alone"
    assert not launch(np.ones(32, np.float32), np.int32(32), np.float32(np.nan))
    assert launch(x, np.int32(31), np.float32(2)), "n decides which elements are read"
    assert launch(np.zeros(33, np.float32), np.int32(32), np.float32(2))
    assert launch(np.zeros((1, 32), np.float32), np.int32(32), np.float32(2))
    assert len(launch.wanted) == 4


def test_a_refused_launch_is_tried_again():
    launch = Launches(body("x[threadIdx.x] = n;"))
    for _ in range(2):
        with pytest.raises(InvalidAccess, match=r"`x\[31\]` is past the end of `x`"):
            launch(np.zeros(31, np.float32), np.int32(1))
    assert launch(np.zeros(32, np.float32), np.int32(1))


def test_contents_are_copied_where_they_decide(large):
    at_index = Launches(body("x[i[threadIdx.x]] = 1;", "float* x, const int* i"))
    assert at_index(np.zeros(32, np.float32), np.arange(32, dtype=np.int32))
    through_shared = """__shared__ int s[32]; s[threadIdx.x] = i[threadIdx.x]; __syncthreads();
        x[s[31 - threadIdx.x]] = 1;"""
    assert Launches(body(through_shared, "float* x, const int* i"))(
        np.zeros(32, np.float32), np.arange(32, dtype=np.int32)
    )
    until = Launches(body("while (x[threadIdx.x] < n) x[threadIdx.x] += 1;"))
    assert until(np.zeros(32, np.float32), np.int32(5))
    assert at_index.wanted == until.wanted == [True]
    with pytest.raises(InvalidAccess, match="past the end of `x`"):
        at_index(np.zeros(31, np.float32), np.arange(32, dtype=np.int32))
    plain = Launches(compiled(NAIVE))
    assert plain(*zeros(problem("matmul", 1, 32, 1)))
    assert plain.wanted == [False]


def test_what_cannot_be_tried_goes_to_the_gpu_with_a_warning(monkeypatch):
    monkeypatch.setattr(preflight, "MOST_BYTES", 100)
    launch = Launches(body("x[(int)x[threadIdx.x]] = n;"))
    with pytest.warns(UserWarning, match="`f` goes to the GPU untried .*what its arrays hold decides"):
        assert launch(np.full(32, 1e6, np.float32), np.int32(1))
    assert not launch(np.full(32, 1e6, np.float32), np.int32(1)), "said once"
    assert launch.wanted == []


def test_an_impossible_launch_is_refused():
    with pytest.raises(LaunchError, match="shared_mem=100000"):
        Launches(body("x[0] = n;"))(np.zeros(1, np.float32), np.int32(1), shared_mem=100_000)


def loop(step):
    """A kernel that counts to n in steps of `step`, and launches of it with 1000 blocks."""
    text = f"int i = 0; while (i < n) {{ i += {step}; if (x[i & 31] > 1) i += 2; }}\nout[blockIdx.x] = i;"
    kernel = body(text, "const float* x, int* out, int n")

    def launch(n, timeout):
        args = np.zeros(32, np.float32), np.zeros(1000, np.int32), np.int32(n)
        rehearse(kernel, launch_of(1000, 1, args, 0, timeout))

    return launch


def test_a_long_kernel_is_cut_off_and_passes(monkeypatch):
    monkeypatch.setattr(preflight, "SECONDS", 0.02)
    launch, start = loop("1"), process_time()
    launch(10_000_000, timeout=30)
    assert process_time() - start < 15
    with pytest.raises(Timeout, match=r"more than 0\.01 s") as raised:
        launch(10_000_000, timeout=0.01)
    assert "longer timeout=" in str(raised.value) and "kernel.rehearse = False" in str(raised.value)


def test_a_loop_that_one_block_never_leaves():
    with pytest.raises(Timeout) as raised:
        loop("blockIdx.x != 500")(10, timeout=0.2)
    assert raised.value.finding.block == (500, 0, 0)


def test_what_a_kernel_prints_is_not_printed_twice(capsys):
    kernel = body('printf("%d\\n", n); x[threadIdx.x] = n;')
    args = np.zeros(32, np.float32), np.int32(7)
    rehearse(kernel, launch_of(1, 32, args, 0, timeout=5))
    assert capsys.readouterr().out == ""
