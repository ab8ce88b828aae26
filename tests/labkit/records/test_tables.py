"""Tables of figures: what a file holds, what a frame makes of it, and what is said of a wrong line."""

import pandas as pd
import pytest

from labkit.records import tables
from labkit.records.tables import COLUMNS, HEADER, frame_of, listed, read, select, sides_of, sizes_of, text_of

LINE = ",NVIDIA H200,matmul,naive,float32,m=32 n=16 k=8,16,8,,time,ms,0.25,\n"
TRANSPOSE = "int-transpose,,transpose,naive,int32,rows=64 cols=32,,,32,bandwidth,GB/s,7.5,printed GB\n"


@pytest.fixture
def file(tmp_path):
    """Write lines below the header, and return the path."""

    def written(*lines, header=HEADER):
        path = tmp_path / "figures.csv"
        path.write_text(header + "".join(lines), encoding="utf-8")
        return path

    return written


class TestRead:
    def test_a_file_has_one_column_of_sizes_and_a_frame_one_for_each(self, file):
        frame = read(file(LINE, TRANSPOSE))
        assert tuple(frame.columns) == COLUMNS and len(frame) == 2
        assert frame[["m", "n", "k"]].iloc[0].tolist() == [32, 16, 8]
        assert frame[["rows", "cols", "tile"]].iloc[1].tolist() == [64, 32, 32]
        assert frame.value.tolist() == [0.25, 7.5]
        assert frame.note.tolist() == ["", "printed GB"]

    def test_what_is_not_stated_is_an_empty_text_or_a_missing_number(self, file):
        frame = read(file(LINE, TRANSPOSE, LINE.replace("0.25", "")))
        assert frame.report.tolist() == ["", "int-transpose", ""]
        assert frame.m.isna().tolist() == [False, True, False]
        assert frame.block_x.isna().tolist() == [False, True, False]
        assert frame.value.isna().tolist() == [False, False, True]

    def test_numbers_have_their_types(self, file):
        frame = read(file(LINE))
        assert {str(frame[name].dtype) for name in tables.INTEGERS} == {"Int64"}
        assert str(frame.value.dtype) == "float64"

    def test_a_family_may_have_sizes_of_its_own(self, file):
        frame = read(file(LINE.replace("m=32 n=16 k=8", "length=100"), LINE))
        assert tuple(frame.columns) == (*COLUMNS, "length")
        assert frame.length.tolist() == [100, pd.NA] and frame.n.tolist() == [pd.NA, 16]

    def test_a_size_may_be_left_open(self, file):
        frame = read(file(LINE.replace("n=16 ", "n=16 rows= cols= ")))
        assert frame.n.tolist() == [16] and frame["rows"].isna().all()

    def test_a_file_without_a_line(self, file):
        frame = read(file())
        assert tuple(frame.columns) == COLUMNS and frame.empty

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nothing\.csv is missing"):
            read(tmp_path / "nothing.csv")

    def test_other_columns_are_named(self, file):
        path = file(header=HEADER.replace("kernel", "kernels").replace("note\n", "note,gpu\n"))
        with pytest.raises(ValueError, match=r"\(missing: kernel; not known: gpu, kernels\)"):
            read(path)

    def test_the_order_of_the_columns_counts(self, file):
        with pytest.raises(ValueError, match=r"in this order \(missing: none; not known: none\)"):
            read(file(header=HEADER.replace("report,machine", "machine,report")))

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            (LINE.replace("0.25", "fast"), "value 'fast'"),
            (LINE.replace("0.25", "nan"), "value 'nan'"),
            (LINE.replace(",16,8,", ",16,x,"), "block_y 'x'"),
            (LINE.replace(",16,8,", ",16.5,8,"), "block_x '16.5'"),
            (LINE.replace("n=16", "n=many"), "n 'many'"),
            (LINE.replace("n=16", "n=0.5"), "n '0.5'"),
            (LINE.replace("n=16", "n=inf"), "n 'inf'"),
            (LINE.replace("m=32 n=16", "m=32 n16"), "size 'm=32 n16 k=8'"),
            (LINE.replace("m=32 n=16", "m = 32 n=16"), "size 'm = 32 n=16 k=8'"),
        ],
    )
    def test_a_wrong_cell_is_told_with_its_line_and_column(self, file, wrong, told):
        path = file(LINE, wrong, LINE)
        with pytest.raises(ValueError) as error:
            read(path)
        assert str(error.value).startswith(f"{path}, line 3: {told} is not ")

    @pytest.mark.parametrize("cut", [1, 2])
    def test_a_line_with_too_few_cells_is_told(self, file, cut):
        path = file(LINE, ",".join(LINE.rstrip().split(",")[:-cut]) + "\n")
        with pytest.raises(ValueError, match=rf"figures\.csv, line 3: {13 - cut} cells.* 13"):
            read(path)

    @pytest.mark.parametrize("lines", [(LINE, f"{LINE.rstrip()},\n"), (f"{LINE.rstrip()},\n",)])
    def test_a_line_with_too_many_cells_is_told(self, file, lines):
        with pytest.raises(ValueError, match=rf"figures\.csv, line {1 + len(lines)}: 14 cells.* 13"):
            read(file(*lines))

    def test_a_note_may_have_commas_and_line_breaks(self, file):
        two_lines = TRANSPOSE.replace("printed GB", '"one, two\nand three"')
        frame = read(file(two_lines, "\n", LINE))
        assert frame.note.tolist() == ["one, two\nand three", ""]
        with pytest.raises(ValueError, match=r"line 5: value 'fast'"):  # as an editor counts
            read(file(two_lines, "\n", LINE.replace("0.25", "fast")))


