"""Tables as students read them: words for recorded names, and a dash for what was not measured."""

import xml.etree.ElementTree as ET

import pandas as pd

from labkit import records
from labkit.records.shown import WORDS, table


def test_numbers_have_the_decimals_of_their_column_and_what_is_missing_is_a_dash():
    frame = pd.DataFrame({"a": [0.1234, 12.0, None], "b": [1234.5, 100.4, 2000.0], "c": [1, 2, 3]})
    lines = str(table(frame)).splitlines()
    assert [line.split() for line in lines[:-1]] == [
        ["a", "b", "c"],
        ["0", "0.12", "1,234", "1"],
        ["1", "12.00", "100", "2"],
        ["2", "–", "2,000", "3"],
    ]
    assert lines[-1] == "– not measured, or not defined"
    assert "not measured" not in str(table(frame.dropna()))
    assert "0.1234" in str(table(frame, digits=4))


def test_words_stand_for_recorded_names_which_the_page_tells_on_pointing():
    name = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    frame = pd.DataFrame({"naive <T>": [0.52]}, index=pd.Index([name], name="quantity"))
    text, page = str(table(frame)), table(frame)._repr_html_()
    assert "loads: sectors asked of the L1" in text and name not in text and "quantity" not in text
    (span,) = ET.fromstring(page).iter("span")
    assert (span.get("title"), span.text) == (name, WORDS[name])
    assert "naive &lt;T&gt;" in page


def test_a_report_beside_an_h200_has_no_raw_name_and_no_nan():
    for report in records.reports():
        shown = table(records.beside(report))
        text = str(shown)
        assert "NaN" not in text and "_time" not in text and "quantity" not in text
        assert "–" not in text or "not measured" in text
        ET.fromstring(f"<div>{shown._repr_html_()}</div>")


def cells(frame, **options):
    """The cells of a table, row by row."""
    return table(frame, **options).cells.values.tolist()


def test_a_series_is_a_table_of_one_column():
    assert cells(pd.Series([1.5, 2], name="value")) == [["1.50"], ["2.00"]]


def test_decimals_are_those_of_the_column():
    frame = pd.DataFrame({"a": [100.5, 250.25], "b": [-0.5, 99.994], "c": [-1234.0, 5.0], "d": [99.9, 100.0]})
    assert cells(frame) == [["100", "-0.50", "-1,234", "99.90"], ["250", "99.99", "5", "100.00"]]
    assert cells(frame[["b"]], digits=1) == [["-0.5"], ["100.0"]]


def test_texts_stay_and_whatever_is_missing_is_a_dash():
    frame = pd.DataFrame({"a": ["naive", None, ""], "n": pd.array([1024, None, 2], "Int64")})
    assert cells(frame) == [["naive", "1,024"], ["–", "–"], ["", "2"]]


def test_columns_of_one_name_and_headings_of_two_levels_stay():
    columns = pd.MultiIndex.from_tuples([("64", "report"), ("64", "H200"), ("128", "report")])
    shown = table(pd.DataFrame([[1.0, 2.0, None]], index=["time"], columns=columns))
    assert shown.cells.columns.tolist() == columns.tolist()
    text = str(shown)
    assert "time, ms" in text and text.splitlines()[-1] == shown.note
    assert cells(pd.DataFrame([[1, 2]], columns=["a", "a"])) == [["1", "2"]]


def test_the_frame_itself_is_not_changed():
    frame = pd.DataFrame({"time": [0.5]}, index=pd.Index(["htod_time"], name="quantity"))
    before = frame.copy()
    str(table(frame)), table(frame)._repr_html_()
    pd.testing.assert_frame_equal(frame, before)


def test_a_page_escapes_cells_names_and_the_note():
    page = table(pd.DataFrame({"<b>": ["a<b", None]}))._repr_html_()
    assert "a&lt;b" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert "<p>–" in page
