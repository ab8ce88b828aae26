"""C is compiled, cached, and its errors are given by line."""

import ctypes
import importlib.util
import os
import re
import sys

import numpy as np
import pytest

from labkit import mend
from labkit.c import compile as module
from labkit.c.compile import compile_c, find_compiler
from simt.common.errors import CompileError, SimtError

SAXPY = """
void saxpy(int n, float a, const float *x, float *y) {
    for (int i = 0; i < n; i++) y[i] += a * x[i];
}
"""


@pytest.fixture(autouse=True)
def fresh_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(module.ZIG, str(module.zig_libraries()))  # or each test would make them
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    module._built.cache_clear()


def saxpy(library_path):
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    pointer = ctypes.POINTER(ctypes.c_float)
    function = ctypes.CDLL(os.fspath(library_path)).saxpy
    function(5, ctypes.c_float(2), x.ctypes.data_as(pointer), y.ctypes.data_as(pointer))
    return y.tolist()


def test_a_compiled_function_computes():
    assert saxpy(compile_c(SAXPY)) == [1, 3, 5, 7, 9]


def test_options_reach_the_compiler():
    answer = "int answer(void) { return ANSWER; }"
    libraries = [ctypes.CDLL(os.fspath(compile_c(answer, [f"-DANSWER={n}"]))) for n in (42, 43)]
    assert [library.answer() for library in libraries] == [42, 43]


def test_the_second_process_finds_the_library_in_the_cache(monkeypatch):
    first = compile_c(SAXPY)
    module._built.cache_clear()  # as in a new process
    monkeypatch.setattr(module, "_run", lambda *_: pytest.fail("compiled again"))
    second = compile_c(SAXPY)
    assert second.read_bytes() == first.read_bytes()


def test_another_compiler_version_or_cpu_compiles_again(monkeypatch):
    compile_c(SAXPY)
    compiled = []
    monkeypatch.setattr(module, "_run", lambda *arguments: compiled.append(arguments) or (b"library", ""))
    for name in ("compiler_version", "_host_cpu"):
        module._built.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *_: "another")
            compile_c(SAXPY)
    assert len(compiled) == 2


def test_an_error_names_the_line_in_kernel_c():
    with pytest.raises(CompileError) as caught:
        compile_c("int f(void) {\n    int x = 1;\n    return x + y;\n}\n")
    line, severity, message = caught.value.lines[0]
    assert (line, severity) == (3, "error") and "undeclared" in message and "y" in message
    assert str(caught.value).startswith("kernel.c:") and "/tmp" not in str(caught.value)


def test_a_misspelt_function_is_an_error_at_its_line():
    with pytest.raises(CompileError) as caught:
        compile_c("#include <math.h>\nfloat f(float x) {\n    return sqrtt(x);\n}\n")
    assert (3, "error") in [(line, severity) for line, severity, _ in caught.value.lines]


def test_an_unknown_option_is_reported():
    with pytest.raises(CompileError, match="no-such-option"):
        compile_c(SAXPY, ["--no-such-option"])


def test_options_must_be_a_list():
    with pytest.raises(TypeError, match=r"\['-lm'\]"):
        compile_c(SAXPY, "-lm")


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module, "find_compiler", lambda: None)
    with pytest.raises(SimtError, match=re.escape(mend.install("cc"))):
        compile_c(SAXPY)


def test_cc_comes_first_and_may_hold_options(monkeypatch):
    monkeypatch.setenv("CC", f"{sys.executable} -E")
    assert find_compiler() == (sys.executable, "-E")


needs_zig = pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="needs pip install labkit[cc]")


@needs_zig
def test_libraries_that_the_compiler_from_pip_made_serve_where_they_cannot_be_changed(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc")
    monkeypatch.delenv(module.ZIG)
    compile_c(SAXPY)
    made = module.zig_libraries()
    libraries = {path.name for path in made.glob("o/*/*.a")}
    assert "libcompiler_rt.a" in libraries
    monkeypatch.setenv(module.ZIG, str(made))
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "another"))
    assert saxpy(compile_c(f"// anew\n{SAXPY}")) == [1, 3, 5, 7, 9]
    taken = [path for path in module.zig_libraries().glob("o/*/*") if path.name in libraries]
    assert len(taken) == len(libraries) and all(path.is_symlink() for path in taken)


def test_ziglang_has_longer_until_it_has_made_its_libraries(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    zig = ("python", "-m", "ziglang", "cc")
    assert module._patience(zig, 60) == module.FIRST_SECONDS and module._patience(("gcc",), 60) == 60
    module.zig_libraries().mkdir(parents=True)
    (module.zig_libraries() / module.READY).touch()
    assert module._patience(zig, 60) == 60


@needs_zig
def test_the_compiler_from_pip_serves_where_the_system_has_none(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CC", raising=False)
    assert find_compiler() == (sys.executable, "-m", "ziglang", "cc")
    assert saxpy(compile_c(SAXPY)) == [1, 3, 5, 7, 9]
    with pytest.raises(CompileError) as caught:
        compile_c("int f(void) { return y; }")
    assert caught.value.lines[0][:2] == (1, "error")
