"""The drawing of mutants, and how a mutant gets into a copy: tests/mutants.py."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("cosmic_ray", reason="needs cosmic-ray: make test installs it")
mutants = pytest.importorskip("mutants")

SOURCE = """from functools import lru_cache

LIMIT = 48 + 1

@lru_cache(maxsize=4)
def doubled(values: list[int] | None, most: int = 7) -> int | None:
    \"\"\"Add 1.\"\"\"
    for value in values or []:
        if value < most:
            return value * 2
    return None
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository with one module, `small`, of one file."""
    (tmp_path / "labkit").mkdir()
    (tmp_path / "labkit" / "__init__.py").touch()
    (tmp_path / "labkit" / "small.py").write_text(SOURCE)
    monkeypatch.setitem(mutants.MODULES, "small", mutants.Module(("labkit",), ("tests/small",)))
    return tmp_path


def test_a_seed_draws_the_same_mutants(root):
    drawn = [mutants.draw("small", 5, seed, root) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(each) for each in drawn] == [5, 5, 5]
    assert (
        len(mutants.draw("small", 1000, 1, root)) == 10
    )  # places: line 3 has 3, 6 has 1, 8, 9 and 10 have 2


def test_mutants_change_what_has_a_say_in_results(root):
    for seed in range(5):
        for mutant in mutants.draw("small", 1000, seed, root):
            assert mutant.first in (3, 6, 8, 9, 10)  # neither the cache, nor the docstring, nor `return None`
            assert "list[int] | None" in mutant.code and "-> int | None" in mutant.code
            compile(mutant.code, mutant.file, "exec")


def test_another_instruction_of_llvm_is_a_mutant(root):
    (root / "labkit" / "small.py").write_text('c = b.icmp_signed("<", x, y)\ne = names.add("x")\n')
    drawn = {mutant.after for seed in range(5) for mutant in mutants.draw("small", 9, seed, root)}
    assert drawn == {'c = b.icmp_unsigned("<", x, y)', 'c = b.icmp_signed("<=", x, y)'}


@pytest.mark.parametrize(
    "line, lines, at_import",
    [
        (3, [3], True),
        (6, [5, 6, 7, 8, 9, 10, 11], True),  # a default: the tests of the whole function come first
        (8, [8], False),
        (10, [10], False),
    ],
)
def test_the_statement_around_a_line(line, lines, at_import):
    assert mutants._statement(SOURCE, line) == (range(lines[0], lines[-1] + 1), at_import)


def test_a_mutant_gets_the_tests_of_its_line_and_then_others(root):
    known = mutants.Covered(
        {"a::slow": 5.0, "a::fast": 1.0, "a::idle": 0.5, "b::last": 0.1},
        {"a::slow": ["kernel"], "a::fast": [], "a::idle": ["kernel"], "b::last": []},
        {"labkit/small.py": {3: {""}, 9: {"a::slow", "a::fast", "b::last"}, 10: {"a::slow", "a::fast"}}},
    )
    tests = {mutant.first: known.tests_of(mutant, root) for mutant in mutants.draw("small", 1000, 1, root)}
    assert tests[10] == ["a::fast", "a::slow", "a::idle"]
    assert tests[9] == ["b::last", "a::fast", "a::slow", "a::idle"]
    assert tests[3] == ["b::last", "a::fast", "a::slow"]  # importing the file runs it
    assert tests[8] == []
    known.lines["labkit/small.py"][8] = {""}  # a table that importing the tests makes, for instance
    tests = {mutant.first: known.tests_of(mutant, root) for mutant in mutants.draw("small", 1000, 1, root)}
    assert tests[8] == ["b::last", "a::fast", "a::slow"]


def test_a_mutant_of_the_same_time_and_size_is_seen(root, monkeypatch):
    path = root / "labkit" / "small.py"
    time = path.stat().st_mtime_ns

    def limit():
        call = [sys.executable, "-c", "import labkit.small; print(labkit.small.LIMIT)"]
        return int(subprocess.run(call, cwd=root, capture_output=True, check=True, text=True).stdout)

    assert limit() == 49
    code = SOURCE.replace("48", "58")
    with mutants.mutated(root, mutants.Mutant("labkit/small.py", 3, 3, "", code, "", "")):
        os.utime(path, ns=(time, time))
        assert limit() == 59
    os.utime(path, ns=(time, time))
    assert limit() == 49


def test_a_killer_has_a_name():
    told = "=== short test summary info ===\nFAILED tests/a.py::test_b[1 2] - assert 0\n1 failed"
    assert mutants.Outcome(1, told).killer == "tests/a.py::test_b[1"
    assert mutants.Outcome(0, "").killer == ""
    assert mutants.Outcome(None, "").killer == "no end"
    assert mutants.Outcome(-11, "").killer == "pytest's end -11"


def test_scores_leave_out_what_changes_nothing():
    one, two, three = (mutants.Mutant("f.py", line, line, "", "", f"{line}", "0") for line in (1, 2, 3))
    judged = [
        mutants.Verdict(one, "t", 1, 0.0),
        mutants.Verdict(two, "", 2, 0.0),
        mutants.Verdict(three, "", 0, 0.0),
    ]
    told = mutants.table([("small", each) for each in judged], {two.key: "2 is 0 here"})
    assert told.splitlines()[1].split() == ["small", "3", "1", "2", "33%", "1", "50%"]
    assert "changes nothing: 2 is 0 here" in told and "0 tests tried" in told
