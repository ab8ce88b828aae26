"""Which cells of a submission answer which exercise, and which of several counts.

A code cell answers the exercise that its magic names. Where that names none, the cell's metadata do, as it
was released; then its first line is mended. A cell without both is none of ours.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from grader.intake.handed_out import is_as_handed_out
from grader.intake.labs import labs_of
from grader.model import Answer
from labkit.course.exercise import Exercise
from simt.compiler.options import grouped

MOST_BYTES = 2**18  # of an answer

# What a cell is worth, from least to most: nothing; the cell as handed out; an answer that is set aside, as
# it would not run; work.
EMPTY, STUB, ASIDE, WORK = range(4)

# Above the magic may stand comments and, as %%time, a magic around it. IPython would not take the first.
_MAGIC = re.compile(
    r"(?:[ \t]*(?:(?:#|//|%%).*)?\n)*?(?P<indent>[ \t]*)%%(?P<magic>cuda|c|answer|program)\b(?P<line>.*)"
)
_OTHER_MAGIC = re.compile(r"\s*%%.*\n?")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_MERGE_MARKS = re.compile(r"^<{7}(?: .*)?$.*?^>{7}(?: .*)?$", re.MULTILINE | re.DOTALL)  # of git
_COPY = re.compile(r" ?\([0-9]+\)(?=\.ipynb)", re.IGNORECASE)
_ENDING = re.compile(r"(?=\.ipynb)", re.IGNORECASE)
_LAB = re.compile(r"(?:copy of )*([0-9]+[a-z]?|r[0-9]+)[_ .-]", re.IGNORECASE)


@dataclass(frozen=True)
class Claim:
    """A cell that answers an exercise, beginning with its magic line; `has_magic`: it did so by itself.

    `open` says why it cannot be judged as it is.
    """

    exercise: str
    text: str
    has_magic: bool
    note: str = ""
    worth: int = WORK
    open: str = ""


@dataclass(frozen=True)
class Notebook:
    """A notebook of a submission: its name, what it claims by exercise, and Canvas's number of the file.

    `claims` is None where it cannot be read, and `why` ends a sentence on that. With `is_holder` it is no
    notebook, but something that may hold some.
    """

    name: str
    claims: Mapping[str, Claim] | None
    attachment: int = 0
    why: str = ""
    is_holder: bool = False

    @property
    def file(self) -> str:
        """Return its name without folders."""
        return self.name.rpartition("/")[2]

    @property
    def labs(self) -> Set[str]:
        """Return the labs that the name tells, such as 02; none where it tells none."""
        found = _LAB.match(self.file)
        return labs_of(found[1].lower()) if found else frozenset()

    @property
    def is_for_reading(self) -> bool:
        """Say whether the name is that of a notebook without exercises."""
        return bool(_LAB.match(self.file)) and not self.labs


def of_notebook(cells: Sequence[object], exercises: Mapping[str, Exercise]) -> tuple[dict[str, Claim], int]:
    """Return the claim that counts of a notebook by exercise, and how many of its cells are malformed."""
    claims: dict[str, list[Claim]] = {}
    malformed = 0
    for cell in cells:
        try:
            claim = _claim(cell, exercises)
        except _Malformed:
            malformed += 1
            claim = _lost(cell, exercises)
        if claim:
            claims.setdefault(claim.exercise, []).append(claim)
    return {exercise: _counting(found) for exercise, found in claims.items()}, malformed


def of_submission(
    notebooks: Sequence[Notebook], exercises: Mapping[str, Exercise], released: Collection[str]
) -> tuple[dict[str, Answer], dict[str, str]]:
    """Choose an answer to each exercise from a submission's notebooks; return the notebook of each, too.

    A cell as handed out never wins over work. Of several notebooks with work that counts which Canvas got
    last; elsewhere that which has the name of the released one, then that which lies in the fewest folders,
    then that with the largest number in a name. Where this decides nothing, or one that cannot be read may
    have the answer that counts, the exercise is open.
    """
    answers, of = {}, {}
    labs = {exercise.partition(".")[0] for exercise in exercises}
    for exercise in exercises:
        answers[exercise], winner = _of_several(exercise, notebooks, released, labs)
        if winner:
            of[exercise] = winner
    return answers, of


def natural(name: str) -> list[str | tuple[int, str]]:
    """Return the key to sort names by: lab (10) comes after lab (2)."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), part) if at % 2 else part for at, part in enumerate(parts)]


