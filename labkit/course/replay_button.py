"""The button below a failed check that opens the block that went wrong."""

from __future__ import annotations

from typing import Any

from labkit.course.feedback import Feedback
from simt.common.cell import current
from simt.common.errors import SimtError

LABEL = "Step through the block that went wrong"


def show_with_button(feedback: Feedback) -> None:
    """Display a failed check, with the button where somebody can click it."""
    import ipywidgets
    from IPython.display import display

    told = {"text/plain": repr(feedback), "text/html": feedback._repr_html_()}
    display(told, raw=True)
    if current().id == "":  # a program runs the notebook: nobody will click
        return
    button, place = ipywidgets.Button(description=LABEL), ipywidgets.Output()
    button.layout.width = "auto"

    def open_block(_button: Any) -> None:
        button.disabled, button.description = True, "Recording the block ..."
        with place:
            try:
                display(feedback.step())
            except (SimtError, ValueError) as error:
                print(f"The block cannot be recorded: {error}")
        button.layout.display = "none"

    button.on_click(open_block)
    display(ipywidgets.VBox([button, place]))
