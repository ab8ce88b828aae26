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
