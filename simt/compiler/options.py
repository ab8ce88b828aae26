"""The options of NVRTC on the first line of a `%%cuda` cell, read here alone, for notebooks and the grader.

NVRTC takes an option by a long and a short name, with its value after = or as a word of its own. `read` takes
each spelling and returns one: `--fmad=false`, and `-DNAME=VALUE` for a macro. The names are those that
nvrtc.h documents. An option of which nothing would come here is refused with the reason. One that reads or
writes files is refused in the answer to an exercise: the grader must not open files that a student names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

NAME_EXPRESSION = "--name-expression"  # labkit's own: the instance of a template to take
OFTEN_USED = "-D NAME=VALUE, --std=c++17, --use_fast_math and --fmad=false"
MACRO = re.compile(r"[A-Za-z_]\w*(?:\([\w, .]*\))?(?:=.*)?", re.ASCII)

_NO_PTX = "labkit needs the PTX of a kernel, and with this option NVRTC makes none"
_NO_LINKING = "labkit compiles each cell whole and links nothing"
_NO_TILES = "labkit runs SIMT kernels alone, not tile kernels"
_BOOLEAN = "true|false"
_WORD = r"\w+"
_LIST = r"[\w-]+(?:,[\w-]+)*"
# What may be told the assembler: how much it says, how hard it optimises, how loads are cached. No files.
_PTXAS = (
    r"-{1,2}(?:v|verbose|w|disable-warnings|Werror|g|device-debug|lineinfo|generate-line-info|warn-[a-z-]+"
    r"|O[0-4]|opt-level=[0-4]|maxrregcount=\d+|(?:dlcm|dscm|def-(?:load|store)-cache)=[a-z]+"
    r"|(?:fmad|allow-expensive-optimizations)=(?:true|false))"
)


@dataclass(frozen=True)
class Option:
    """An option's two names, the pattern of its values (none of a switch), and why labkit refuses it."""

    long: str
    short: str
    value: str = ""
    refused: str = ""
    of_files: bool = False
    has_effect: bool = True


_SWITCHES = {
    "--device-w": "-dw",
    "--extensible-whole-program": "-ewp",
    "--simt-only": "-simt-only",
    "--device-debug": "-G",
    "--generate-line-info": "-lineinfo",
    "--fno-signed-zeros": "-fno-signed-zeros",
    "--ffinite-math-only": "-ffinite-math-only",
    "--use_fast_math": "-use_fast_math",
    "--extra-device-vectorization": "-extra-device-vectorization",
    "--gen-opt-lto": "-gen-opt-lto",
    "--no-cache": "-no-cache",
    "--no-source-include": "-no-source-include",
    "--disable-warnings": "-w",
    "--Wreorder": "-Wreorder",
    "--Wconversion": "-Wconversion",
    "--restrict": "-restrict",
    "--device-as-default-execution-space": "-default-device",
    "--device-int128": "-device-int128",
    "--device-float128": "-device-float128",
    "--display-error-number": "-err-no",
    "--no-display-error-number": "-no-err-no",
    "--minimal": "-minimal",
}
_VALUED = {
    "--dopt": ("-dopt", "on"),
    "--Ofast-compile": ("-Ofc", "0|min|mid|max"),
    "--ptxas-options": ("-Xptxas", f"{_PTXAS}(?:,{_PTXAS})*"),
    "--maxrregcount": ("-maxrregcount", r"\d+"),
    "--ftz": ("-ftz", _BOOLEAN),
    "--prec-sqrt": ("-prec-sqrt", _BOOLEAN),
    "--prec-div": ("-prec-div", _BOOLEAN),
    "--fmad": ("-fmad", _BOOLEAN),
    "--modify-stack-limit": ("-modify-stack-limit", _BOOLEAN),
    "--jump-table-density": ("-jtd", r"\d+"),
    "--device-stack-protector": ("-device-stack-protector", _BOOLEAN),
    "--frandom-seed": ("-frandom-seed", _WORD),
    "--undefine-macro": ("-U", r"[A-Za-z_]\w*"),
    "--define-macro": ("-D", MACRO.pattern),
    "--std": ("-std", r"c\+\+(?:11|14|17|20|23)"),
    "--builtin-move-forward": ("-builtin-move-forward", _BOOLEAN),
    "--builtin-initializer-list": ("-builtin-initializer-list", _BOOLEAN),
    "--warning-as-error": ("-Werror", _LIST),
    "--fmax-errors": ("-fmax-errors", r"\d+"),
    "--optimization-info": ("-opt-info", _LIST),
    "--diag-error": ("-diag-error", _LIST),
    "--diag-suppress": ("-diag-suppress", _LIST),
    "--diag-warn": ("-diag-warn", _LIST),
    "--brief-diagnostics": ("-brief-diag", _BOOLEAN),
    "--split-compile": ("-split-compile", r"\d+"),
    NAME_EXPRESSION: (NAME_EXPRESSION, ".+"),
}
_OF_FILES = {
    "--include-path": "-I",
    "--use-bundled-headers": "--use-bundled-headers",
    "--pre-include": "-include",
    "--create-pch": "-create-pch",
    "--use-pch": "-use-pch",
    "--pch-dir": "-pch-dir",
    "--pch-verbose": "-pch-verbose",
    "--pch-messages": "-pch-messages",
    "--instantiate-templates-in-pch": "-instantiate-templates-in-pch",
    "--time": "-time",
    "--fdevice-time-trace": "-fdevice-time-trace",
}
_REFUSED = (
    Option("--relocatable-device-code", "-rdc", "true", refused=_NO_LINKING),
    Option("--device-c", "-dc", refused=_NO_LINKING),
    Option("--dlink-time-opt", "-dlto", refused=_NO_PTX),
    Option("--optix-ir", "-optix-ir", refused=_NO_PTX),
    Option("--fdevice-syntax-only", "-fdevice-syntax-only", refused=_NO_PTX),
    Option("--tile-preview", "-tile-preview", "SIMT", refused=_NO_TILES),
    Option("--enable-tile", "-enable-tile", refused=_NO_TILES),
    Option("--tile-only", "-tile-only", refused=_NO_TILES),
    Option("--default-tile", "-default-tile", refused=_NO_TILES),
    Option("--diagnose-implicit-tile-var", "-diagnose-implicit-tile-var", refused=_NO_TILES),
)
OPTIONS = (
    *(Option(long, short) for long, short in _SWITCHES.items()),
    *(Option(long, short, value) for long, (short, value) in _VALUED.items()),
    # labkit compiles for its device; another architecture would be none that it runs
    Option("--gpu-architecture", "-arch", r"(?:compute|sm)_\d+[af]?", has_effect=False),
    Option("--utf-8", "-utf-8", has_effect=False),  # a source is in UTF-8 as it is; NVRTC 13 stops here
    *(Option(long, short, ".+", of_files=True) for long, short in _OF_FILES.items()),
    Option("--pch", "-pch", of_files=True),
    *_REFUSED,
)
_NAMED = {name: option for option in OPTIONS for name in (option.long, option.short)}
WITH_A_VALUE = frozenset(name for name, option in _NAMED.items() if option.value)
_LETTERS = ("-D", "-U", "-I")  # their values may follow at once


