"""What NVIDIA's tools printed: the parts of a report, and its figures."""

import pytest

from labkit import records


def test_a_report_begins_with_its_command():
    assert records.tool_report("memcheck").startswith("$ compute-sanitizer --tool memcheck")


def test_a_kernel_and_a_section_are_chosen():
    part = records.tool_report("ncu_products", "tiled", "Occupancy")
    assert part.splitlines()[0] == "    Section: Occupancy"
    assert "Achieved Occupancy                        %        93.70" in part
    assert part.count("Section:") == 1 and part.endswith("-\n")
    whole = records.tool_report("ncu_products", "naive")
    assert whole.startswith("  naive(const float *") and "tiled(" not in whole
    assert whole.count("Section:") == 6


def test_figures_have_their_values_and_the_first_of_two_names():
    figures = records.tool_figures("ncu_products", "by_columns")  # read off the text by eye
    expected = {"Duration": 4.42, "Elapsed Cycles": 8_753_811, "Memory Throughput": 95.93, "Block Size": 1024}
    assert {name: figures[name] for name in expected} == expected
    counted = records.tool_figures("ncu_counters", "by_columns")
    assert counted["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 1_107_296_256  # behind a unit


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("nsys",), "no 'nsys'. Choose one of cuda_gdb, memcheck, ncu_counters"),
        (("ncu_products", "fast"), "no 'fast'. Choose one of by_columns, naive, tiled"),
        (("ncu_products", "tiled", "Rules"), "no 'Rules'. Choose one of GPU Speed Of Light Throughput"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(asked, words):
    with pytest.raises(records.NoReport, match=words):
        records.tool_report(*asked)


def test_the_machine_is_named():
    assert records.tool_machine().startswith("NVIDIA H200, driver ")
