"""NVRTC's options: each spelling is one option, and the notebook and the grader take the same ones."""

import re
from functools import cache
from pathlib import Path

import pytest
from IPython.core.error import UsageError

from grader.intake.magic_line import Refused, rewritten
from labkit.course import EXERCISES
from labkit.magic import read_line
from simt.compiler import nvrtc
from simt.compiler.options import OPTIONS, OptionError, read

# A value of each kind in which nvrtc.h names the values of an option.
VALUES = {
    "arch": "sm_90",
    "{true|false}": "true",
    "{0|min|mid|max}": "mid",
    "{c++03|c++11|c++14|c++17|c++20|c++23}": "c++20",
    "N": "32",
    "def": "TILE",
    "[0-101]": "50",
    "dir": "/etc",
    "header": "cmath",
    "file-name": "x",
    "directory-name": "x",
    "error-number": "177",
    "number": "3",
    "number-of-threads": "2",
    "SIMT": "SIMT",
    "options": "-v",
}
OF_ONE = {
    "--warning-as-error": "all-warnings",
    "--optimization-info": "inline",
    "--frandom-seed": "seed",
    "--dopt": "on",
}


@cache
def documented() -> dict[str, str]:
    """Return a value for each option, by its long name, from the header's own text."""
    headers = [Path(folder) / "nvrtc.h" for folder in nvrtc.include_paths()]
    text = next(header for header in headers if header.exists()).read_text()
    found: dict[str, str] = {}
    for long, kind in re.findall(r"^ \*     - \\c (--[\w-]+)(?:[= ](\S+))?", text, re.MULTILINE):
        kind = re.sub(r"[\\<>]|(?:>?,\.\.\.)$|^\(?\\c$|^\(.*", "", kind)
        found.setdefault(long, OF_ONE.get(long) or VALUES.get(kind, kind))
    return found


def test_every_option_that_nvidia_documents_is_known():
    header = documented()
    assert len(header) > 60
    assert header.keys() - {option.long for option in OPTIONS} == set()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.long)
def test_the_notebook_and_the_grader_say_the_same(option):
    """In every spelling of every option: both take it, in the same words, or both refuse it."""
    value = documented().get(option.long) or "gemm"
    value = value if option.value else ""
    letter = len(option.short) == 2 and bool(value)
    spellings = [f"{name}{mark}{value}" for name in (option.long, option.short) for mark in "= "]
    spellings = [*spellings, f"{option.short}{value}", f"'{option.short} {value}'"] if letter else spellings
    said = set()
    for spelling in spellings if value else (option.long, option.short):
        for line in (f"02.1 {spelling}", f"{spelling} 02.1"):
            try:
                notebook = " ".join(["02.1", *read_line("cuda", line).options])
            except UsageError as error:
                notebook = f"refused: {error}"
            try:
                grader = (
                    rewritten(f"%%cuda {line}\nx", EXERCISES["02.1"]).splitlines()[0].removeprefix("%%cuda ")
                )
            except Refused as error:
                grader = f"refused: {error}"
            assert notebook.partition(" --name-expression")[0] == grader.partition(" --name-expression")[0]
            said.add("refused" if notebook.startswith("refused") else notebook)
    assert len(said) == 1
    assert ("refused" in said) == bool(option.refused or option.of_files)


@pytest.mark.parametrize(
    "option",
    [option for option in OPTIONS if not option.refused and not option.of_files],
    ids=lambda option: option.long,
)
def test_an_option_that_is_taken_compiles(option):
    if option.long in ("--device-float128", "--name-expression"):  # for other architectures; labkit's own
        return
    value = documented()[option.long] if option.value else ""
    spelled = f"{option.long}={value}" if option.value else option.long
    _, options = read([spelled], in_an_answer=True)
    source = 'extern "C" __global__ void k(int* x) { *x = 1; }'
    assert ".entry k(" in nvrtc.compile_ptx(source, options).text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--fmad=maybe"], "--fmad wants true or false, and 'maybe' is none"),
        (["-maxrregcount"], "-maxrregcount wants a number, and nothing was given"),
        (["--use_fast_math=true"], "takes no value"),
        (["-Xptxas", "-v,--options-file=/etc/passwd"], "wants options such as -v"),
        (["-Xptxas=-o,/tmp/x"], "wants options such as -v"),
        (["--relocatable-device-code", "true"], "links nothing"),
        (["-optix-ir"], "makes none"),
        (["-O3"], "always optimises"),
        (["--pre-include=x"], "names files"),
        (["-D", "-I/etc"], "NAME=VALUE"),
    ],
)
def test_what_is_not_taken_is_named_with_its_reason(words, why):
    with pytest.raises(OptionError, match=re.escape(why)):
        read(words, in_an_answer=True)


def test_files_may_be_named_outside_of_answers():
    assert read(["-I", "mine", "-Ipack", "scale"], in_an_answer=False) == (["scale"], ["-Imine", "-Ipack"])