class OptionError(ValueError):
    """An option that is not taken; the message says why."""


def grouped(words: Sequence[str], with_a_value: Collection[str] = WITH_A_VALUE) -> Iterator[tuple[str, ...]]:
    """Yield each word alone, but an option with its value where that is a word of its own."""
    rest = iter(words)
    for word in rest:
        following = next(rest, None) if word in with_a_value else None
        yield (word,) if following is None else (word, following)


def read(words: Sequence[str], in_an_answer: bool) -> tuple[list[str], list[str]]:
    """Return the words that are no options, and the options, each in its one spelling. Raises OptionError."""
    names, options = [], []
    for group in grouped(words):
        if not group[0].startswith("-"):
            names.append(group[0])
        elif (option := _one_spelling(group, in_an_answer)) is not None:
            options.append(option)
    return names, options


def _one_spelling(group: tuple[str, ...], in_an_answer: bool) -> str | None:
    """Return an option in its one spelling, or None where it has no effect. Raises OptionError."""
    name, assigned, value = group[0].partition("=")
    option = _NAMED.get(name)
    if option is None and name[:2] in _LETTERS:
        option, value = _NAMED[name[:2]], group[0][2:]
    elif len(group) > 1:
        value = group[1]
    if option is None:
        raise OptionError(
            f"{name} is not an option of NVIDIA's compiler NVRTC. Often used are {OFTEN_USED}; "
            "it always optimises, so -O3 is not needed."
        )
    if option.long == "--relocatable-device-code" and value == "false":
        return None
    if option.refused:
        raise OptionError(f"{name} is no option for a cell: {option.refused}. Leave it out.")
    if option.of_files and in_an_answer:
        raise OptionError(f"{name} names files, and an answer stands alone. Leave it out of an answer.")
    value = value.strip()
    if not option.value:
        if assigned:
            raise OptionError(f"{name} takes no value, and {value!r} was given.")
        return option.long if option.has_effect else None
    if not re.fullmatch(option.value, value, re.ASCII):
        raise OptionError(_wrong_value(option, name, value))
    if not option.has_effect:
        return None
    return f"{option.short}{value}" if option.short in _LETTERS else f"{option.long}={value}"


def _wrong_value(option: Option, name: str, value: str) -> str:
    wanted = {
        r"\d+": "a number",
        MACRO.pattern: "NAME=VALUE",
        _BOOLEAN: "true or false",
        _VALUED["--std"][1]: "c++11, c++14, c++17, c++20 or c++23",
        _VALUED["--undefine-macro"][1]: "the name of a macro",
        _VALUED["--ptxas-options"][1]: "options such as -v or -O3",
        r"(?:compute|sm)_\d+[af]?": "an architecture such as sm_90",
    }.get(option.value, option.value.replace("|", " or "))
    given = f"{value!r} is none" if value else "nothing was given"
    return f"{name} wants {wanted}, and {given}."
