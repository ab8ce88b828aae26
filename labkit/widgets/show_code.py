"""`labkit.show_code`: a kernel's source, PTX and machine code in linked columns, or two kernels compared.

The columns are HTML (code_columns.py). In a notebook a widget shows them and asks for other GPUs; beside it
stands the same HTML with the script that links its lines, for exported pages, and for saved notebooks.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from html import escape
from typing import Any

import anywidget
import traitlets

from labkit.widgets.code_columns import Issues, columns, without_sass
from labkit.widgets.code_difference import difference
from labkit.widgets.explorer import PAGE
from simt.common.errors import CompileError, SimtError
from simt.common.occupancy import DEFAULT_GPU, gpus
from simt.common.occupancy import gpu as find_gpu
from simt.compiler.nvrtc import MissingTool, compile_ptx, supported_architectures
from simt.counters.profile import Profile
from simt.kernel import Kernel
from simt.sass.issued import Issued
from simt.sass.listing import Sass

_SCRIPT, _STYLE = PAGE / "code.js", PAGE / "code.css"


class CodeView(anywidget.AnyWidget):
    """Columns of code with a menu of GPUs; `draw(gpu)` returns their HTML and a text."""

    _esm = _SCRIPT
    _css = _STYLE
    title = traitlets.Unicode().tag(sync=True)
    gpus: traitlets.List[str] = traitlets.List().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)  # {"id": counts up, "gpu": a name}
    code = traitlets.Dict().tag(sync=True)  # {"id", "gpu", "html", "error"}

    def __init__(self, title: str, draw: Callable[[str], tuple[str, str]], gpu: str) -> None:
        self._draw = draw
        html, self.text = draw(gpu)
        names = offered()
        super().__init__(
            title=title,
            gpus=names if gpu in names else [gpu, *names],
            code={"id": 0, "gpu": gpu, "html": html, "error": ""},
        )
        self.observe(self._answer, "asked")

    def _answer(self, change: dict[str, Any]) -> None:
        """Compile for the GPU that the page asks for."""
        asked = change["new"]
        answer = {"id": asked.get("id", 0), "gpu": str(asked.get("gpu")), "html": "", "error": ""}
        try:
            answer["html"], self.text = self._draw(answer["gpu"])
        except (ValueError, SimtError) as error:
            answer["error"] = str(error)
        self.code = answer

    @property
    def html(self) -> str:
        """Return the columns as they are, with the style and the script that links them."""
        script = _SCRIPT.read_text(encoding="utf-8").replace("export default { render };", "linkAll();")
        return (
            f"<style>{_STYLE.read_text(encoding='utf-8')}</style>"
            f'<div class="lkc lkc-still" data-title="{escape(self.title)}">{self.code["html"]}</div>'
            f'<script type="module">{script}</script>'
        )

    def __repr__(self) -> str:
        """Return the listing, for where there is no HTML."""
        return self.text

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and for where there is no kernel its HTML and text."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data: Any = bundle[0] if isinstance(bundle, tuple) else bundle
        data["text/plain"] = repr(self)
        data["text/html"] = self.html
        return bundle


def show_code(kernel: Any, other: Any = None, *, gpu: str = DEFAULT_GPU, profile: Any = None) -> CodeView:
    """Show what a kernel becomes: its source, its PTX and its machine code for a GPU, line by line.

    With two kernels, show both listings of machine code and mark where they differ. `profile` is what
    `kernel.profile` returned: lines that it counted are shaded by their counts; by default it is the kernel's
    latest. Raises TypeError for what is no kernel in CUDA C++, ValueError for an unknown GPU, and
    CompileError for a GPU that the compiler makes no code for.
    """
    for each in (kernel,) if other is None else (kernel, other):
        if not callable(getattr(each, "sass", None)):
            raise TypeError(
                f"show_code takes a kernel in CUDA C++, such as RawModule(code=...).get_function(name), "
                f"not {_described(each)}"
            )
    counted = getattr(profile, "profile", profile)  # what labkit.profile returns holds one
    if counted is not None and not isinstance(counted, Profile):
        raise TypeError(f"profile is what kernel.profile(...) returned, not {_described(profile)}")
    name = find_gpu(gpu).name
    if other is not None:
        names = _names(kernel, other)

        def draw(on: str) -> tuple[str, str]:
            return _compared(kernel, other, names, on)

        title = f"Machine code of {names[0]} and {names[1]}"
    else:

        def draw(on: str) -> tuple[str, str]:
            return _drawn(kernel, on, counted)

        title = f"Source, PTX and machine code of {kernel.name}"
    return CodeView(title, draw, name)


def offered() -> list[str]:
    """Return the names of the GPUs that the compiler here makes machine code for."""
    try:
        known = {f"sm_{number}" for number in supported_architectures()}
    except CompileError:
        return []
    return [each.name for each in gpus() if each.arch in known]


def _drawn(kernel: Kernel[Any, Any], gpu: str, profile: Profile | None) -> tuple[str, str]:
    """Return the columns of one kernel, and a text."""
    module = kernel.module
    ptx = compile_ptx(module.code, module.options, module.name_expressions)
    try:
        sass: Sass = kernel.sass(gpu)  # type: ignore[attr-defined]
    except MissingTool as error:
        lowered = ptx.lowered_names.get(kernel.name, kernel.name)
        why = f"There is no machine code here. {error}"
        return without_sass(module.code.splitlines(), ptx.text, lowered, why), f"{why}\n{ptx.text}"
    return columns(sass, ptx.text, issues(sass, profile or latest(kernel))), str(sass)


def _compared(a: Any, b: Any, names: tuple[str, str], gpu: str) -> tuple[str, str]:
    """Return two kernels' listings side by side, and a text."""
    try:
        first, second = a.sass(gpu), b.sass(gpu)
    except MissingTool as error:
        why = f"There is no machine code to compare here. {error}"
        return f'<p class="lkc-note">{escape(why)}</p>', why
    return difference(first, second, names), f"{first.summary}\n{second.summary}"


