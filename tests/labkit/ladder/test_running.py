"""The rungs by name: what a case is, that wrong results are not timed, and the references on a GPU."""

import numpy as np
import pytest

from labkit import kernels, records
from labkit.devices.select import NoGpu
from labkit.devices.timing import SIMULATED
from labkit.figures import curves
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import families, problem, problem_class
from labkit.kernels.transpose.family import Transpose
from labkit.ladder import running
from simt.common.compare import Mismatch

PRODUCT, PLANE = Matmul(33, 20, 17), Transpose(33, 20)


@pytest.fixture
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def test_rungs_are_all_kernels_but_the_ceiling_and_those_for_other_shapes():
    for family in ("matmul", "transpose"):
        ceiling = [name for name in kernels.names(family) if name.endswith("peak")]
        beside = [name for name in kernels.names(family) if "_few_" in name]
        rungs = [*ceiling, *running.rungs(family).values()]
        assert [name for name in kernels.names(family) if name not in beside] == rungs
    assert list(running.rungs("matmul"))[:3] == ["naive", "naive_uncoalesced", "tiled"]
    assert running.rungs("transpose")["padded"] == "transpose/3_padded"


@pytest.mark.parametrize("name", ["naive", "tiled", "register_tile"])
def test_a_row_says_which_kernel_ran_and_how(simulator, name):
    place = running.case(name, PRODUCT).place()
    assert set(place) == set(records.COLUMNS)
    assert (place["problem"], place["kernel"], place["dtype"]) == ("matmul", name, "float32")
    assert (place["m"], place["n"], place["k"], place["rows"]) == (33, 20, 17, None)
    macros = kernels.defaults(running.rungs("matmul")[name])
    if name == "register_tile":
        threads = macros["TILE_M"] * macros["TILE_N"] // macros["THREAD_M"] // macros["THREAD_N"]
        assert (place["block_x"], place["block_y"], place["tile"]) == (threads, 1, None)
        assert f"TILE_M={macros['TILE_M']} TILE_N={macros['TILE_N']}" in place["note"]
    else:
        side = macros.get("TILE", 32)
        assert (place["block_x"], place["block_y"], place["note"]) == (side, side, "")
        assert place["tile"] == macros.get("TILE")


def test_parameters_replace_the_defaults(simulator):
    place = running.case("unrolled", PLANE, TILE=16, ROWS=4).place()
    assert (place["block_x"], place["block_y"], place["tile"], place["note"]) == (16, 4, 16, "ROWS=4")
    assert running.case("tiled", PRODUCT) == running.case(
        "tiled", PRODUCT, TILE=kernels.defaults("matmul/2_tiled")["TILE"]
    )


@pytest.mark.parametrize(
    ("rung", "shape"), [("naive", PRODUCT), ("vectorised", PRODUCT), ("naive", PLANE), ("copy", PLANE)]
)
def test_a_time_in_the_simulator_is_labelled_so(simulator, rung, shape):
    rows = running.time_rung(rung, shape)
    assert list(rows.columns) == [*records.COLUMNS, "source"]
    assert list(rows.quantity) == ["time", "time_p20", "time_p80", "clock", "samples"]
    assert list(rows.unit) == ["ms", "ms", "ms", "MHz", "1"]
    time, p20, p80 = rows.value[:3]
    assert 0 < p20 <= time <= p80
    assert set(rows.source) == {SIMULATED} and set(rows.machine) == {"simt"}


def test_other_names_are_refused(simulator):
    with pytest.raises(ValueError, match=r"matmul has no rung 'shared'. Choose one of naive, .*, cublas\."):
        running.case("shared", PRODUCT)
    with pytest.raises(ValueError, match=r"transpose has no rung 'cublas'. Choose one of copy, .*, memcpy\."):
        running.case("cublas", PLANE)


def test_macros_that_a_rung_does_not_have_are_refused(simulator):
    """Else the table would say TIEL=8 beside the time of the default tile."""
    with pytest.raises(ValueError, match=r"tiled has no macro TIEL to choose; it has TILE\."):
        running.case("tiled", PRODUCT, TIEL=8)
    with pytest.raises(ValueError, match=r"tuned has no macro TILE to choose; it has TILE_M, TILE_N"):
        running.time_rung("tuned", PRODUCT, TILE=8)
    with pytest.raises(ValueError, match=r"naive has no macro DTYPE to choose; it has TILE\."):
        running.case("naive", PRODUCT, DTYPE="double")
    with pytest.raises(ValueError, match=r"cublas has no macro TILE to choose; it has none\."):
        running.case("cublas", PRODUCT, TILE=8)


def test_a_product_that_reads_c_is_verified_and_timed(simulator):
    """C is an input then, which a launch uses up."""
    rows = running.time_rung("tiled", Matmul(33, 20, 17, alpha=3, beta=-2))
    assert rows.value[0] > 0


@pytest.mark.parametrize(("alpha", "beta", "has_error"), [(1, 0, True), (3, 0, False), (1, 2, False)])
def test_the_error_is_that_of_a_b_alone(simulator, monkeypatch, alpha, beta, has_error):
    monkeypatch.setattr("labkit.kernels.matmul.family.EXAMINED", ("naive",))
    rows = running.time_rung("naive", Matmul(33, 20, 17, alpha=alpha, beta=beta))
    found = rows.value[rows.quantity == "error"]
    assert len(found) == has_error and found.lt(1e-6).all()


def test_a_problem_that_is_done_with_takes_no_memory(simulator):
    from labkit.kernels import problem as problems

    for each, _ in running.measure([running.case("naive", PRODUCT), running.case("naive", PLANE)]):
        assert problems._solved.cache_info().currsize == 1, each
    assert problems._solved.cache_info().currsize == 0


