"""Draw docs/architecture.svg: from a kernel's source to what a student sees and what a grade is made of.

    python docs/architecture.py

The picture brings its own background, so that it can be read on a dark page too.
"""

from html import escape
from pathlib import Path

WIDTH, HEIGHT, LINE = 970, 600, 17
INK, QUIET, PAPER = "#1f2937", "#5b6472", "#ffffff"
FILLS = {"source": "#fde9c8", "simulator": "#d9e8fb", "gpu": "#dcf0d8", "student": "#eadff5"}

# name: (x, y, width, kind, lines); the first line is the title, the others say where it is and what comes out
BOXES = {
    "cuda": (20, 60, 190, "source", ["CUDA C++", "kernels/*/*.cu,", "%%cuda cells"]),
    "ptx": (260, 60, 170, "simulator", ["PTX", "compiler: NVRTC,", "or precompiled"]),
    "parsed": (480, 60, 190, "simulator", ["Instructions", "simt/ptx, lowering,", "analysis: flow, shapes"]),
    "code": (720, 60, 190, "simulator", ["Machine code", "simt/code: a warp as a", "vector, made by LLVM"]),
    "time": (20, 200, 190, "gpu", ["Times", "device, ladder:", "timed runs, ceilings"]),
    "gpu": (260, 200, 170, "gpu", ["GPU", "device: CuPy; rehearsal", "tries a launch first"]),
    "run": (480, 200, 130, "simulator", ["Run", "simt/run:", "kernel(...)"]),
    "counters": (640, 200, 140, "simulator", ["Counters", "simt/counters:", "kernel.profile"]),
    "checks": (810, 200, 140, "simulator", ["Checks", "simt/sanitizer:", "kernel.check"]),
    "notebook": (20, 330, 190, "student", ["Notebooks", "widgets, figures,", "model"]),
    "criteria": (480, 330, 300, "student", ["Criteria", "course/exercises:", "right, no finding, …"]),
    "c": (20, 470, 190, "source", ["C", "kernels/*/cpu_*.c,", "%%c cells"]),
    "process": (260, 470, 170, "gpu", ["Compiled C", "c, cpu: in a process of", "its own, or timed here"]),
    "check": (480, 470, 140, "student", ["labkit.check", "feedback in the", "check cell"]),
    "grade": (700, 470, 190, "student", ["labkit grade", "sandboxed answers,", "judged from outside"]),
}  # fmt: skip

# from, side, to, side, and what is said beside the arrow
ARROWS = [
    ("cuda", "right", "ptx", "left"),
    ("ptx", "right", "parsed", "left"),
    ("parsed", "right", "code", "left"),
    ("ptx", "down", "gpu", "up"),
    ("code", "down", "run", "up"),
    ("code", "down", "counters", "up"),
    ("code", "down", "checks", "up"),
    ("gpu", "left", "time", "right"),
    ("run", "down", "criteria", "up"),
    ("counters", "down", "criteria", "up"),
    ("checks", "down", "criteria", "up"),
    ("time", "down", "notebook", "up"),
    ("criteria", "down", "check", "up"),
    ("criteria", "down", "grade", "up"),
    ("process", "up", "criteria", "left"),
    ("c", "right", "process", "left"),
]


def height(name: str) -> int:
    """Compute the height of a box, in pixels."""
    return 20 + LINE * len(BOXES[name][4])


def port(name: str, side: str) -> tuple[float, float]:
    """Where an arrow touches a box."""
    x, y, width, *_ = BOXES[name]
    return {
        "left": (x, y + height(name) / 2),
        "right": (x + width, y + height(name) / 2),
        "up": (x + width / 2, y),
        "down": (x + width / 2, y + height(name)),
    }[side]


def text(x: float, y: float, words: str, *, size: int = 12, bold: bool = False, colour: str = INK) -> str:
    """A line of text that begins at x; y is its base."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{weight}>{escape(words)}</text>'


def box(name: str) -> str:
    """A box with its lines."""
    x, y, width, kind, lines = BOXES[name]
    shape = f'x="{x}" y="{y}" width="{width}" height="{height(name)}" rx="7"'
    frame = f'<rect {shape} fill="{FILLS[kind]}" stroke="{QUIET}"/>'
    said = [
        text(x + 10, y + 20 + LINE * i, line, size=12 if i else 14, bold=not i)
        for i, line in enumerate(lines)
    ]
    return "\n".join([frame, *said])


def arrow(start: str, out: str, end: str, into: str) -> str:
    """A line from box to box."""
    (x1, y1), (x2, y2) = port(start, out), port(end, into)
    ends = f'x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"'
    return f'<line {ends} stroke="{QUIET}" stroke-width="1.5" marker-end="url(#tip)"/>'


def picture() -> str:
    """The whole of it, as SVG."""
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{QUIET}"/></marker></defs>'
    )
    words = [
        text(20, 34, "From a source to an answer", size=18, bold=True),
        text(20, 575, "blue: the simulator, on any CPU", colour=QUIET),
        text(240, 575, "green: this machine's GPU and CPU, which are timed", colour=QUIET),
        text(580, 575, "violet: what students and teachers see", colour=QUIET),
    ]  # fmt: skip
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
    paper = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="{PAPER}"/>'
    return "\n".join(
        [head, tip, paper, *(arrow(*each) for each in ARROWS), *map(box, BOXES), *words, "</svg>\n"]
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf-8")
