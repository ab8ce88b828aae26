"""`labkit.step`: a block of a kernel, replayed step by step, forwards and backwards.

The simulator records the block once (simt/recording); the page (page/step) replays it without a kernel.
So the same HTML works in JupyterLab, in other editors' notebooks, and in exported pages, with no network.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import Any

import anywidget
import traitlets

from labkit.figures.svg import BLUE, GREY, ORANGE, RED, Svg
from labkit.widgets.explorer import PAGE
from simt.common.text import counted
from simt.kernel import Size
from simt.recording.page_data import page_data
from simt.recording.record import MEGABYTES, Recording, record
from simt.recording.timeline import RUNS, WAITS, Segment, segments

FOLDER = PAGE / "step"
# The page's script is one module; its parts stand in the order in which they build on each other.
PARTS = ("helpers", "values", "recording", "memory", "origins", "player")
VIEWS = ("source_view", "lanes_view", "memory_view", "timeline_view", "origin_view", "step_view")
SCRIPT = "\n".join((FOLDER / f"{part}.js").read_text(encoding="utf-8") for part in (*PARTS, *VIEWS))
STYLE = (FOLDER / "step.css").read_text(encoding="utf-8")
ROW, LEFT, WIDTH = 18, 70, 860  # of the picture, in pixels


class StepView(anywidget.AnyWidget):
    """A recorded block and the page that replays it; `recorded` is the recording itself."""

    _esm = SCRIPT
    _css = STYLE
    title = traitlets.Unicode().tag(sync=True)
    recording = traitlets.Unicode().tag(sync=True)  # JSON, see simt/recording/page_data.py

    def __init__(
        self, recorded: Recording, machine_code: dict[str, Any] | None = None, start: int = 0
    ) -> None:
        self.recorded = recorded
        block = ", ".join(str(each) for each in recorded.at)
        super().__init__(
            title=f"Block ({block}) of {recorded.kernel}, step by step",
            recording=page_data(recorded, machine_code, start),
        )

    @property
    def html(self) -> str:
        """Return the page with all that it needs; where scripts do not run, a picture and the text."""
        image = base64.b64encode(str(picture(self.recorded)).encode()).decode("ascii")
        fallback = f'<img alt="When each warp runs and waits" src="data:image/svg+xml;base64,{image}">'
        fallback += f"<pre>{escape(repr(self))}</pre>"
        return still(self.recording, self.title, fallback)

    def __repr__(self) -> str:
        """Return what happens, for where there is no HTML."""
        return told(self.recorded)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and for where there is no kernel the page with a picture in it, and the text."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data: Any = bundle[0] if isinstance(bundle, tuple) else bundle
        data["text/plain"] = repr(self)
        data["text/html"] = self.html
        return bundle


def step(
    kernel: Any,
    grid: Size,
    block: Size,
    args: Sequence[object],
    at: Size = 0,
    *,
    shared_mem: int = 0,
    first: int | None = None,
    seed: int | None = None,
    optimised: bool = False,
    gpu: str | None = None,
    megabytes: int = MEGABYTES,
) -> StepView:
    """Record the block `at` of a launch in the simulator, and show it step by step.

    The page shows the source with the line of each warp, the variables of 32 lanes, shared and global memory,
    and the time line of the warps. It goes forwards and backwards: by lines, by instructions, to barriers, to
    mistakes, and to where a value comes from. Arrays keep their contents.

    `first` names the warp that runs before the others between two barriers; `seed` chooses a random order
    instead. `optimised` shows the code that GPUs run, with registers in place of variables; otherwise the
    kernel is compiled as for a debugger. `gpu` adds machine code for a GPU of gpus.csv. Raises what
    `labkit.trace` raises.
    """
    found = record(
        kernel,
        grid,
        block,
        args,
        at=at,
        shared_mem=shared_mem,
        first=first,
        seed=seed,
        optimised=optimised,
        megabytes=megabytes,
    )
    return StepView(found, _machine_code(kernel, gpu) if gpu else None)


def still(recording: str, title: str, fallback: str = "") -> str:
    """Return HTML that replays a recording; `fallback` is shown where scripts do not run."""
    data = recording.replace("</", "<\\/")  # or it could end its element
    return (
        f'<style>{STYLE}</style><div class="lks lks-still" data-title="{escape(title)}">{fallback}'
        f'<script type="application/json">{data}</script></div>'
        f'<script type="module">{SCRIPT.replace("export default { render };", "showAll();")}</script>'
    )


def _machine_code(kernel: Any, gpu: str) -> dict[str, Any]:
    sass = kernel.simulated.sass(gpu)
    lines = [{"line": each.line, "text": str(each)} for each in sass.instructions]
    return {"gpu": gpu, "lines": lines}


def told(recording: Recording) -> str:
    """Say in words what a recording has."""
    events, warps = recording.events, recording.warps
    place = ", ".join(str(each) for each in recording.at)
    lines = [
        f"Block ({place}) of `{recording.kernel}`: {counted(warps, 'warp')} with {len(events):,} "
        f"instructions in all; {recording.schedule}."
    ]
    for each in recording.seen:
        where = f"line {each.finding.line}: " if each.finding.line else ""
        lines.append(f"{where}{each.finding.message}")
    if recording.error is not None:
        lines.append(f"The run ended early: {recording.error}")
    if recording.cut:
        lines.append(recording.cut)
    return "\n".join(lines)


def picture(recording: Recording) -> Svg:
    """Draw when each warp runs and waits, with the findings."""
    found, total = segments(recording), max(1, len(recording.events))
    height = ROW * recording.warps + 62
    svg = Svg(WIDTH, height, f"When each warp runs and waits. {told(recording)}")
    svg.text(0, 10, told(recording).splitlines()[0])
    scale = (WIDTH - LEFT - 10) / total
    for warp in range(recording.warps):
        svg.text(0, 34 + ROW * warp + 6, f"warp {warp}")
    for each in found:
        _segment(svg, each, scale)
    for finding in recording.seen:
        for event, lane in zip(finding.events, finding.lanes, strict=True):
            x = LEFT + scale * event
            y = 34 + ROW * int(recording.events.warp[event])
            svg.path(f"M{x:.1f} {y - 3}l5 -8h-10z", fill=RED)
            svg.text(x + 7, y - 7, f"lane {lane}", class_="soft halo")
    looks = [("runs", BLUE), ("some lanes", ORANGE), ("waits at a barrier", GREY)]
    svg.legend(LEFT, height - 10, [(name, {"fill": colour}) for name, colour in looks])
    return svg


def _segment(svg: Svg, segment: Segment, scale: float) -> None:
    x, y = round(LEFT + scale * segment.first, 1), 34 + ROW * segment.warp
    width = round(max(0.5, scale * (segment.end - segment.first)), 1)
    if segment.state == WAITS:
        svg.rect(x, y + 5, width, 3, fill=GREY)
    else:
        svg.rect(x, y, width, 13, fill=BLUE if segment.state == RUNS else ORANGE)