class _Malformed(Exception):
    """Not a cell."""


def _claim(cell: object, exercises: Mapping[str, Exercise]) -> Claim | None:
    if not isinstance(cell, dict):
        raise _Malformed
    kind = cell.get("cell_type")
    if kind not in ("code", "markdown", "raw"):
        return None
    text, has_nul = _text(cell.get("source"))
    released = _in_metadata(cell.get("metadata"), exercises)
    magic = _MAGIC.match(text, 0, MOST_BYTES)
    words = magic["line"].split() if magic else []
    named = next((word for word in words if word in exercises), None)
    exercise = named or released
    if exercise is None:
        return None
    claim = _written(exercise, text, magic, named is not None, exercises)
    if kind != "code":
        why = f"The answer to {exercise} stands in a {kind} cell, which does not run: make it a code cell."
        return replace(claim, worth=min(claim.worth, ASIDE), open=why) if claim.worth == WORK else None
    if claim.worth == WORK and has_nul:
        return replace(claim, open=f"The cell of {exercise} has NUL characters: the file is damaged.")
    if claim.worth == WORK and _MERGE_MARKS.search(claim.text):
        why = f"The cell of {exercise} has git's merge marks (<<<<<<<): a merge was not finished."
        return replace(claim, open=why)
    return claim


def _lost(cell: object, exercises: Mapping[str, Exercise]) -> Claim | None:
    """Return the claim of a malformed cell of which the metadata alone say what it answers."""
    exercise = _in_metadata(cell.get("metadata"), exercises) if isinstance(cell, dict) else None
    why = f"The cell of {exercise} has no text that could be read."
    return Claim(exercise, "", False, why, ASIDE, why) if exercise else None


def _written(
    exercise: str, text: str, magic: re.Match[str] | None, is_named: bool, exercises: Mapping[str, Exercise]
) -> Claim:
    """Return the claim of a cell that answers an exercise, as if it were a code cell."""
    if len(text) > MOST_BYTES or len(text.encode()) > MOST_BYTES:
        why = f"The cell of {exercise} is longer than {MOST_BYTES >> 10} KiB and was not taken."
        return Claim(exercise, "", magic is not None, why, open=why)
    if magic is None:
        return _without_magic(exercises[exercise], text)
    rest = text[magic.end() :].removeprefix("\n")
    if magic["indent"]:  # as IPython does
        rest = re.sub(f"^{magic['indent']}", "", rest, flags=re.MULTILINE)
    if is_named:
        source = f"%%{magic['magic']} {magic['line'].strip()}\n{rest}"
        worth = _worth(exercise, source) if rest.strip() else EMPTY
        return Claim(exercise, source, has_magic=True, worth=worth)
    line = " ".join([f"%%{magic['magic']}", exercise, *_options(magic["line"].split())])
    was = f"%%{magic['magic']}{magic['line']}".strip()
    note = f"The cell of {exercise} was renamed: it began with {was[:80]}."
    return Claim(exercise, f"{line}\n{rest}", False, note, _worth(exercise, rest))


def _without_magic(exercise: Exercise, text: str) -> Claim:
    """Return the claim of a cell that is known by its metadata alone."""
    if not text.strip():
        return Claim(exercise.id, "", False, f"The cell of {exercise.id} is empty.", EMPTY)
    line = f"%%{exercise.magic} {exercise.id}"
    other = _OTHER_MAGIC.match(text)
    body = text[other.end() :] if other else text
    note = f"The magic line {line} was missing; it was added."
    return Claim(exercise.id, f"{line}\n{body}", False, note, _worth(exercise.id, body))


def _worth(exercise: str, text: str) -> int:
    return STUB if is_as_handed_out(exercise, text) else WORK


def _text(source: object) -> tuple[str, bool]:
    """Return a cell's text, and whether it has NUL; the file has a list of lines, or one string."""
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _Malformed
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _NO_TEXT.sub("\ufffd", text), "\0" in text


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


