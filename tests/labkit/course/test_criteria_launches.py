"""The launches that criteria try: their sizes, their arguments, and what is looked at when they have run."""

import numpy as np
import pytest

import simt
from labkit.course.criteria.launches import Given, Launch, all_of, in_blocks, of_vector, tiled
from labkit.course.fresh_inputs import drawn
from labkit.kernels.matmul.family import Matmul

HEAD = 'extern "C" __global__ void copy(const float* in, float* out, int n)\n{\n'
INDEX = "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


def kernel(body, top=""):
    return simt.RawModule(code=f"{top}{HEAD}{INDEX}{body}}}").get_function("copy")


def counted(rng, n=4):
    return np.arange(n, dtype=np.float32), np.arange(n, dtype=np.float32)


class TestSizes:
    @pytest.mark.parametrize(("n", "blocks"), [(1, 1), (32, 1), (33, 2), (64, 2)])
    def test_a_thread_for_each_element(self, n, blocks):
        launch = of_vector(counted, 32, n, unit=0.25)
        assert (launch.grid, launch.block, launch.shared_mem, launch.times) == ((blocks,), (32,), 0, 1)
        assert (launch.task.sizes, launch.task.unit, str(launch.task)) == ((n,), 0.25, f"n={n}")
        assert of_vector(counted, 32, n).task.unit == 0

    def test_vectors_of_other_lengths_have_other_numbers(self):
        assert of_vector(counted, 32, 4).task.seed != of_vector(counted, 32, 5).task.seed

    def test_rows_are_along_y(self):
        """C has 20 rows and 30 columns."""
        assert in_blocks(Matmul(20, 30, 8), 10, 4).grid == (3, 5)
        assert in_blocks(Matmul(20, 30, 8), 4, 10).grid == (8, 2)

    def test_blocks_of_16_x_16_where_nothing_else_is_said(self):
        assert (tiled(Matmul(33, 16, 8)).grid, tiled(Matmul(33, 16, 8)).block) == ((1, 3), (16, 16))

    def test_a_launch_of_each_size(self):
        launches = all_of(lambda *size: size, 7, (3, 9))
        assert launches(None) == [(7,), (3, 9)]

    def test_further_sizes_keep_what_divides_them(self):
        with drawn(1, "12.5"):
            found = all_of(lambda n: n, 256, 1024, whole=256)(None)
        assert found[:2] == [256, 1024] and len(found) == 3 and found[2] % 256 == 0

    def test_other_sizes_are_any_where_nothing_has_to_divide_them(self):
        found = set()
        for seed in range(9):
            with drawn(seed, "12.5"):
                found |= {size % 256 for size in all_of(lambda n: n, 256, 1024)(None)[2:]}
        assert len(found) > 3


class TestGiven:
    def test_the_output_stands_before_the_sizes(self):
        for sizes in ((), (4,), (2, 2)):
            given = Given("", counted, sizes)
            args = given.args()
            assert len(args) == 2 + len(sizes) and given.output(args) is args[1]
            assert [type(each) for each in args[2:]] == [np.int32] * len(sizes)

    def test_numbers_come_from_the_seed(self):
        def make(rng):
            return (rng.random(3),) * 2

        first, again, other = (Given("", make, (), seed).args()[0] for seed in (0, 0, 1))
        assert (first == again).all() and (first != other).all()
        assert (Given("", make, ()).args()[0] == first).all()

    def test_without_a_unit_all_must_be_equal(self):
        given = Given("", counted, ())
        given.verify(np.arange(4, dtype=np.float32))
        with pytest.raises(AssertionError, match="1 of 4"):
            given.verify(np.array([0, 1, 2, np.nextafter(3, 4, dtype=np.float32)], np.float32))

    def test_negative_elements_may_be_off_too(self):
        Given("", lambda rng: (np.full(1, -2, np.float32),), (), unit=0.5).verify(np.full(1, -3, np.float32))


def of_output(starts_at_0=False):
    return Launch(Given("", counted, (4,), starts_at_0=starts_at_0), (1,), (4,))


class TestCheck:
    def test_an_output_that_must_not_be_read_counts_as_never_written(self):
        found, _ = of_output().check(kernel("    out[i] = out[i] == 7 ? 7 : in[i];\n"))
        assert [each.tool for each in found][:1] == ["initcheck"]

    def test_an_output_that_is_added_to_may_be_read(self):
        assert of_output(starts_at_0=True).check(kernel("    out[i] += in[i];\n")) == ([], None)

    def test_a_right_launch(self):
        assert of_output().check(kernel("    out[i] = in[i];\n")) == ([], None)

    def test_what_only_a_checked_launch_finds_wrong(self):
        """A barrier to which one thread of four comes."""
        found, wrong = of_output().check(kernel("    out[i] = in[i];\n    if (i == 0) __syncthreads();\n"))
        assert [each.tool for each in found] == ["synccheck"] and wrong is None


class TestRun:
    def test_it_begins_with_the_variables_as_they_are_declared(self):
        once = kernel("    out[i] = in[i] + calls;\n    calls = 1;\n", "__device__ int calls;\n")
        for _ in range(2):
            of_output().run(once)

    @pytest.mark.parametrize("times", [1, 3])
    def test_the_last_of_a_row_is_looked_at(self, times):
        """Thread 0 counts launches, and only that of this number is right."""
        body = f"    if (i == 0) ++calls;\n    out[i] = in[i] + (calls != {times});\n"
        given = Given("", lambda rng: (np.ones(1, np.float32),) * 2, (1,))
        Launch(given, (1,), (1,), times=times).run(kernel(body, "__device__ int calls;\n"))

    def test_a_row_is_named(self):
        launch = of_output()
        assert str(launch) == ", grid 1, block 4"
        row = Launch(launch.task, (1, 2), (4,), times=2)
        assert str(row) == ", grid (1, 2), block 4, launch 2 of 2 in a row"


class TestParts:
    """Blocks write one element each: block b the element b."""

    @staticmethod
    def launch(blocks):
        return Launch(Given("", lambda rng: counted(rng, blocks), (blocks,)), (blocks,), (1,))

    @pytest.mark.parametrize(
        ("blocks", "most", "written"), [(5, 2, [3, 2]), (2, 5, [1, 1]), (3, 3, [1, 1, 1]), (4, 1, [4])]
    )
    def test_every_so_many_blocks_are_a_part(self, blocks, most, written):
        assert self.launch(blocks).written_by_part(kernel("    out[i] = in[i];\n"), most) == written

    def test_writing_what_stood_there_is_no_writing(self):
        keeps = kernel("    if (i == 1) out[i] = in[i];\n    else out[i] = out[i];\n")
        assert self.launch(3).written_by_part(keeps, 3) == [0, 1, 0]

    def test_loads_of_global_memory_are_counted(self):
        shared = "    __shared__ float s[1];\n    s[0] = in[i];\n    out[i] = s[0] + s[0];\n"
        assert self.launch(3).loaded_by_block(kernel(shared)) == [1, 1, 1]
        uneven = kernel("    out[i] = in[i];\n    if (i == 2) out[i] += ((volatile const float*)in)[0];\n")
        assert self.launch(3).loaded_by_block(uneven)[:2] == [1, 1]