class TestWrite:
    frame = frame_of(
        [
            {"kernel": "naive", "m": 32, "n": 16, "k": 8, "value": 1 / 3, "quantity": "time"},
            {"kernel": "tree", "length": 100, "block_x": 256, "value": 2, "note": 'a "note", quoted'},
        ]
    )

    def test_text(self):
        assert text_of(self.frame, "%.4g").splitlines() == [
            ",,,naive,,m=32 n=16 k=8,,,,time,,0.3333,",
            ',,,tree,,length=100,256,,,,,2,"a ""note"", quoted"',
        ]

    def test_without_digits_nothing_is_rounded(self):
        assert text_of(self.frame).splitlines()[0].endswith(",time,,0.3333333333333333,")

    def test_what_was_written_is_read(self, tmp_path):
        tables.write(tmp_path / "x.csv", self.frame)
        assert (tmp_path / "x.csv").read_bytes().startswith(HEADER.encode())
        again, numbers = read(tmp_path / "x.csv"), [*tables.INTEGERS, "length", "value"]
        pd.testing.assert_frame_equal(again[numbers], self.frame[numbers])
        assert again.kernel.tolist() == ["naive", "tree"] and again.quantity.tolist() == ["time", ""]
        assert again.note.tolist() == ["", 'a "note", quoted']


class TestFrameOf:
    def test_columns_and_types(self):
        frame = frame_of([{"kernel": "a", "zeros": 3, "value": 2, "source": "made up"}, {"m": 5}])
        assert tuple(frame.columns) == (*COLUMNS, "zeros", "source")
        assert frame.zeros.tolist() == [3, pd.NA] and frame.m.tolist() == [pd.NA, 5]
        assert str(frame.m.dtype) == str(frame.zeros.dtype) == "Int64"
        assert frame.value.dtype == "float64"

    def test_no_rows(self):
        assert tuple(frame_of(iter(())).columns) == (*COLUMNS, "source")


class TestSizes:
    frame = frame_of([{"m": 4, "n": 5, "k": 6, "rows": 1, "depth": 9, "value": 2.0}])

    def test_all_sizes_and_no_rate_that_a_student_adds(self):
        with_rate = self.frame.assign(rate=1.5, name="x")
        assert sizes_of(with_rate) == ["m", "n", "k", "rows", "cols", "depth"]

    def test_a_product_is_written_m_k_n(self):
        assert sides_of(self.frame) == ["m", "k", "n", "rows", "cols", "depth"]
        assert sides_of(self.frame[["rows", "cols", "value"]]) == ["rows", "cols"]


class TestSelect:
    frame = pd.DataFrame(
        {"kernel": ["a", "b", "a", "c"], "n": pd.array([1, 2, None, 2], "Int64"), "note": ["", "x", "", ""]}
    )

    @pytest.mark.parametrize(
        ("wanted", "places"),
        [
            ({}, [0, 1, 2, 3]),
            ({"kernel": None}, [0, 1, 2, 3]),
            ({"kernel": "a"}, [0, 2]),
            ({"kernel": ["b", "c"]}, [1, 3]),
            ({"kernel": ("a", "c"), "n": 2}, [3]),
            ({"n": ""}, [2]),
            ({"note": ""}, [0, 2, 3]),
            ({"kernel": "a", "n": [1, 1]}, [0]),
        ],
    )
    def test_rows_with_the_wanted_values(self, wanted, places):
        found = select(self.frame.assign(place=range(4)), wanted)
        assert found.place.tolist() == places
        assert found.index.tolist() == list(range(len(places)))

    def test_a_column_that_is_not_there(self):
        with pytest.raises(ValueError, match=r"^no column 'size'; columns: kernel, n, note$"):
            select(self.frame, {"size": 1})

    def test_a_value_that_no_row_has(self):
        with pytest.raises(ValueError, match=r"^no record has n=3; n is one of: 1, 2, \(empty\)$"):
            select(self.frame, {"n": [2, 3]})

    def test_a_value_that_no_row_has_which_is_left(self):
        told = r"^no record has n=1 where kernel=\['b', 'c'\], note=''; n is one of: 2$"
        with pytest.raises(ValueError, match=told):
            select(self.frame, {"kernel": ["b", "c"], "note": "", "n": 1})


def test_a_list_in_a_message():
    assert listed(["b", "", 3]) == "b, (empty), 3"
    assert listed([]) == "none"
