"""What a predicted goal is verified with: drawn numbers, and the product as NumPy has it."""

import numpy as np
import pytest

from labkit import kernels
from labkit.course.criteria.predicted import product
from labkit.kernels.matmul.family import Matmul


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    return product(kernels.load("matmul/2_tiled", TILE=16), Matmul(96, 80, 64))


def test_both_inputs_have_numbers_of_either_sign(large):
    for contents in large.args[:2]:
        numbers = contents.array()
        assert numbers.min() < -0.9 < 0.9 < numbers.max()
        assert abs(numbers.mean()) < 0.1
    assert not np.array_equal(large.args[0].array().ravel()[:64], large.args[1].array().ravel()[:64])


def test_the_reference_is_the_product_within_its_bound(large):
    a, b = (contents.array().astype(np.float64) for contents in large.args[:2])
    places = np.random.default_rng(0).integers(0, 96 * 80, 500)
    right, bound = large.right(places)
    exact = (a @ b).ravel()[places]
    assert (np.abs(right - exact) <= bound).all()
    assert (bound < 1e-3).all() and (np.abs(exact).max() > 1)
