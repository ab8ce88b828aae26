"""The map of a GPU: its figures are those of the tables, each with its origin, and a strip marks a part."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import labkit
from labkit.figures import gpu_map as module
from labkit.figures.svg import BLUE
from labkit.model import gpu_parts
from labkit.model.gpu_parts import PARTS, parts, sources
from simt.common.occupancy import gpu, gpus

DATA = Path(labkit.__file__).parent.parent / "data"
SVG = "{http://www.w3.org/2000/svg}"


def rows(table):
    with (DATA / table).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def limit(folder, quantity, variant):
    """The value as the table has it."""
    return next(
        float(row["value"])
        for row in rows(f"{folder}/limits.csv")
        if (row["quantity"], row["variant"]) == (quantity, variant)
    )


def texts(picture):
    return [each.text for each in ElementTree.fromstring(str(picture)).iter(f"{SVG}text") if each.text]


@pytest.mark.parametrize(("name", "folder"), [("H200", "h200"), ("H100 SXM5", "h100")])
def test_a_measured_gpu_has_the_figures_of_its_table(name, folder):
    """Sizes: NVIDIA, Hopper Tuning Guide, and CUDA C++ Programming Guide (an SM has four sub-partitions)."""
    found, row = parts(gpu(name)), next(row for row in rows("../simt/data/gpus.csv") if row["name"] == name)
    measured = {
        ("device memory", "latency"): limit(folder, "latency", "DRAM"),
        ("device memory", "rate"): limit(folder, "dram_copy", "1024 MiB"),
        ("L2 cache", "latency"): limit(folder, "latency", "L2"),
        ("L2 cache", "rate"): limit(folder, "l2_read", "32 MiB"),
        ("L1 cache", "latency"): limit(folder, "latency", "L1"),
        ("L1 cache", "rate"): limit(folder, "load_bandwidth", "LDG.128"),
        ("shared memory", "latency"): limit(folder, "latency", "shared"),
        ("shared memory", "rate"): 128 / limit(folder, "shared_clocks", "LDS.32, 1 words per bank"),
        ("warp scheduler", "rate"): limit(folder, "issue_rate", "FFMA") / 4,
        ("CUDA cores", "latency"): limit(folder, "latency", "FFMA"),
        ("host", "latency"): limit(folder, "launch", "1 block x 32"),
    }
    for (part, column), value in measured.items():
        figure = getattr(found[part], column)
        assert (figure.value, figure.origin) == (pytest.approx(value, rel=1e-9), "measured"), (part, column)
    sheet = {"device memory": float(row["memory_gb"]), "L2 cache": float(row["l2_mb"]), "L1 cache": 256}
    sheet |= {"shared memory": 228, "registers": 64, "warp scheduler": 16, "CUDA cores": 32}
    for part, value in sheet.items():
        assert (found[part].size.value, found[part].size.origin) == (value, "data sheet"), part
    assert found["tensor cores"].rate.value == pytest.approx(132 * 1980 * 4096 / 1e6)
    assert found["CUDA cores"].rate.value == pytest.approx(66.9, abs=0.05)


def test_the_host_copies_as_fast_as_was_recorded():
    """Three matrices of 4096 x 4096 floats, in the 3.74408 ms of data/h200/bench.csv."""
    assert parts(gpu("H200"))["host"].rate.value == pytest.approx(3 * 4 * 4096**2 / 3.74408e-3 / 1e9)
    assert parts(gpu("H100 SXM5"))["host"].rate.value is None


@pytest.mark.parametrize("board", gpus(), ids=lambda board: board.name)
def test_each_figure_of_the_map_is_in_the_picture_with_its_origin(board):
    picture, found = module.gpu_map(board, "L2 cache", acts=True), parts(board)
    assert list(found) == list(PARTS)
    written = texts(picture)
    for part in found.values():
        assert part.name in written
        for figure in filter(None, (part.size, part.rate, part.latency)):
            if figure.value is None:
                assert "no figure" in written
                continue
            place = written.index(figure.text)
            assert figure.text.startswith(gpu_parts.number(figure.value))
            assert figure.whence in written[place:], figure
            assert figure.origin in gpu_parts.ORIGINS
    unknown = [f for part in found.values() for f in (part.size, part.rate, part.latency) if f]
    assert written.count("no figure") == sum(figure.value is None for figure in unknown)
    used = {f.origin for part in found.values() for f in part.figures if f.value is not None}
    assert set(sources(board)) == used and all(sources(board).values())
    buttons = [each for each in ElementTree.fromstring(str(picture)).iter() if each.get("role") == "button"]
    assert [json.loads(each.get("data-set"))["part"] for each in buttons] == list(range(len(PARTS)))
    assert [each.get("aria-pressed") for each in buttons].count("true") == 1


def test_what_is_anothers_is_called_a_stand_in():
    """data/gpus.json says of the L4: latencies of an L40; of the T4: the memory's latency, a V100's."""
    assert parts(gpu("L4"))["L2 cache"].latency.origin == "stand-in"
    assert parts(gpu("T4"))["device memory"].latency.origin == "stand-in"
    assert parts(gpu("T4"))["L1 cache"].latency.origin == "published"
    about = json.loads((DATA / "gpus.json").read_text(encoding="utf-8"))
    columns = set(rows("../simt/data/gpus.csv")[0])
    for source, names in about["stand_ins"].items():
        assert source == "what" or (source in about["model"] and set(names) <= columns), source


def test_a_gpu_without_tensor_cores_says_so():
    assert parts(gpu("P100"))["tensor cores"].figures == ()
    assert "none" in texts(module.gpu_map(gpu("P100")))
    assert "sub-partition 1" in texts(module.gpu_map(gpu("P100")))
    assert "sub-partition 2" not in texts(module.gpu_map(gpu("P100")))


def test_a_strip_marks_the_parts_and_gives_their_figures():
    strip = labkit.you_are_here("shared memory", "registers")
    written, root = texts(strip), ElementTree.fromstring(str(strip))
    assert "You are here: shared memory and registers" in written
    value = limit("h200", "latency", "shared")
    assert any(
        line.startswith("shared memory (H200): 228 KB (data sheet)")
        and f"{value:.3g} clocks (measured)" in line
        for line in written
    )
    marked = [each for each in root.iter(f"{SVG}rect") if each.get("fill") == BLUE]
    assert len(marked) == 2
    places = [module._STRIP[name][:2] for name in ("shared memory", "registers")]
    assert [(float(each.get("x")), float(each.get("y"))) for each in marked] == places


@pytest.mark.parametrize(
    ("names", "message"),
    [((), "name at least one part"), (("texture cache",), "no part 'texture cache' on the map.*L2 cache")],
)
def test_a_part_that_is_not_on_the_map(names, message):
    with pytest.raises(ValueError, match=message):
        labkit.you_are_here(*names)
