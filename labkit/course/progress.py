"""What a student has earned, kept in a file beside the notebooks.

Each line of the file is a JSON object: an exercise, the share of its points that was earned, and whether it
is solved; a prediction that was committed; or a notebook that was worked in. A line is added when a result
is better than all before, and nothing is ever changed: so several notebooks can write at once, a damaged line
costs no other, and the best result counts. A share stays true when another labkit gives other points.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

FILE = "progress.jsonl"
COURSE = "[0-9R][0-9]*_*.ipynb"  # progress is kept only beside notebooks of the course
SOLUTIONS = "solutions"  # and not beside the solved ones

MARKS = {"solved": "✓", "begun": "◐", "open": "○"}


@dataclass(frozen=True)
class Best:
    """The best result in an exercise: the `share` of its points, from 0 to 1, and whether it is solved.

    An exercise can be solved with less than all points: where a criterion needs a GPU that is not here.
    """

    share: float
    solved: bool

    def beats(self, other: "Best | None") -> bool:
        """Return whether this is better than another result; None is no result."""
        return self.share > 0 and (other is None or (self.solved, self.share) > (other.solved, other.share))


@dataclass(frozen=True)
class Progress:
    """The best results by exercise, and what was last worked in: an exercise, or a notebook such as 02."""

    best: Mapping[str, Best] = field(default_factory=dict)
    last: str = ""


def load(folder: Path | None = None) -> Progress:
    """Return the progress of a folder, the current one if none is given."""
    best = dict(_unkept)
    last = next(reversed(best), "")
    for name, result in _results(_told(folder or Path.cwd())):
        last = name
        if result and result.beats(best.get(name)):
            best[name] = result
    return Progress(best, last)


def record(exercise: str, result: Best) -> None:
    """Keep a result, if it is the best so far: in the current folder, or in memory where that cannot be."""
    if result.beats(load().best.get(exercise)):
        told = {"exercise": exercise, "share": result.share, "solved": result.solved}
        if not _kept(json.dumps(told) + "\n"):
            _unkept[exercise] = result


def opened(notebook: str) -> None:
    """Keep which notebook is worked in, such as 02, where that can be kept."""
    if load().last != notebook:
        _kept(json.dumps({"notebook": notebook}) + "\n")


def commit(prediction: str, said: Sequence[str] | None) -> None:
    """Keep what was committed as a prediction, None for "I don't know": in the folder, or else in memory."""
    told = {"prediction": prediction, "said": None if said is None else list(said)}
    if not _kept(json.dumps(told) + "\n"):
        _unkept_said[prediction] = said


def committed(folder: Path | None = None) -> dict[str, Sequence[str] | None]:
    """Return what was committed in a folder, the current one if none is given, by prediction."""
    found = dict(_unkept_said)
    for told in _told(folder or Path.cwd()):
        match told:
            case {"prediction": str(name), "said": None}:
                found[name] = None
            case {"prediction": str(name), "said": list(values)} if all(isinstance(v, str) for v in values):
                found[name] = values
    return found


def _kept(line: str) -> bool:
    """Add a line to the file of the current folder. Return False where that cannot be."""
    folder = Path.cwd()
    try:
        if folder.name == SOLUTIONS or not any(folder.glob(COURSE)):
            raise OSError("no notebooks of a student here")
        # One write to the end of the file: what another notebook writes at the same time stays whole.
        file = os.open(folder / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            ended = not (size := os.fstat(file).st_size) or _ends_a_line(folder / FILE, size)
            os.write(file, (line if ended else f"\n{line}").encode())
        finally:
            os.close(file)
    except OSError:
        return False
    return True


def state(exercise: str, best: Mapping[str, Best]) -> str:
    """Return `solved`, `begun` or `open`, the keys of MARKS."""
    found = best.get(exercise)
    return "open" if not found else "solved" if found.solved else "begun"


# Results of this session that have no file.
_unkept: dict[str, Best] = {}
_unkept_said: dict[str, Sequence[str] | None] = {}


def _told(folder: Path) -> Iterator[object]:
    """Read the lines of a folder's file that can be read."""
    text = ""
    with suppress(OSError):
        text = (folder / FILE).read_text(encoding="utf-8", errors="replace")
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            yield json.loads(line)


def _results(told: Iterable[object]) -> Iterator[tuple[str, Best | None]]:
    """Pick what tells of an exercise, with its result, or of a notebook."""
    for each in told:
        match each:
            case {"exercise": str(name), "share": int() | float() as share, "solved": bool(solved)}:
                if 0 <= share <= 1:
                    yield name, Best(float(share), solved)
            case {"notebook": str(name)}:
                yield name, None


def _ends_a_line(path: Path, size: int) -> bool:
    """Return whether a file ends with a line feed; one that was cut off does not."""
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"