def test_an_error_of_a_library_is_told_and_the_next_case_measured(simulator, monkeypatch):
    def refuse(case, args):
        if case.rung == "naive":
            raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")  # CuPy's errors are RuntimeErrors
        return real(case, args)

    real = running.launcher
    monkeypatch.setattr(running, "launcher", refuse)
    (_, first), (_, second) = running.measure([running.case(name, PRODUCT) for name in ("naive", "tiled")])
    assert str(first) == "CUBLAS_STATUS_NOT_SUPPORTED" and second[0]["quantity"] == "time"


@pytest.mark.parametrize(("rung", "shape"), [("cublas", PRODUCT), ("memcpy", PLANE)])
def test_references_are_not_simulated(simulator, rung, shape):
    with pytest.raises(NoGpu, match=f"{rung} is NVIDIA's own"):
        running.time_rung(rung, shape)


def test_a_wrong_result_is_not_timed_even_on_arrays_that_hold_the_right_one(simulator, monkeypatch):
    cases = [running.case("naive", PRODUCT), running.case("tiled", PRODUCT), running.case("naive", PLANE)]
    real = running.launcher

    def lazy(case, args):
        return (lambda: None) if case.rung == "tiled" else real(case, args)

    monkeypatch.setattr(running, "launcher", lazy)
    (_, first), (_, second), (_, third) = running.measure(cases)
    assert first[0]["quantity"] == "time" and len(third) == len(first)
    assert isinstance(second, Mismatch) and "Nothing has changed" in str(second)
    with pytest.raises(Mismatch):
        running.time_rung("tiled", PRODUCT)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_a_copy_is_compared_with_the_input(simulator, dtype):
    plane = Transpose(5, 7, dtype=dtype)
    args = plane.args(np)
    case = running.case("copy", plane)
    running.poison(args[1])
    with pytest.raises(Mismatch, match=r"element 0 of the copy .* 35 of 35 elements are wrong"):
        running.verify(case, args)
    args[1].ravel()[:] = args[0].ravel()
    running.verify(case, args)
    args[1][1, 2] = args[0][0, 0]
    with pytest.raises(Mismatch, match="1 of 35") as caught:
        running.verify(case, args)
    assert caught.value.index == (7,)  # out is (7, 5)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_poison_is_what_the_problem_starts_with(dtype):
    shape = Matmul(3, 4, 5, dtype=dtype)
    fresh, used = shape.inputs()[2], np.ones((3, 4), dtype)
    running.poison(used)
    assert used.tobytes() == fresh.tobytes()


def test_no_gpu_has_no_times_of_one(simulator):
    """`plots` leave an empty set out, so the same cell works on any machine."""
    rows = running.here(PRODUCT, "naive", "tiled")
    assert rows.empty and list(rows.columns) == [*records.COLUMNS, "source"]
    assert running.here(PLANE).empty
    report = records.load("int-matmul", "time", block_x=32)
    assert len(curves.time_by_size(report, here=[rows]).axes[0].lines) == 2


@pytest.mark.gpu
class TestGpu:
    @pytest.mark.parametrize("family", families())
    def test_every_rung_and_reference_is_right_and_timed(self, gpu, family):
        # Rows of tensor maps are multiples of 16 bytes, 8 halves.
        sizes = (300, 208, 104) if family == "tensor_matmul" else (300, 203, 101)
        shape = problem(family, *sizes[: len(problem_class(family).size_names)])
        names = [*running.rungs(family), problem_class(family).reference_name]
        found = dict(running.measure([running.case(name, shape) for name in names]))
        assert not [wrong for wrong in found.values() if isinstance(wrong, Exception)]
        assert len(found) == len(names)

    @pytest.mark.parametrize("sizes", [(1, 1, 1), (33, 65, 17), (512, 256, 128)])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_cublas_takes_row_major_arrays_alpha_and_beta(self, gpu, sizes, dtype):
        shape = problem("matmul", *sizes, dtype=dtype, alpha=1.5, beta=-0.5)
        args = shape.args(gpu)
        running.launcher(running.case("cublas", shape), args)()
        shape.verify(args[2])

    def test_cublas_multiplies_float32_in_full(self, gpu, monkeypatch):
        monkeypatch.setenv("CUPY_TF32", "1")
        shape = Matmul(1024, 1024, 1024)
        args = shape.args(gpu)
        running.launcher(running.case("cublas", shape), args)()
        exact = args[0].astype("f8") @ args[1].astype("f8")
        # Inputs rounded to TF32's 11 bits would be off by 2^-12 of a term on average, in 1024 terms: 4e-3.
        assert float(abs(args[2] - exact).mean()) < 2e-5

    def test_times_from_here_are_those_of_the_chosen_rungs(self, gpu):
        rows = running.here(Matmul(512, 512, 512), "naive", "tiled", "cublas")
        assert list(rows.kernel) == ["naive", "tiled", "cublas"] and set(rows.quantity) == {"time"}
        assert rows.source.str.startswith("measured here: ").all() and (rows.value > 0).all()

    def test_cublas_has_no_int32(self, gpu):
        with pytest.raises(ValueError, match="cuBLAS has no product of int32"):
            running.time_rung("cublas", Matmul(8, 8, 8, dtype="int32"))

    def test_the_reference_is_no_slower_than_the_first_rung_and_measured_alike_twice(self, gpu):
        plane = Transpose(8192, 8192)
        names = ("memcpy", "naive", "memcpy")
        reference, naive, again = (running.time_rung(name, plane).value[0] for name in names)
        assert reference < naive
        assert again == pytest.approx(reference, rel=0.05)
