"""What a check answers: each criterion of an exercise, met or not, and the first failure in words."""

from dataclasses import dataclass
from html import escape

MET, FAILED, NOT_JUDGED = "met", "failed", "not judged"
_MARKS = {MET: "✓", FAILED: "✗", NOT_JUDGED: "·"}
# JupyterLab's own colours, which follow its dark and light themes; elsewhere the second of each.
_COLOURS = {
    MET: "var(--jp-success-color1, #2e7d32)",
    FAILED: "var(--jp-error-color1, #c62828)",
    NOT_JUDGED: "var(--jp-ui-font-color2, #757575)",
}


# JupyterLab would break lines within words.
_WRAPPED = "margin: 0.5em 0 0; white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere"


@dataclass(frozen=True)
class Line:
    "One criterion as a student reads it, and its state: MET, FAILED or NOT_JUDGED."

    text: str
    state: str


@dataclass(frozen=True)
class Feedback:
    """The answer of a check. `failure` says in words why the failed criterion is not met, or is None.

    Prints as text and shows as HTML; both are the same on every machine, but for times in a `failure`.
    """

    title: str
    lines: tuple[Line, ...]
    failure: str | None = None

    @property
    def ok(self) -> bool:
        "True if every criterion is met."
        return self.failure is None

    @property
    def _headline(self) -> str:
        return f"{self.title}: {'solved' if self.ok else 'not yet'}"

    def __repr__(self) -> str:
        text = [self._headline, *(f"  {_MARKS[line.state]} {line.text}" for line in self.lines)]
        return "\n".join([*text, "", self.failure] if self.failure else text)

    def _repr_html_(self) -> str:
        lines = "".join(
            f'<div><span style="color: {_COLOURS[line.state]}">{_MARKS[line.state]}</span> '
            f"{escape(line.text)}</div>"
            for line in self.lines
        )
        why = f'<pre style="{_WRAPPED}">{escape(self.failure)}</pre>' if self.failure else ""
        colour = _COLOURS[MET if self.ok else FAILED]
        return (
            f'<div style="border-left: 4px solid {colour}; padding-left: 0.8em">'
            f"<b>{escape(self._headline)}</b>{lines}{why}</div>"
        )
