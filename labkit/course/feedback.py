"""What a check answers: each criterion of an exercise, met or not, and the first failure in words."""

from dataclasses import dataclass, field
from html import escape
from typing import Any

from simt.recording.failing import Failure

MET, FAILED, NOT_JUDGED, NEEDS_GPU = "met", "failed", "not judged", "needs a GPU"
_MARKS = {MET: "✓", FAILED: "✗", NOT_JUDGED: "·", NEEDS_GPU: "○"}
_OPEN = " (not judged here: needs a GPU)"
# JupyterLab's own colours, which follow its dark and light themes; elsewhere the second of each.
_COLOURS = {
    MET: "var(--jp-success-color1, #2e7d32)",
    FAILED: "var(--jp-error-color1, #c62828)",
    NOT_JUDGED: "var(--jp-ui-font-color2, #757575)",
    NEEDS_GPU: "var(--jp-warn-color1, #b26a00)",
}


# JupyterLab would break lines within words.
_WRAPPED = "margin: 0.5em 0 0; white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere"


@dataclass(frozen=True)
class Line:
    """One criterion as a student reads it, and its state.

    MET, FAILED, NOT_JUDGED (an earlier one failed) or NEEDS_GPU (there is none here).
    """

    text: str
    state: str

    def __str__(self) -> str:
        return self.text + (_OPEN if self.state == NEEDS_GPU else "")


@dataclass(frozen=True)
class Score:
    """The points of an answer, and what comes next with the link to it."""

    points: str
    next: str = ""
    link: str = ""

    def __str__(self) -> str:
        return f"{self.points} · next: {self.next}" if self.next else self.points

    def html(self) -> str:
        """Return the same with the link."""
        if not self.link:
            return escape(str(self))
        return f'{escape(self.points)} · next: <a href="{escape(self.link)}">{escape(self.next)}</a>'


@dataclass(frozen=True)
class Feedback:
    """The answer of a check. `failure` says in words why the failed criterion is not met, or is None.

    It prints as text and shows as HTML; both are the same on every machine, apart from times in a `failure`.
    """

    title: str
    lines: tuple[Line, ...]
    failure: str | None = None
    score: "Score | None" = None
    replay: Failure | None = field(default=None, compare=False, repr=False)  # the launch that went wrong

    def step(self) -> Any:
        """Show the block that went wrong step by step, at the moment when it did.

        Raises ValueError where no launch of a kernel went wrong.
        """
        from labkit.widgets.step import StepView

        if self.replay is None:
            raise ValueError(
                "no launch of a kernel went wrong in this check, so there is nothing to step through"
            )
        recorded, start = self.replay.recorded()
        return StepView(recorded, start=start)

    def __reduce__(self) -> tuple[Any, ...]:  # kernels stay where they are
        return Feedback, (self.title, self.lines, self.failure, self.score)

    def _ipython_display_(self) -> None:
        """Show the feedback, and below it a button that opens the block that went wrong."""
        if self.replay is None:
            raise NotImplementedError  # as any object is shown
        from labkit.course.replay_button import show_with_button

        show_with_button(self)

    @property
    def ok(self) -> bool:
        """Return True if no criterion fails: every one is met, or `is_open`."""
        return self.failure is None

    @property
    def is_open(self) -> bool:
        """Return True if a criterion is left to a machine with a GPU."""
        return any(line.state == NEEDS_GPU for line in self.lines)

    @property
    def _headline(self) -> str:
        solved = "solved, but for what needs a GPU" if self.is_open else "solved"
        return f"{self.title}: {solved if self.ok else 'not yet'}"

    def __repr__(self) -> str:
        text = [self._headline, *(f"  {_MARKS[line.state]} {line}" for line in self.lines)]
        text += ["", self.failure] if self.failure else []
        return "\n".join([*text, "", str(self.score)] if self.score else text)

    def _repr_html_(self) -> str:
        lines = "".join(
            f'<div><span style="color: {_COLOURS[line.state]}">{_MARKS[line.state]}</span> '
            f"{escape(str(line))}</div>"
            for line in self.lines
        )
        why = f'<pre style="{_WRAPPED}">{escape(self.failure)}</pre>' if self.failure else ""
        score = f'<div style="margin-top: 0.5em"><b>{self.score.html()}</b></div>' if self.score else ""
        colour = _COLOURS[MET if self.ok else FAILED]
        return (
            f'<div style="border-left: 4px solid {colour}; padding-left: 0.8em">'
            f"<b>{escape(self._headline)}</b>{lines}{why}{score}</div>"
        )
