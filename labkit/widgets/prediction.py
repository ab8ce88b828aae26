"""An input for a prediction: the answer comes when the prediction is committed.

The page (page/prediction.js) has the inputs, and the kernel judges what they hold. So the answer is neither
in the page nor in a saved notebook before the student has committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anywidget
import traitlets

from labkit.widgets.explorer import PAGE

Said = Sequence[str] | None  # the text of each input; None: "I don't know"
Reveal = Mapping[str, str]  # "verdict", "text" and "source", or "error" for what cannot be judged


class Prediction(anywidget.AnyWidget):
    """Inputs, a button that commits them, and then what `judge` makes of them.

    `inputs` describes each input with "label", "unit" and "choices".
    """

    _esm = PAGE / "prediction.js"
    _css = PAGE / "prediction.css"
    title = traitlets.Unicode().tag(sync=True)
    inputs: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    said = traitlets.Dict().tag(sync=True)  # {"id": counts up, "values": Said}
    reveal = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        title: str,
        inputs: Sequence[Mapping[str, Any]],
        judge: Callable[[Said], Reveal],
    ) -> None:
        self.judge = judge
        super().__init__(title=title, inputs=[dict(each) for each in inputs])
        self.observe(self._commit, "said")

    def show(self, said: Said, reveal: Reveal) -> None:
        """Show what was committed before, without judging it again."""
        with self.hold_trait_notifications():
            self.unobserve(self._commit, "said")
            self.said = {"id": 0, "values": None if said is None else list(said)}
            self.reveal = dict(reveal)
        self.observe(self._commit, "said")

    def _commit(self, change: Mapping[str, Any]) -> None:
        """Judge what the page sends."""
        said = change["new"]
        self.reveal = {**self.judge(said["values"]), "id": said["id"]}

    def __repr__(self) -> str:
        """Return the text that stands for the input where there is no kernel; the answer if committed."""
        if "text" in self.reveal:
            return f"{self.title}: {self.reveal['text']}"
        asked = "; ".join(_asked(each) for each in self.inputs)
        return f'{self.title}: {asked}. Run the cell to enter yours; "I don\'t know" is an answer, too.'


def _asked(each: Mapping[str, Any]) -> str:
    kind = f"one of {', '.join(each['choices'])}" if each["choices"] else each["unit"] or "a number"
    return f"{each['label']} ({kind})"
