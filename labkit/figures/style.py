"""What all figures share: Jupyter shows them, and a line at the bottom says where their numbers come from."""

from collections.abc import Sequence
from io import BytesIO

import pandas as pd
from matplotlib.figure import Figure


class Plot(Figure):
    """A Figure that Jupyter shows by itself. pyplot does not know it, so nothing stays open."""

    def _repr_png_(self) -> bytes:
        png = BytesIO()
        self.savefig(png, format="png")
        return png.getvalue()


def sign(figure: Figure, *sets: pd.DataFrame, looks: Sequence[str] = (), start: str = "") -> None:
    """Write the sources of the records `sets` at the bottom of a figure.

    With several sets, each has its own line, which begins with how the figure draws it, such as "dashed".
    """
    lines = ["; ".join(dict.fromkeys(data.source)) for data in sets]
    if len(sets) > 1:
        lines = [f"{look}: {line}" for look, line in zip(looks, lines, strict=False)]
    figure.supxlabel(start + "\n".join(lines), x=0.01, ha="left", fontsize=8, color="0.35")
