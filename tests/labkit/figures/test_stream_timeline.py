"""The picture of what streams did when."""

import re

import pytest

from labkit.figures.stream_timeline import stream_timeline

# Two streams bring a chunk each: the second waits from 0 until the engine has made the first copy.
PRINTED = """stream 0 chunk 0 to the GPU 0.0000 0.0100
stream 0 chunk 0 kernel 0.0100 0.0250
stream 1 chunk 1 to the GPU 0.0000 0.0200
stream 1 chunk 1 kernel 0.0200 0.0350
stream 0 chunk 0 back 0.0250 0.0350
stream 1 chunk 1 back 0.0350 0.0450
"""


def bars(svg):
    """Return (x, width, is pale) of each bar, without the legend's squares."""
    found = re.findall(r"<rect ([^>]*)>", svg)
    rows = [dict(re.findall(r'([\w-]+)="([^"]*)"', each)) for each in found]
    return [
        (float(row["x"]), float(row["width"]), "opacity" in row)
        for row in rows
        if row.get("height") == "22" and "fill" in row
    ]


def test_a_copy_that_waits_for_the_engine_is_pale_until_it_begins():
    drawn = bars(str(stream_timeline(PRINTED, "Predicted.")))
    pale = [each for each in drawn if each[2]]
    assert len(drawn) == 7 and len(pale) == 1
    first, waiting = drawn[0], pale[0]
    second = drawn[drawn.index(waiting) + 1]
    assert waiting[0] == first[0]  # it begins to wait with the first copy
    assert second[0] == pytest.approx(waiting[0] + waiting[1])  # and copies when that is made
    assert second[1] == pytest.approx(first[1], abs=0.1)  # as long as the first


def test_one_stream_never_waits_for_an_engine():
    one = "".join(line for line in PRINTED.splitlines(keepends=True) if line.startswith("stream 0"))
    assert not any(is_pale for _, _, is_pale in bars(str(stream_timeline(one, "Predicted."))))
