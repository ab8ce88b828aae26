"""The launch line of a source: what it comes to, and what is said of one that comes to nothing."""

import pytest

from labkit.kernels import launch_of, macros_of
from labkit.kernels.launch_line import LaunchLineError
from labkit.kernels.problem import problem
from simt.common.errors import LaunchError

WIDE = problem("matmul", 33, 1000, 7, alpha=3)
TALL = problem("transpose", 1000, 33)


def line(block, grid):
    return f"// launch: block ({block}), grid ({grid}); for the reader (and nobody else)\n"


@pytest.mark.parametrize(
    ("block", "grid", "expected"),
    [
        ("16, 16", "ceil(N/16), ceil(M/16)", ((63, 3, 1), (16, 16, 1))),
        ("16, 16", "N/16, M / 16", ((62, 2, 1), (16, 16, 1))),  # as in C
        ("256", "(N + 15) / 16 * ((M + 15) // 16)", ((189, 1, 1), (256, 1, 1))),
        ("2, 3, 4", "N - M, K", ((967, 7, 1), (2, 3, 4))),
        ("32 * 8 / 3", "ceil(ceil(N/16) / 2)", ((32, 1, 1), (85, 1, 1))),
        ("min(32, 7, M)", "max(ceil(M/32), 1)", ((2, 1, 1), (7, 1, 1))),
        ("sizeof(float) * sizeof(half)", "sizeof(double)", ((8, 1, 1), (8, 1, 1))),
        ("-(-4)", "ceil(7/2*2)", ((7, 1, 1), (4, 1, 1))),  # exact within ceil()
    ],
)
def test_arithmetic(block, grid, expected):
    assert launch_of(line(block, grid), WIDE) == expected


def test_sizes_of_a_transpose():
    assert launch_of(line("32, 8", "ceil(cols/32), ceil(rows/32)"), TALL) == ((2, 32, 1), (32, 8, 1))


MACROS = """
#ifndef TILE
#define TILE 64  // elements of a side
#endif
# define EACH 4 /* a thread */
#define SIDE (TILE / EACH)
"""


