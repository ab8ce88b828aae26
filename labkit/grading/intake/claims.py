"""Which cells of a submission answer which exercise, and which of several counts.

A code cell answers the exercise that its magic names. Where that names none, the cell's metadata do, as it
was released; then its first line is mended. A cell without both is none of ours.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from labkit.compiler.options import grouped
from labkit.course.exercise import Exercise
from labkit.grading.model import Answer

MOST_BYTES = 2**18  # of an answer

# Above the magic may stand comments and, as %%time, a magic around it. IPython would not take the first.
_MAGIC = re.compile(
    r"(?:[ \t]*(?:(?:#|//|%%).*)?\n)*?(?P<indent>[ \t]*)%%(?P<magic>cuda|c|answer|program)\b(?P<line>.*)"
)
_OTHER_MAGIC = re.compile(r"\s*%%.*\n?")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Claim:
    """A cell that answers an exercise, beginning with its magic line; `has_magic`: it did so by itself."""

    exercise: str
    text: str
    has_magic: bool
    note: str = ""


def of_notebook(cells: Sequence[object], exercises: Mapping[str, Exercise]) -> tuple[dict[str, Answer], int]:
    """Return the answers of a notebook by exercise, and how many of its cells are malformed."""
    claims: dict[str, list[Claim]] = {}
    malformed = 0
    for cell in cells:
        try:
            claim = _claim(cell, exercises)
        except _Malformed:
            malformed += 1
            continue
        if claim:
            claims.setdefault(claim.exercise, []).append(claim)
    return {exercise: _counting(found) for exercise, found in claims.items()}, malformed


def of_submission(
    notebooks: Sequence[tuple[str, Mapping[str, Answer]]],
    exercises: Mapping[str, Exercise],
    released: Collection[str],
) -> dict[str, Answer]:
    """Choose an answer to each exercise from a submission's notebooks, given by names and answers.

    Of several notebooks with different answers that counts which has the name of the released one, else the
    last by name.
    """
    in_order = sorted(notebooks, key=lambda notebook: natural(notebook[0]))
    return {exercise: _of_several(exercise, in_order, released) for exercise in exercises}


def natural(name: str) -> list[str | tuple[int, str]]:
    """Return the key to sort names by: lab (10) comes after lab (2)."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), part) if at % 2 else part for at, part in enumerate(parts)]


class _Malformed(Exception):
    """Not a cell."""


def _claim(cell: object, exercises: Mapping[str, Exercise]) -> Claim | None:
    if not isinstance(cell, dict):
        raise _Malformed
    if cell.get("cell_type") != "code":
        return None
    text, released = _text(cell.get("source")), _in_metadata(cell.get("metadata"), exercises)
    magic = _MAGIC.match(text, 0, MOST_BYTES)
    words = magic["line"].split() if magic else []
    named = next((word for word in words if word in exercises), None)
    exercise = named or released
    if exercise is None:
        return None
    if len(text) > MOST_BYTES or len(text.encode()) > MOST_BYTES:
        note = f"The cell of {exercise} is longer than {MOST_BYTES >> 10} KiB and was not taken."
        return Claim(exercise, "", magic is not None, note)
    if magic is None:
        return _without_magic(exercises[exercise], text)
    rest = text[magic.end() :].removeprefix("\n")
    if magic["indent"]:  # as IPython does
        rest = re.sub(f"^{magic['indent']}", "", rest, flags=re.MULTILINE)
    if named:
        return Claim(exercise, f"%%{magic['magic']} {magic['line'].strip()}\n{rest}", has_magic=True)
    line = " ".join([f"%%{magic['magic']}", exercise, *_options(words)])
    was = f"%%{magic['magic']}{magic['line']}".strip()
    return Claim(
        exercise, f"{line}\n{rest}", False, f"The cell of {exercise} was renamed: it began with {was[:80]}."
    )


def _without_magic(exercise: Exercise, text: str) -> Claim:
    """Return the claim of a cell that is known by its metadata alone."""
    if not text.strip():
        return Claim(exercise.id, "", False, f"The cell of {exercise.id} is empty.")
    line = f"%%{exercise.magic} {exercise.id}"
    other = _OTHER_MAGIC.match(text)
    note = f"The magic line {line} was missing; it was added."
    return Claim(exercise.id, f"{line}\n{text[other.end() :] if other else text}", False, note)


def _text(source: object) -> str:
    """Return a cell's text; the file has a list of lines, or one string."""
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _Malformed
    return _NO_TEXT.sub("\ufffd", source.replace("\r\n", "\n").replace("\r", "\n"))


def _in_metadata(metadata: object, exercises: Mapping[str, Exercise]) -> str | None:
    """Return the exercise that the cell was released for."""
    about = metadata.get("labkit") if isinstance(metadata, dict) else None
    if not isinstance(about, dict) or about.get("role") != "answer":
        return None
    exercise = about.get("exercise")
    return exercise if isinstance(exercise, str) and exercise in exercises else None


def _options(words: Sequence[str]) -> list[str]:
    """Return a magic's line without the first name."""
    groups = list(grouped(words))
    named = next((group for group in groups if not group[0].startswith("-")), None)
    return [word for group in groups if group is not named for word in group]


def _counting(claims: Sequence[Claim]) -> Answer:
    """Choose the cell that counts among those of a notebook that claim an exercise."""
    exercise = claims[0].exercise
    filled = [claim for claim in claims if claim.text] or claims
    named = [claim for claim in filled if claim.has_magic]
    counting = (named or filled)[-1]
    notes = [counting.note]
    if len({claim.text for claim in named or filled}) > 1:
        notes.append(f"{len(named or filled)} cells answer {exercise}; the last one counts.")
    if named and {claim.text for claim in filled} > {claim.text for claim in named}:
        notes.append(
            f"{exercise} is split into several cells; only what stands with its magic line was judged."
        )
    return Answer(exercise, counting.text, " ".join(filter(None, notes)))


def _of_several(
    exercise: str, notebooks: Sequence[tuple[str, Mapping[str, Answer]]], released: Collection[str]
) -> Answer:
    having = [(name, answers[exercise]) for name, answers in notebooks if exercise in answers]
    if not having:
        return Answer(exercise, "", f"There is no cell that answers {exercise}.")
    filled = [each for each in having if each[1].source] or having
    lab = exercise.partition(".")[0]
    own = [
        each
        for each in filled
        if (file := each[0].rpartition("/")[2]) in released and file.startswith(f"{lab}_")
    ]
    name, answer = (own or filled)[-1]
    if len({other.source for _, other in filled}) == 1:
        return answer
    note = f"{len(filled)} notebooks answer {exercise} in different ways; {name} counts."
    return Answer(exercise, answer.source, f"{answer.note} {note}".strip())
