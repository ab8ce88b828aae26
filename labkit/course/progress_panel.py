"""The head and the foot of a notebook: what is solved, what is next, and the way to the other notebooks.

`labkit.start("02")` in its second cell shows the head, and `labkit.end("02")` in its last the foot. Both are
plain HTML with relative links, so they work without JupyterLab, too. A check brings them up to date.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape

from IPython.core.getipython import get_ipython
from IPython.display import display, update_display

from labkit.course import missing_name_hint, progress
from labkit.course.exercise import Exercise
from labkit.course.feedback import Score
from labkit.course.notebooks import catalog
from labkit.course.notebooks.catalog import Lesson
from labkit.course.progress import MARKS, Best, state
from labkit.devices.select import device

COURSE = "labkit-course-link"  # JupyterLab opens the page Course for a link of this class: lab/extension
_FRAME = (
    "border: 1px solid var(--jp-border-color2, #bdbdbd); border-radius: 4px; padding: 0.5em 0.9em; "
    "max-width: 60em; line-height: 1.6"
)
_ROW = "display: flex; flex-wrap: wrap; gap: 0 1.4em"

_shown: set[tuple[str, bool]] = set()  # the heads and feet of this session: number, whether it is a foot


def start(number: str) -> None:
    """Load labkit's cells into the notebook, show the notebook's head, and print what runs kernels."""
    lesson = _lesson(number)
    if (shell := get_ipython()) and (extensions := shell.extension_manager):
        extensions.load_extension("labkit")  # %load_ext would warn where the cell runs again
        missing_name_hint.tell_in(shell, number)
    progress.opened(number)
    _show(lesson, is_foot=False)
    print(device())


def end(number: str) -> None:
    """Show the notebook's foot."""
    _show(_lesson(number), is_foot=True)


def update() -> None:
    """Bring the heads and feet that are shown up to date."""
    best = progress.load().best
    for number, is_foot in _shown:
        update_display(Panel(_lesson(number), best, is_foot), display_id=_name(number, is_foot))


def following(exercise: Exercise, points: str, best: Mapping[str, Best]) -> Score:
    """Return the points with what follows a solved exercise.

    That is the next of its notebook which is not solved, before or after it, or else the next notebook. More
    practice follows only an exercise that is more practice. Nothing follows one that is being written, and in
    no notebook of the course yet.
    """
    lesson = _lesson_with(exercise.id)
    if lesson is None:
        return Score(points)
    place = lesson.exercises.index(exercise)
    others = [*lesson.exercises[place + 1 :], *lesson.exercises[:place]]
    for each in sorted(others, key=lambda other: other.practice):
        if state(each.id, best) != "solved" and each.practice <= exercise.practice:
            return Score(points, f"{each.id} {each.title}", _anchor(lesson, each.id))
    done = f"{points} · {_all_solved(lesson, best)}"
    after = _beside(lesson)[1]
    return Score(done, f"notebook {after.number}, {after.title}", after.path.name) if after else Score(done)


@dataclass(frozen=True)
class Panel:
    """The head or foot of a notebook.

    The first notebook's head also has the points of all notebooks. A foot says how good the student's
    predictions were.
    """

    lesson: Lesson
    best: Mapping[str, Best]
    is_foot: bool

    @property
    def states(self) -> dict[str, str]:
        """Return the state of each exercise."""
        return {each.id: state(each.id, self.best) for each in self.lesson.exercises}

    @property
    def earned(self) -> str:
        """Say what is solved, as in `1 of 4 exercises solved, 2 of 9 points`."""
        states = [*self.states.values()]
        if not states:
            return "no exercises"
        solved = f"{states.count('solved')} of {len(states)} exercises solved"
        return f"{solved}, {_earned(self.lesson, self.best)} points"

    def next_of(self, exercises: Iterable[Exercise]) -> str:
        """Return which of these is to be solved next; empty where all are."""
        return next((each.id for each in exercises if self.states[each.id] != "solved"), "")

    @property
    def further(self) -> list[str]:
        """Return what else it says: sentences about predictions, or the points of all notebooks."""
        if self.is_foot:
            from labkit.course import guesses  # imported here: a head needs no predictions

            return guesses.told(self.lesson.number, self.lesson.predictions)
        if self.lesson != next(iter(_lessons().values())) or not self.best:
            return []
        lessons = [lesson for lesson in _lessons().values() if lesson.exercises]
        each = [f"{lesson.number}: {_earned(lesson, self.best)}" for lesson in lessons]
        total = sum(lesson.points for lesson in _lessons().values())
        all_earned = sum(_points(lesson, self.best) for lesson in _lessons().values())
        return [f"Points in the whole course: {round(all_earned, 2):g} of {total} ({', '.join(each)})."]

    def __repr__(self) -> str:
        marks = [
            f"  {MARKS[found]} {each} {_title(self.lesson, each)}" for each, found in self.states.items()
        ]
        head = f"{self.lesson.number} · {self.lesson.title}: {self.earned}"
        before, after = _beside(self.lesson)
        ways = [f"{word}: {each.path.name}" for word, each in (("previous", before), ("next", after)) if each]
        return "\n".join([head, *marks, *self.further, *ways])

    def _repr_html_(self) -> str:
        before, after = _beside(self.lesson)
        first = next(iter(_lessons().values()))
        ways = [
            f"← {_link(_named(before), before.path.name)}" if before else "",
            _link("Course", first.path.name, COURSE),
            f"{_link(_named(after), after.path.name)} →" if after else "",
        ]
        place, minutes = ("foot", "") if self.is_foot else ("head", f"about {self.lesson.minutes} minutes · ")
        marks = "".join(self._mark(each, found) for each, found in self.states.items())
        way = f'<div style="{_ROW}; justify-content: space-between">{_spans(ways)}</div>'
        done = (
            f"<div><b>{escape(_named(self.lesson))}</b> · {minutes}{self.earned}</div>"
            f'<div role="list" aria-label="exercises of {self.lesson.number}" style="{_ROW}">{marks}</div>'
            f"<div>{self._to_do(after)}</div>"
            f"{''.join(f'<div>{escape(sentence)}</div>' for sentence in self.further)}"
        )
        label = f"Course, {place} of notebook {self.lesson.number}"
        inside = done + way if self.is_foot else way + done
        return f'<nav aria-label="{label}" style="{_FRAME}">{inside}</nav>'

    def _mark(self, exercise: str, found: str) -> str:
        sign = f'<span role="img" aria-label="{found}" title="{found}">{MARKS[found]}</span>'
        return f'<span role="listitem">{sign} {self._link_to(exercise)}</span>'

    def _to_do(self, after: Lesson | None) -> str:
        """Say what is next: an exercise, or another notebook."""
        if chosen := self.next_of(self.lesson.core):
            return f"Next: <b>{self._link_to(chosen)}</b>"
        if not self.lesson.exercises:
            return ""
        done = _all_solved(self.lesson, self.best)
        sentences = [f"{done[0].upper()}{done[1:]}."]
        if more := self.next_of(self.lesson.exercises):
            sentences.append(f"More practice: {self._link_to(more)}.")
        if after:
            sentences.append(f"Next: <b>{_link(_named(after), after.path.name)}</b>")
        return " ".join(sentences)

    def _link_to(self, exercise: str) -> str:
        return _link(f"{exercise} {_title(self.lesson, exercise)}", _anchor(self.lesson, exercise))


