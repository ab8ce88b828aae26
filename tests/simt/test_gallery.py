"""The simulator judged by the kernels of tests/gallery: clean ones give NumPy's results and no finding,
planted mistakes are found with their lines; results and counters are those of an H200, where recorded.
"""

import csv
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from gallery import Case, Expected, cases, references

import simt

CLEAN, BUGS = cases("clean"), cases("bugs")
RECORDS = Path(__file__).parents[2] / "data" / "h200" / "gallery"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def named(wanted):
    """Parameters of a test, called by their cases' names."""
    return pytest.mark.parametrize("case", wanted, ids=lambda case: case.name)


def table(name):
    """Return the rows of a recorded table; none where there is no record."""
    path = RECORDS / name
    return list(csv.DictReader(path.read_text().splitlines())) if path.is_file() else []


SAID = {
    (row["kernel"], row["tool"]): row["lines"]
    for row in table("sanitizer.csv")
    if row["kernel"] != "clean" and row["lines"]
}


@cache
def kernel(source: str, options: tuple[str, ...], names: tuple[str, ...], entry: str) -> simt.Kernel:
    return simt.RawModule(code=source, options=options, name_expressions=names).get_function(entry)


def run(case: Case, how="__call__"):
    """Launch, profile or check a case: what comes back, and the arguments by name."""
    args = case.args(empty=simt.empty) if how == "check" else case.args()
    launch = getattr(kernel(case.source, case.options, case.name_expressions, case.entry), how)
    found = launch(
        case.grid, case.block, tuple(args.values()), shared_mem=case.shared_mem, timeout=case.timeout
    )
    return found, args


def listed(findings) -> str:
    return "\n".join(f"{f.tool}, {f.kind}, line {f.line}: {f.message}" for f in findings) or "nothing found"


def test_the_gallery_is_whole():
    assert len({case.file for case in CLEAN}) >= 200
    assert len({case.file for case in BUGS}) >= 80
    assert not [case.name for case in CLEAN if case.expected or case.also or case.refused]
    assert not [case.name for case in BUGS if len(case.expected) != 1 and not case.refused]
    assert {expected.tool for case in BUGS for expected in case.expected} == {*TOOLS, "timeout"}
    for case in CLEAN:
        assert case.named("out"), case.name
        assert bool(case.expectations) != hasattr(references, case.file), "say it in one place"
        outputs, again = case.args(), case.args()
        assert all(np.array_equal(outputs[name], again[name], equal_nan=True) for name in case.named("out"))
        # a kernel that does nothing does not pass
        assert references.wrong(case, outputs), case.name


def is_it(finding: simt.Finding, expected: Expected) -> bool:
    """Say whether this finding names the planted mistake, and both sides of a race."""
    good = {expected.line, *expected.alternatives} | ({expected.other} if expected.other else set())
    if finding.tool != expected.tool or finding.line not in good:
        return False
    if expected.tool == "memcheck" and finding.kind != expected.kind:
        return False
    mentioned = {finding.line, *map(int, re.findall(r"\blines? (\d+)", finding.message))}
    return expected.other is None or {expected.line, expected.other} <= mentioned


@named([case for case in BUGS if not case.refused])
def test_planted_mistakes_are_found(case):
    findings, _ = run(case, "check")
    (expected,) = case.expected
    found = [finding for finding in findings if is_it(finding, expected)]
    assert found, f"expected {expected}\n{listed(findings)}"
    blocks, threads = (np.array((*size, 1, 1)[:3]) for size in (case.grid, case.block))
    assert (np.array(found[0].block) >= 0).all() and (found[0].block < blocks).all()
    assert (np.array(found[0].thread) >= 0).all() and (found[0].thread < threads).all()
    assert case.source.splitlines()[found[0].line - 1].split("//")[0].strip() in str(found[0])
    tools = {finding.tool for finding in findings}
    assert tools <= {expected.tool, *case.also}, listed(findings)
    assert {tool for name, tool in SAID if name == case.name} <= tools, "compute-sanitizer finds more"


