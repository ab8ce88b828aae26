"""Criteria for a product that is launched as its own line says: the line, the results, the reasons."""

import re

import pytest

import simt
from labkit.course.criteria import products
from labkit.course.exercise import Unmet
from labkit.course.fresh_inputs import drawn
from labkit.figures.own_product import MEASURED
from labkit.kernels.matmul.family import Matmul

HEAD = (
    'extern "C" __global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K,\n'
    "                                  float alpha, float beta)\n"
)
BODY = """{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0;
    for (int k = 0; k < K; ++k)
        sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = alpha * sum + (beta != 0 ? beta * C[row * N + col] : 0);
}
"""
LINE = "block (16, 16), grid (ceil(N/16), ceil(M/16))"
SIZES = Matmul(5, 7, 3), Matmul(20, 33, 4, alpha=3, beta=-2)


def kernel(*replacements, line=LINE):
    body = BODY
    for old, new in replacements:
        assert old in body
        body = body.replace(old, new)
    return simt.RawModule(code=f"// launch: {line}\n{HEAD}{body}").get_function("matmul")


def refused(criterion, answer):
    with pytest.raises(Unmet) as unmet:
        criterion.test(answer)
    return str(unmet.value)


class TestLaunchLine:
    asked = products.launches("text", *SIZES)

    def test_a_line_that_rounds_up(self):
        self.asked.test(kernel())

    def test_one_that_rounds_down_leaves_no_block(self):
        assert refused(self.asked, kernel(line="block (16), grid (N/16, M)")).endswith(
            f"\n{products.ROUND_UP}"
        )

    def test_every_size_is_tried(self):
        """M/16 is 0 for the first alone, N/33 too; 7/N for the second."""
        for grid in ("M/16", "N/33", "7/N"):
            assert refused(self.asked, kernel(line=f"block (16), grid ({grid})")).endswith(products.ROUND_UP)

    def test_another_mistake_has_no_hint_on_rounding(self):
        assert products.ROUND_UP not in refused(self.asked, kernel(line="block (2000), grid (1)"))


class TestRightAsLaunched:
    asked = products.right_as_launched("text", *SIZES)
    hinted = products.right_as_launched("text", *SIZES, hint="<hint>")

    def test_right(self):
        self.asked.test(kernel())
        self.asked.test(kernel(line="block (32, 2), grid (ceil(N/32), ceil(M/2))"))

    def test_wrong_results(self):
        """All of 5 x 7 elements lie at an edge; 64 x 64 have none, as the largest tile fits them."""
        wrong = kernel(("sum = 0", "sum = row + 2 * col + 1"))
        assert refused(self.asked, wrong).endswith(f"\n{products.REACH}")
        whole = products.right_as_launched("text", Matmul(64, 64, 64))
        assert refused(whole, wrong).endswith(f"\n{products.MAPPING}")
        assert refused(self.hinted, wrong).endswith("\n<hint>")

    def test_the_second_problem_asks_for_more(self):
        told = refused(self.asked, kernel(("beta != 0 ? beta", "beta != 0 ? 5")))
        assert told.startswith("matmul M=20 N=33 K=4 float32 alpha=3 beta=-2, ")

    def test_a_finding_is_told_with_its_line_and_the_hint_that_fits(self):
        told = refused(self.hinted, kernel(("row >= M || ", "")))
        assert re.search(r"\nmemcheck finds: line 10: invalid global \w+", told)
        assert told.endswith(f"\n{products.GUARD}") and "<hint>" not in told

    def test_old_elements_that_are_read_in_vain(self):
        told = refused(
            self.hinted, kernel(("(beta != 0 ? beta * C[row * N + col] : 0)", "beta * C[row * N + col]"))
        )
        assert "C[0, 0] is nan" in told and "initcheck finds: " in told and told.endswith(products.UNREAD)

    def test_only_a_part_is_covered(self):
        asked = products.right_as_launched("text", Matmul(20, 33, 4))
        told = refused(asked, kernel(line="block (16, 16), grid (1, ceil(M/16))"))
        assert "columns 16 to 32 of 20 x 33" in told and told.endswith(products.COVER)

    def test_a_line_that_is_wrong(self):
        assert refused(self.asked, kernel(line="block (16), grid (M/16)")).endswith(products.ROUND_UP)

    def test_further_sizes_are_drawn(self):
        fits = "if (N != 7 && N != 33) sum = 0;\n    C[row"
        known = kernel(("C[row * N + col] = alpha", f"{fits} * N + col] = alpha"))
        self.asked.test(known)
        with drawn(1, "10.2"):
            refused(self.asked, known)
            self.asked.test(kernel())


def test_what_is_counted_is_stated_or_drawn(monkeypatch):
    """Tiles of 32, 48, 64, 96 and 128 fit each of the products, and 32 terms at a time."""
    asked = []
    monkeypatch.setattr(products, "_counted", lambda kernel, problem, seed: asked.append((problem, seed)))
    products._figures(None)
    for seed in range(30):
        with drawn(seed, "10.3"):
            products._figures(None)
    assert asked[0][0] == MEASURED and len({seed for _, seed in asked}) == 31
    counted = {problem for problem, _ in asked}
    assert len(counted) == 5 and {(each.alpha, each.beta) for each in counted} == {(1, 0)}
    for each in counted:
        assert not [tile for tile in (32, 48, 64, 96, 128) if each.M % tile or each.N % tile]
        assert each.K % 32 == 0 and 64 <= each.K <= 128


def test_figures_are_counted_where_the_launch_is_right(monkeypatch):
    small = Matmul(16, 16, 8)
    figures = products._counted(kernel(), small, 0)
    assert figures.problem == small and figures.multiply_adds == 2048
    with pytest.raises(Unmet) as unmet:
        products._counted(kernel(("sum = 0", "sum = row + 2 * col + 1")), small, 0)
    assert str(unmet.value).endswith(products.REACH)