def _counting(claims: Sequence[Claim]) -> Claim:
    """Choose the cell that counts among those of a notebook that claim an exercise."""
    exercise = claims[0].exercise
    most = max(claim.worth for claim in claims)
    worthy = [claim for claim in claims if claim.worth == most]
    named = [claim for claim in worthy if claim.has_magic]
    counting = (named or worthy)[-1]
    notes = [counting.note]
    if len({claim.text for claim in named or worthy}) > 1:
        notes.append(f"{len(named or worthy)} cells answer {exercise}; the last one counts.")
    if named and {claim.text for claim in worthy} > {claim.text for claim in named}:
        notes.append(
            f"{exercise} is split into several cells; only what stands with its magic line was judged."
        )
    return replace(counting, note=" ".join(filter(None, notes)))


def _of_several(
    exercise: str, notebooks: Iterable[Notebook], released: Collection[str], labs: Set[str]
) -> tuple[Answer, str]:
    """Return the answer to an exercise, and the name of the notebook that has it; "" where none has."""
    lab = exercise.partition(".")[0]

    def rank(notebook: Notebook) -> tuple[int, bool, bool, int]:
        is_own = _COPY.sub("", notebook.file) in released and lab in notebook.labs
        return notebook.attachment, not notebook.is_holder, is_own, -notebook.name.count("/")

    in_order = sorted(notebooks, key=lambda each: (rank(each), natural(_numbered(each.name))))
    having = [(each, each.claims[exercise]) for each in in_order if each.claims and exercise in each.claims]
    others = labs - {lab}  # a number that is none of these may be anything
    unread = [each for each in in_order if each.claims is None and not (each.labs and each.labs <= others)]
    if not having:
        why = _unread(unread)
        return Answer(exercise, "", why or f"There is no cell that answers {exercise}.", why), ""
    most = max(claim.worth for _, claim in having)
    worthy = [each for each in having if each[1].worth == most]
    counting, claim = worthy[-1]
    if most < WORK or len({other.text for _, other in worthy}) == 1:
        note, rivals = claim.note, []
    else:
        which = f"{counting.name}, the latest," if counting.attachment else counting.name
        told = f"{len(worthy)} notebooks answer {exercise} in different ways; {which} counts."
        note = f"{claim.note} {told}".strip()
        rivals = [
            each
            for each, other in worthy
            if other.text != claim.text
            and rank(each) == rank(counting)
            and not _same_but_numbers(each, counting)
        ]
    if most == WORK:  # what would not count beside it is nothing to wait for
        unread = [each for each in unread if rank(each) >= rank(counting)]
    why = claim.open or _unread(unread) or _undecided([*rivals, counting])
    return Answer(exercise, claim.text, claim.note if rivals else note, why), counting.name


def _numbered(name: str) -> str:
    """Write a name with the number of a copy, 0 if it has none: browsers call later ones lab (1), lab (2)."""
    return name if _COPY.search(name) else _ENDING.sub(" (0)", name)


def _same_but_numbers(one: Notebook, other: Notebook) -> bool:
    """Say whether two names differ in their numbers alone, as those of copies do."""
    first, second = (re.sub(r"[0-9]+", "0", _numbered(each.name)) for each in (one, other))
    return first == second


def _unread(unread: Sequence[Notebook]) -> str:
    """Say that a file which is not read may have the answer that counts; "" where there is none."""
    if not unread:
        return ""
    if len(unread) == 1:
        return f"It may be answered in {unread[0].name}, which {unread[0].why}."
    names = ", ".join(each.name for each in unread[-3:]) + ", …" * (len(unread) > 3)
    return f"It may be answered in {names}, which cannot be read."


def _undecided(notebooks: Sequence[Notebook]) -> str:
    """Say that nothing tells which of several notebooks counts; "" where there is but one."""
    if len(notebooks) == 1:
        return ""
    names = ", ".join(each.name for each in notebooks[:3]) + ", …" * (len(notebooks) > 3)
    return f"{len(notebooks)} notebooks answer it in different ways: {names}. Keep the one that counts."