class TestMacros:
    def test_are_read_from_the_source(self):
        source = MACROS + line("SIDE * SIDE", "ceil(N/TILE), ceil(M/TILE)")
        assert launch_of(source, WIDE) == ((16, 1, 1), (256, 1, 1))

    def test_those_given_win_only_over_a_default(self):
        source = MACROS + line("SIDE, SIDE", "EACH")
        assert launch_of(source, WIDE, TILE=32, EACH=8) == ((4, 1, 1), (8, 8, 1))

    @pytest.mark.parametrize(
        "source",
        [
            "constexpr int TILE = 16;",
            "static constexpr unsigned TILE =16u;",
            "int const TILE = 16;",
            "constexpr int HALF = 8, TILE = 2 * HALF;",
            "#define HALF 8\nconst int TILE = (HALF + HALF);",
            "enum { ROUND = 32, TILE = 16 };",
            "enum Sizes : int {\n    TILE = 16\n};",
            "/* const int TILE = 3; */ // const int TILE = 4;\nconstexpr auto TILE = 16; // the side",
            "extern __global__ void k(const int n) { constexpr int TILE = 16; const int x = threadIdx.x;",
            "__device__ constexpr int TILE = 16;\n__global__ void k() { int TILE = 3; }",
        ],
    )
    def test_constants_of_cpp_are_known_as_well(self, source):
        assert launch_of(f"{source}\n{line('TILE', 'TILE * 2')}", WIDE) == ((32, 1, 1), (16, 1, 1))

    @pytest.mark.parametrize(
        "source", ["int TILE = 16;", "const int TILE = threadIdx.x;", "// const int TILE = 16;"]
    )
    def test_what_is_no_constant_is_not_known(self, source):
        with pytest.raises(LaunchLineError, match="nothing says what TILE is"):
            launch_of(f"{source}\n{line('TILE', '1')}", WIDE)

    def test_of_the_compilers_options(self):
        options = ["-DTILE=16", "-D EACH=2", "--std=c++17", "-DFAST", "--define-macro=X=3"]
        assert macros_of(options) == {"TILE": "16", "EACH": "2", "FAST": "1", "X": "3"}
        assert launch_of(line("TILE", "1"), WIDE, **macros_of(options))[1] == (16, 1, 1)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("extern ...", "No line says how the kernel is launched. Put one like this above it"),
        ("// a launch: block\n", "No line says"),
        (line("1", "1") + line("2", "2"), "Lines 1 and 2 both say how the kernel is launched"),
        (
            "\n// launch: grid (1), block (1)",
            "line 2 does not say how the kernel is launched:\n    2 | // launch",
        ),
        ("// launch: block (16 16) grid (1)", "line 1 does not say"),
        ("// launch: block (), grid (1)", "line 1 does not say"),
        (line("TILE", "1"), r"block (TILE): nothing says what TILE is. Known are M, N, K."),
        (line("alpha", "1"), "nothing says what alpha is"),
        (line("1", "N / (K - 7)"), "grid (N / (K - 7)): N / (K - 7) divides by 0"),
        (line("1, 1, 1, 1", "1"), "these are 4 sizes; there are at most three"),
        ("#define T float\n" + line("T", "1"), "T is 'float', which is no whole number"),
        ("#define T T\n" + line("T", "1"), "T is 'T', which is no whole number"),
        (line("16.0", "1"), "what is '16.0'? Whole numbers, sizes, macros, + - * /, ceil(), min()"),
        (line("16 +", "1"), "this is no arithmetic"),
        (line("(" * 210 + "1" + ")" * 210, "1"), "this is no arithmetic"),
        (line("9 ** 9", "1"), "what is '9 ** 9'?"),
        (line("True", "1"), "what is 'True'?"),
        (line("ceil(N, 2)", "1"), "what is 'ceil(N, 2)'?"),
        (line("N if N else M", "1"), "what is 'N if N else M'?"),
        (line("(N := 3)", "1"), "what is '(N := 3)'?"),
        (line("*[1, 2]", "1"), "what is '*[1, 2]'?"),
        (line("yield N", "1"), "what is '(yield (N,))'?"),
        (line("1) if (2", "1"), "this is no arithmetic"),
        (line("1) if (2) else (3", "1"), "what is '1 if 2 else (3,)'?"),
        (line("9" * 5000, "1"), "characters; it may have 500"),
        (line("9" * 400, "1"), "is larger than any launch"),
        (line("*".join(["99999"] * 20), "1"), "is larger than any launch"),
        (line("ceil(" + "/".join(["9999"] * 20) + ")", "1"), "is larger than any launch"),
        (line("-" * 40 + "1", "1"), "nested more than 30 times"),
        (line("-" * 400 + "x.y", "1"), "nested more than 30 times"),
        (line("x" + ".y" * 200, "1"), "what is 'x.y.y"),
        (line("[" * 90 + "]" * 90, "1"), "what is '[["),
        (line("A", "1") + "#define A B\n#define B A\n", "A is 'B', which is no whole number"),
        (line("A", "1") + f"#define A 1 {'+ 1' * 9999}\n", "…', which is no whole number"),
        (line("A\x0c", "1") + "\x85\u2028#define A 1\n", "nothing says what A is"),
        (line("A", "1") + "".join(f"#define B{n} 1\n" for n in range(99)), "B19, …. A macro is made"),
    ],
)
def test_what_comes_to_nothing_is_told(source, words):
    with pytest.raises(LaunchLineError) as error:
        launch_of(source, WIDE)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "python",
    [
        "open('escaped', 'w').write('x') and 16",
        "__import__('os').getpid()",
        "print('run')",
        "[x for x in (1,)][0]",
        "(lambda: 16)()",
        "N.__class__",
        "f'{N}'",
    ],
)
def test_nothing_but_arithmetic_is_run(python, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for source in (line(python, "1"), f"#define T {python}\n" + line("T", "1")):
        with pytest.raises(LaunchLineError):
            launch_of(source, WIDE)
    assert not list(tmp_path.iterdir()) and not capsys.readouterr().out


def test_what_no_gpu_takes_is_told_with_the_line_and_the_problem():
    with pytest.raises(LaunchError) as error:
        launch_of("\n" + line("16, 16", "N/16, M/64").strip(), WIDE)
    assert str(error.value) == (
        "grid (62, 0) has no blocks; every size must be at least 1\n"
        "    2 | // launch: block (16, 16), grid (N/16, M/64); for the reader (and nobody else)\n"
        "for matmul M=33 N=1000 K=7 float32 alpha=3 beta=0"
    )
    with pytest.raises(LaunchError, match=r"block \(33, 33\) has 1089 threads"):
        launch_of(line("33, 33", "1"), WIDE)


SIZE = 2**17


@pytest.mark.parametrize(
    "source",
    [
        "".join(f"#define A{n} A{n + 1} + A{n + 1}\n" for n in range(5000)) + line("A0", "1"),
        "".join(f"#define A{n + 1} A{n}\n" for n in range(5000)) + "#define A0 1\n" + line("A5000", "1"),
        "".join(f"#define A{n} A{(n + 1) % 60} * A{(n + 7) % 60}\n" for n in range(60)) + line("A0", "1"),
        "#define A " + " " * SIZE + line("A", "1"),
        "#define A " + "1 " * SIZE + line("A", "1"),
        "#define A" + "\t/" * SIZE + line("A", "1"),
        "#ifndef A " * (SIZE // 10) + line("A", "1"),
        "#ifndef A\n" * (SIZE // 10) + line("A", "1"),
        " " * SIZE + line("A", "1") + "/" * SIZE,
        "// " + " " * SIZE + "launch" + " " * SIZE + ": block (",
        "// launch: block (" * (SIZE // 10),
        "// launch: block (" + "), grid (" * 50 + ")" * 20,
        "// launch:\n" * (SIZE // 10),
        line("A", "1") + "#define A " + "(" * SIZE,
        line("A", "1") + "const " * SIZE,
        line("A", "1") + "const int A =" * SIZE,
        line("A", "1") + "const int B = 1, " * SIZE,
        line("A", "1") + "const int A = A;" * SIZE,
        line("A", "1") + "/*" * SIZE,
        line("A", "1") + "const #" * SIZE,
    ],
    ids=lambda source: f"{source[:24]}…",
)
def test_a_source_takes_time_in_proportion_to_its_length(source):
    """One line more of doubling macros, or a regular expression that goes back, would take minutes."""
    with pytest.raises(LaunchLineError):
        launch_of(source, WIDE)


def test_macros_that_use_macros_are_worked_out_once():
    doubling = "".join(f"#define A{n} A{n + 1} + A{n + 1}\n" for n in range(9)) + "#define A9 1\n"
    assert launch_of(doubling + line("A0", "A1"), WIDE) == ((256, 1, 1), (512, 1, 1))
