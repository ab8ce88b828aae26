"""`labkit.step` and the button below a failed check: what they show, without a page."""

import json
import re

import numpy as np
import pytest

import labkit
import simt
from labkit.widgets.step import picture

SHIFT = """extern "C" __global__ void shift(float *x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}"""


@pytest.fixture(scope="module")
def view():
    kernel = simt.RawModule(code=SHIFT).get_function("shift")
    return labkit.step(kernel, 1, 64, (np.arange(64, dtype=np.float32),), gpu="H200")


def test_the_text_names_block_order_and_mistakes(view):
    text = repr(view)
    assert text.startswith("Block (0, 0, 0) of `shift`: 2 warps with ")
    assert "warp 0 first" in text
    assert "line 4: race (read after write)" in text


def test_a_saved_output_has_the_page_a_picture_and_the_text(view):
    data = view._repr_mimebundle_()
    data = data[0] if isinstance(data, tuple) else data
    assert data["text/plain"] == repr(view)
    html = data["text/html"]
    assert '<img alt="When' in html  # for where scripts do not run
    assert "showAll();" in html
    assert "http://" not in re.sub(r"http://www.w3.org/\d+/\w+", "", html)
    assert "https://" not in html  # nothing is fetched
    (told,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert json.loads(told.replace("<\\/", "</")) == json.loads(view.recording)


def test_the_picture_has_a_row_per_warp_and_a_mark_per_side(view):
    drawn = str(picture(view.recorded))
    assert [f"warp {number}" in drawn for number in range(3)] == [True, True, False]
    sides = [event for each in json.loads(view.recording)["findings"] for event in each["events"]]
    assert drawn.count("l5 -8h-10z") == len(sides) > 0


def test_machine_code_stands_beside_on_demand(view):
    code = json.loads(view.recording)["machine_code"]
    assert code["gpu"] == "H200"
    assert any("STS" in each["text"] for each in code["lines"])