def _show(lesson: Lesson, is_foot: bool) -> None:
    _shown.add((lesson.number, is_foot))
    panel = Panel(lesson, progress.load().best, is_foot)
    display(panel, display_id=_name(lesson.number, is_foot))


def _name(number: str, is_foot: bool) -> str:
    """Name the display of a head or foot."""
    return f"labkit-{'foot' if is_foot else 'head'}-{number}"


@cache
def _lessons() -> dict[str, Lesson]:
    """Read the course's own notebooks; the student's copies have the same names and headings."""
    found = [catalog.lesson(path) for path in catalog.notebooks(catalog.shipped())]
    return {lesson.number: lesson for lesson in found}


def _lesson(number: str) -> Lesson:
    if number not in _lessons():
        raise ValueError(f"there is no notebook {number!r}. Choose one of {', '.join(_lessons())}.")
    return _lessons()[number]


def _lesson_with(exercise: str) -> Lesson | None:
    """Return the notebook in which an exercise stands now, if any."""
    lessons = _lessons().values()
    return next((each for each in lessons if any(has.id == exercise for has in each.exercises)), None)


def _beside(lesson: Lesson) -> tuple[Lesson | None, Lesson | None]:
    """Return the notebooks before and after one; an optional one is neither."""
    path = [each for each in _lessons().values() if each.part != "optional" or each == lesson]
    order = [None, *path, None]
    place = order.index(lesson)
    return order[place - 1], order[place + 1]


def _points(lesson: Lesson, best: Mapping[str, Best]) -> float:
    return sum(each.points * best[each.id].share for each in lesson.exercises if each.id in best)


def _earned(lesson: Lesson, best: Mapping[str, Best]) -> str:
    return f"{round(_points(lesson, best), 2):g} of {lesson.points}"


def _title(lesson: Lesson, exercise: str) -> str:
    return next(each.title for each in lesson.exercises if each.id == exercise)


def _named(lesson: Lesson) -> str:
    return f"{lesson.number} · {lesson.title}"


def _all_solved(lesson: Lesson, best: Mapping[str, Best]) -> str:
    """Say that the exercises of a notebook are solved, or those that are not more practice."""
    left = any(state(each.id, best) != "solved" for each in lesson.exercises)
    kind, count = ("core ", len(lesson.core)) if left else ("", len(lesson.exercises))
    if count == 1:
        return f"the {kind}exercise of {lesson.number} is solved"
    return f"{'both' if count == 2 else f'all {count}'} {kind}exercises of {lesson.number} are solved"


def _anchor(lesson: Lesson, exercise: str) -> str:
    """Return the link to an exercise's heading in its notebook."""
    heading = lesson.headings.get(exercise, "")
    return catalog.anchor(heading) if heading else ""


def _link(text: str, href: str, look: str = "") -> str:
    if not href:
        return escape(text)
    kind = f' class="{look}"' if look else ""
    return f'<a{kind} href="{escape(href)}">{escape(text)}</a>'


def _spans(parts: list[str]) -> str:
    return "".join(f"<span>{part}</span>" for part in parts)