def latest(kernel: Kernel[Any, Any]) -> Profile | None:
    """Return the kernel's latest profile, while somebody keeps it."""
    kept = getattr(kernel, "latest_profile", None) or getattr(kernel.simulated, "latest_profile", None)
    return kept() if isinstance(kept, weakref.ref) else None


def issues(sass: Sass, profile: Profile | None) -> Issues:
    """Return how often the profiled launch issued each instruction of `sass`, or why that is unknown."""
    if profile is None:
        return Issues()
    if list(profile.source) != list(sass.source):
        return Issues(None, "The profile is of another source, so its counts are left out.")
    counted = profile.ptx_lines
    by_line = dict(zip(counted["line"].tolist(), counted["instructions"].astype(int).tolist(), strict=True))
    try:
        if profile.launch.gpu.arch != sass.code.arch:
            raise CompileError(f"it was made for {profile.launch.gpu.name}, with other machine code")
        found = profile.sass
        if not isinstance(found, Issued) or found.sass.code.instructions != sass.code.instructions:
            return Issues(None, "The profile is of another kernel or other options; its counts are left out.")
        return Issues([int(count) for count in found.counts.issued])
    except SimtError as error:
        why = f"The profile has no counts of machine code for {sass.gpu.name}: {error}."
        return Issues(None, f"{why} The counts beside the source are instructions of PTX.", by_line)


def _names(a: Any, b: Any) -> tuple[str, str]:
    """Return names that tell two kernels apart: with their options where the names are equal."""
    if a.name != b.name:
        return a.name, b.name
    of_a, of_b = a.module.options, b.module.options
    own = [[each for each in mine if each not in others] for mine, others in ((of_a, of_b), (of_b, of_a))]
    first, second = (" ".join([a.name, *some]) for some in own)
    return (first, second) if first != second else (f"{first} (first)", f"{second} (second)")


def _described(value: object) -> str:
    return f"a {type(value).__name__}"
