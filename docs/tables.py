"""Write the generated tables and counts of README.md and docs/*.md, each between its two marks.

    python docs/tables.py           # or: make docs
    python docs/tables.py --check   # writes nothing; exit code 1: a page is out of date

A page marks a place with `<!-- made by docs/tables.py: NAME -->` and `<!-- end -->`; NAME is a key of MAKERS.
"""

import ast
import csv
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "benchmarks")]

import compare_sanitizer  # noqa: E402
import typer  # noqa: E402
from gallery import cases  # noqa: E402

from labkit import cli, kernels, ladder, problem, records, simt  # noqa: E402
from labkit.course.exercise import Exercise  # noqa: E402
from labkit.course.notebooks import catalog  # noqa: E402

PLACE = re.compile(r"(<!-- made by docs/tables.py: ([\w-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
GALLERY = ROOT / "data" / "h200" / "gallery"
EXTRAS = {
    "cuda13": "an NVIDIA GPU: driver 580 or newer, Turing or newer",
    "cuda12": "an NVIDIA GPU: driver 525 or newer",
    "lab": "JupyterLab, the notebooks and `labkit run`",
    "book": "the course as a site: `make book`",
    "cc": "the C exercises, where there is no C compiler",
    "nvcc": "whole programs: `labkit nvcc`, on Linux, with a C++ compiler of the system",
    "torch": "kernels as operators of PyTorch: `labkit.torch`",
    "grade": "grading a class",
    "cluster": "grading on a Dask cluster: `labkit grade --scheduler`",
    "dev": "changing labkit: what `make test` runs",
}


def table(head: Iterable[str], align: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; `align` has one letter per column, l or r."""
    rule = ["---" if letter == "l" else "---:" for letter in align]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def lessons() -> list[catalog.Lesson]:
    """Return the notebooks of the course, in order."""
    return [catalog.lesson(path) for path in catalog.notebooks(ROOT / "notebooks")]


def course() -> str:
    """Return one row per notebook, then the totals."""
    rows = [
        (
            f"[{each.number}](../notebooks/{each.path.name})",
            each.title,
            each.concept,
            catalog.PARTS[each.part],
            str(each.minutes),
            str(len(each.core)) if each.part == "core" else "",
            str(len(each.exercises)),
            str(each.points),
        )
        for each in lessons()
    ]
    everything = total(lessons())
    row = ("", "all", "", "", "", str(len(core())), *map(str, everything))
    head = ("notebook", "title", "what it teaches", "part", "minutes", "core exercises")
    return table((*head, "exercises", "points"), "llllrrrr", [*rows, row])


def core() -> list[Exercise]:
    """Return the exercises of the core, without more practice."""
    return [exercise for each in lessons() if each.part == "core" for exercise in each.core]


def total(chosen: Iterable[catalog.Lesson]) -> tuple[int, int]:
    """Return how many exercises notebooks have, and how many points they are worth."""
    exercises = [exercise for each in chosen for exercise in each.exercises]
    return len(exercises), sum(exercise.points for exercise in exercises)


def course_size() -> str:
    """Say how many notebooks, exercises and points there are, and how many of each in the core."""
    exercises, points = total(lessons())
    minutes = [each.minutes for each in lessons() if each.part == "core"]
    return (
        f"The course has {len(lessons())} notebooks with {exercises} exercises, worth {points} points. "
        f"Its core is {len(minutes)} notebooks with {len(core())} exercises, "
        f"worth {sum(each.points for each in core())} points, "
        f"and takes about {sum(minutes) / 60:.0f} hours.\n"
    )


def commands() -> str:
    """Return one row per command of the command line."""
    group = typer.main.get_command(cli.app)
    found = getattr(group, "commands", {})
    said = {name: command.get_short_help_str(300) for name, command in found.items()}
    return table(("command", "what it does"), "ll", ((f"`labkit {name}`", said[name]) for name in said))


def extras() -> str:
    """Return one row per extra of the package: what it is for and what it installs."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = []
    for name, use in EXTRAS.items():
        packages = [re.match(r"labkit\[[\w,]+\]|[\w.-]+(\[\w+\])?", line) for line in declared.pop(name)]
        rows.append((f"`{name}`", use, ", ".join(f"`{found[0]}`" for found in packages if found)))
    if declared:
        raise SystemExit(f"Say in EXTRAS what these extras are for: {', '.join(declared)}")
    return table(("extra", "for", "installs"), "lll", rows)


def source(family: str, rung: str) -> Path:
    """Return the file of a rung that the records call by its name without the number."""
    folder = Path(kernels.__file__).parent / family
    (found,) = (path for path in folder.glob("*.cu") if re.fullmatch(rf"(\d+_)?{rung}", path.stem))
    return found


def idea(path: Path) -> str:
    """Return the first clause that a rung's source says after `// idea:`."""
    (line,) = re.findall(r"^// idea: (.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return re.split("[:;]", line)[0] if re.search("[:;]", line) else line.rpartition(",")[0] or line


def said(family: str, rung: str, reference: str, macro: str = "") -> tuple[str, str]:
    """Return a row's name and idea; the reference, which has no source of ours, is the text given."""
    if rung in ("cublas", "memcpy"):
        return f"`{rung}`", reference
    path = source(family, rung)
    return f"`{path.stem}`{macro}", idea(path)


def products() -> str:
    """Return the ladder of products on an H200 at N = 4096, with the tensor cores last."""
    of = problem("matmul", 4096, 4096, 4096)
    rounded = records.recorded("h200", kernel="tensor_cores", quantity="time", m=4096)
    rows = [(row.kernel, "", row.value) for row in ladder.recorded(of).itertuples()]
    rows += [(row.kernel, f", PRECISION={row.dtype}", row.value) for row in rounded.itertuples()]
    (cublas,) = (time for name, _, time in rows if name == "cublas")
    return table(
        ("rung", "idea", "TFLOP/s", "% of cuBLAS"),
        "llrr",
        (
            (
                *said("matmul", name, "NVIDIA's library, TF32 off", macro),
                f"{of.gflops(time / 1000) / 1000:.1f}",
                f"{100 * cublas / time:.0f}",
            )
            for name, macro, time in rows
        ),
    )


def transposes() -> str:
    """Return the ladder of transposes on an H200 at N = 8192, int32."""
    of = problem("transpose", 8192, 8192, dtype="int32")
    rows = [(row.kernel, row.value) for row in ladder.recorded(of).itertuples()]
    (memcpy,) = (time for name, time in rows if name == "memcpy")
    return table(
        ("rung", "idea", "GB/s", "% of memcpy"),
        "llrr",
        (
            (
                *said("transpose", name, "CUDA's copy from device to device"),
                f"{of.gbytes_per_s(time / 1000):,.0f}",
                f"{100 * memcpy / time:.0f}",
            )
            for name, time in rows
        ),
    )


def gallery() -> str:
    """Return a sentence: how many kernels the gallery holds."""
    clean = cases("clean")
    return (
        f"`tests/gallery/clean` holds {len({case.file for case in clean})} kernels that show them. In "
        f"{len(clean)} launches they give\nNumPy's results, and those of an H200 "
        "(`tests/simt/test_gallery.py`).\n"
    )


def counters() -> str:
    """Return a sentence: how many launches are compared with Nsight Compute's counters."""
    rows = list(csv.DictReader((GALLERY / "counters.csv").read_text().splitlines()))
    case = cases("clean")[0]
    kernel = simt.RawModule(code=case.source, options=case.options).get_function(case.entry)
    compared = rows[0].keys() & kernel.profile(case.grid, case.block, tuple(case.args().values())).metrics
    tree = ast.parse((ROOT / "tests" / "simt" / "test_gallery.py").read_text())
    unlike = next(
        each.value
        for each in tree.body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "UNLIKE"
    )
    assert isinstance(unlike, ast.Dict)
    return (
        f"The tests compare {len(compared)} metrics of {len(rows)} launches with those that Nsight Compute "
        "counted on an H200\n(`data/h200/gallery/counters.csv`). They are equal, except for some "
        f"of {len(unlike.keys)} launches:\n"
        "`UNLIKE` in `tests/simt/test_gallery.py` lists these with the reasons.\n"
    )


def mistakes() -> str:
    """Return one row per class of planted mistakes, with what compute-sanitizer found.

    That kernel.check finds every one of them is what tests/simt/test_gallery.py asserts.
    """
    planted = [case for case in cases("bugs") if compare_sanitizer.runs(case)]
    rows = {kind: [0, 0] for kind in (*compare_sanitizer.CLASSES.values(), "all")}
    for case in planted:
        found = compare_sanitizer.found_by_sanitizer(case)
        kind = next(k for p, k in compare_sanitizer.CLASSES.items() if re.match(p, case.name))
        for row in (rows[kind], rows["all"]):
            row[0] += 1
            row[1] += found
    head = ("mistake", "planted", "compute-sanitizer", "`kernel.check`")
    body = ((kind, str(all_), str(theirs), str(all_)) for kind, (all_, theirs) in rows.items())
    return table(head, "lrrr", body)


def gpus() -> str:
    """Return a sentence: which GPUs' limits are known."""
    rows = csv.DictReader((ROOT / "simt" / "data" / "gpus.csv").read_text().splitlines())
    names = [row["name"] for row in rows]
    return f"`gpus.csv` has the limits of {len(names)} GPUs: {', '.join(names)}.\n"


MAKERS: dict[str, Callable[[], str]] = {
    "course": course,
    "course-size": course_size,
    "commands": commands,
    "extras": extras,
    "products": products,
    "transposes": transposes,
    "gallery": gallery,
    "counters": counters,
    "mistakes": mistakes,
    "gpus": gpus,
}


def made(text: str) -> str:
    """Return a page's text with every marked place made anew."""
    return PLACE.sub(lambda place: place[1] + MAKERS[place[2]](), text)


def pages() -> list[Path]:
    """Return the pages that may have marked places."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main() -> None:
    """Write what is out of date, or only name it."""
    texts = {path: path.read_text(encoding="utf-8") for path in pages()}
    stale = [path for path, text in texts.items() if made(text) != text]
    for path in stale:
        print(("out of date: " if "--check" in sys.argv else "written: ") + str(path.relative_to(ROOT)))
        if "--check" not in sys.argv:
            path.write_text(made(texts[path]), encoding="utf-8")
    if "--check" in sys.argv and stale:
        sys.exit("Run make docs, and commit what it writes.")


if __name__ == "__main__":
    main()