@named([case for case in BUGS if case.refused])
def test_what_cannot_be_right_is_refused(case):
    """A launch that a GPU refuses, and arrays of a type that is not the kernel's."""
    try:
        findings, _ = run(case, "check")
    except simt.LaunchError as error:
        messages = [str(error)]
    else:
        assert case.file.startswith("dtype"), listed(findings)
        messages = [finding.message for finding in findings]
    assert any(re.search(case.refused, message) for message in messages), messages


def recorded_results():
    path = RECORDS / "results.npz"
    if not path.is_file():
        return {}
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


RESULTS = recorded_results()
RECORDED = {key.partition("/")[0] for key in RESULTS}


STACK = "calls that are not inlined keep their stack in memory, which Nsight Compute counts as global"
MERGED = "the assembler makes one wide access of two neighbouring ones to shared memory"
UNROLLED = "the assembler unrolls a loop that lanes leave at different times, so that they part"
ASYNCHRONOUS = "Nsight Compute's bytes leave out asynchronous copies"
VARIES = "one of three recordings made on one day gave the simulator's number"
# Launches whose counters differ from the hardware's, which of them, and why.
UNLIKE = {
    "cp_async": ("data_bytes", ASYNCHRONOUS),
    "dct8x8": ("bank_conflicts.*_st", VARIES),
    "fft_stockham": ("bank_conflicts.*_st", MERGED),
    "function_pointer": ("global_op_st", STACK),
    "gemv_int8_dp4a": ("global_op_ld", UNROLLED),
    "hash_table": ("sectors.*_ld", VARIES),
    "printing": ("global_op|registers", "printf writes to a buffer in global memory"),
    "recursion_ackermann": ("global_op_st", STACK),
    "recursion_fibonacci": ("global_op_st", STACK),
    "scan_blelloch": ("bank_conflicts", MERGED),
    "several_shared": ("bank_conflicts", MERGED),
    "sgemm_pipeline": ("data_bytes", ASYNCHRONOUS),
    "spmv_csr_vector": ("global_op_ld", UNROLLED),
    "stencil_3d_registers": ("bank_conflicts.*_st", VARIES),
}
COUNTED = {row["launch"]: row for row in table("counters.csv")}


@named(CLEAN)
def test_a_clean_kernel(case, monkeypatch):
    """Optimised it has the right results, checked it has no finding, counted it has the H200's counters."""
    with monkeypatch.context() as optimised:
        optimised.setattr("simt.run.machine.FEW_THREADS", 0)
        _, args = run(case)
    assert references.wrong(case, args) == ""
    before = case.args()
    assert [name for name in case.named("in") if not np.array_equal(args[name], before[name])] == []
    compare_with_the_h200(case, args)

    findings, args = run(case, "check")
    assert not findings, listed(findings)
    assert references.wrong(case, args) == ""

    counted, args = run(case, "profile")
    assert references.wrong(case, args) == ""
    if case.name in COUNTED:
        compare_counters(case, counted)


def compare_with_the_h200(case, args):
    """Compare results with the recorded ones: equal where the reference is exact, else within its bound."""
    device = {name: RESULTS.get(f"{case.name}/{name}") for name in case.named("out")}
    if any(value is None for value in device.values()):
        assert case.name not in RECORDED, "some outputs are recorded, and some are not"
        return
    assert references.wrong(case, device) == "", "the reference does not hold on the H200"
    for name, (_, bound) in references.expected(case).items():
        assert references.differences(name, args[name], device[name], bound) == []


def compare_counters(case, counted):
    """Compare counters with what Nsight Compute counted on the H200."""
    unlike = re.compile(UNLIKE[case.name][0] if case.name in UNLIKE else "(?!)")
    recorded = {
        name: float(value)
        for name, value in COUNTED[case.name].items()
        if name in counted.metrics and not unlike.search(name)
    }
    assert len(recorded) >= 6
    # Nsight Compute prints ratios with two digits behind the point
    assert {name: counted.metrics[name] for name in recorded} == pytest.approx(recorded, rel=0, abs=0.0051)


def test_compute_sanitizer_finds_the_clean_kernels_clean():
    rows = table("sanitizer.csv")
    assert {row["tool"]: row["hits"] for row in rows if row["kernel"] == "clean"} == dict.fromkeys(TOOLS, "0")
