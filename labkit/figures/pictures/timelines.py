"""Pictures of who works when: rows of bars over time, in which waiting is pale.

They are models: times are in units of one's choice, a copy takes equally long whatever else happens, and one
copy follows the other, as where bandwidth is the limit.
Errors: ValueError for times or counts that cannot be drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from labkit.figures.axes import Scale
from labkit.figures.pictures.pipeline import Step
from labkit.figures.svg import BLUE, GREEN, ORANGE, SKY, Svg, ink_on

BUFFERS = 2  # of a double buffer, and stages of the pipeline with mbarriers
_WIDTH, _LEFT, _TOP, _ROW = 720, 92.0, 54.0, 38.0  # pixels; a row is a bar and the gap below it
_GAP, _LETTER = 6.0, 6.6  # pixels: between rows, and the width of a letter
_FIRST, _SECOND = BLUE, ORANGE  # warps
_LOAD, _COMPUTE = SKY, BLUE
_PALE = 0.3
_MOST = 12  # units, tiles or steps


@dataclass(frozen=True)
class Bar:
    """What someone does from `begin` to `end`, in a line or two; while it `waits` the bar is pale.

    A bar without a colour shows a state, and is grey.
    """

    begin: float
    end: float
    text: str
    fill: str = ""
    waits: bool = False

    @property
    def look(self) -> dict[str, object]:
        """Return the attributes of its box."""
        if not self.fill:
            return {"class_": "empty" if self.waits else "mid"}
        if self.waits:
            return {"fill": self.fill, "fill_opacity": _PALE, "stroke": self.fill, "stroke_dasharray": "3 3"}
        return {"fill": self.fill}


class Timeline:
    """A picture with an axis of time from 0 to `end`, for rows that begin at `top` pixels."""

    def __init__(self, title: str, told: str, end: float, rows: float, top: float = _TOP) -> None:
        self.top, self.bottom = top, top + rows * _ROW
        self.scale = Scale(0, end)
        self.picture = Svg(_WIDTH, self.bottom + 40, f"{title}. {told}")
        self.picture.title(title)
        for mark in self.scale.marks():
            self.picture.line(self.x(mark), self.top, self.x(mark), self.bottom, class_="grid")
            self.picture.text(self.x(mark), self.bottom + 11, f"{mark:g}", "middle", class_="soft")
        self.picture.text(self.x(end / 2), self.bottom + 29, "time (units of a model)", "middle")

    def x(self, time: float) -> float:
        """Return the place of a time across."""
        return _LEFT + (_WIDTH - _LEFT - 14) * self.scale.share(time)

    def y(self, place: float) -> float:
        """Return where row `place` begins, from the top."""
        return self.top + place * _ROW

    def row(self, place: float, name: str, bars: Sequence[Bar], at_start: bool = False) -> None:
        """Draw a row of bars with its name on the left; text that has no room in its bar is left out.

        Text is in the middle of its bar or, where lines cross the row, `at_start`.
        """
        high = _ROW - _GAP
        self.picture.text(_LEFT - 8, self.y(place) + high / 2, name, "end")
        for bar in bars:
            left, wide = self.x(bar.begin), self.x(bar.end) - self.x(bar.begin)
            self.picture.rect(left, self.y(place), wide - 1, high, class_="paper")  # pale ones hide the grid
            self.picture.rect(left, self.y(place), wide - 1, high, **bar.look)
            lines = bar.text.split("\n")
            if max(map(len, lines)) * _LETTER > wide:
                continue
            ink = ink_on(bar.fill) if bar.fill and not bar.waits else None
            for number, line in enumerate(lines):
                y = self.y(place) + high / 2 + 14 * (number - (len(lines) - 1) / 2)
                x, anchor = (left + 9, "start") if at_start else (left + wide / 2, "middle")
                self.picture.text(x, y, line, anchor, class_=ink, font_size=11)


def barrier_wait(arrive: tuple[int, int] = (3, 7), read: int = 4) -> Svg:
    """Draw two warps that each write half of a tile, meet at a barrier, and read the other half.

    `arrive` says when each arrives at the barrier, and `read` how long they read.
    """
    _check(arrive=min(arrive), read=read)
    over, parts = max(arrive), ("tile[0…31]", "tile[32…63]")
    late = arrive.index(over)
    early, waits = 1 - late, over - min(arrive)
    finding = f"Warp {early} waits {waits} units at the barrier: {parts[late]} is not complete before"
    if not waits:
        finding = "Both warps arrive at the barrier at the same time: none waits"
    told = f"Then warp 0 reads {parts[1]}, which warp 1 has written, and warp 1 reads {parts[0]}."
    time = Timeline(finding, told, over + read, 4.3, 66)
    for warp, fill in enumerate((_FIRST, _SECOND)):
        arrives = arrive[warp]
        waiting = [Bar(arrives, over, "waits", fill, True)] if arrives < over else []
        bars = [
            Bar(0, arrives, f"writes {parts[warp]}", fill),
            *waiting,
            Bar(over, over + read, f"reads {parts[1 - warp]}", fill),
        ]
        time.row(warp, f"warp {warp}", bars)
        states = [
            Bar(0, arrives, "being written", waits=True),
            *([Bar(arrives, over, "complete")] if waiting else []),
            Bar(over, over + read, f"complete, warp {1 - warp} reads"),
        ]
        time.row(2.3 + warp, parts[warp], states)
    at = time.x(over) - 0.5
    time.picture.line(at, time.top - 8, at, time.bottom, class_="line", stroke_width=3)
    time.picture.text(at, time.top - 20, "__syncthreads(): both have arrived", "middle")
    return time.picture


def turns(tiles: int, load: float, compute: float, buffers: int) -> list[Step]:
    """Return when each tile is loaded and computed: loads follow each other, and each needs a free buffer."""
    done: list[Step] = []
    for tile in range(tiles):
        last = done[-1] if done else Step(0, 0, 0, 0)
        begin = max(last.full, done[tile - buffers].empty if tile >= buffers else 0)
        begun = max(begin + load, last.empty)
        done.append(Step(begin, begin + load, begun, begun + compute))
    return done


def double_buffer(tiles: int = 4, load: int = 3, compute: int = 4) -> Svg:
    """Draw how tiles are loaded and computed with one buffer, and with two."""
    _check(tiles=tiles, load=load, compute=compute)
    single, double = (turns(tiles, load, compute, buffers) for buffers in (1, BUFFERS))
    end, sooner = single[-1].empty, double[-1].empty
    finding = f"Two buffers take {sooner:g} units, one takes {end:g}: tile k + 1 loads while k is computed"
    told = f"{tiles} tiles, each of which takes {load} units to load and {compute} to compute."
    time = Timeline(finding, told, end, 5.0, 62)
    for place, name, steps in ((0, "One buffer", single), (2.9, "Two buffers", double)):
        label = f"{name}: {steps[-1].empty:g} units"
        time.picture.text(_LEFT, time.y(place) - 12, label, font_weight="600", class_="halo")
        buffers = 1 if steps is single else BUFFERS
        names = [f"tile {k}\nbuffer {k % buffers}" for k in range(tiles)]
        loads = [(step.asked, step.full) for step in steps]
        computes = [(step.begun, step.empty) for step in steps]
        time.row(place, "load", _with_waits(loads, names, _LOAD))
        time.row(place + 1, "compute", _with_waits(computes, names, _COMPUTE))
    return time.picture


def full_empty(steps: int = 4, copy: int = 3, multiply: int = 5) -> Svg:
    """Draw a pipeline of two stages, and the phases of the mbarriers by which its two sides wait.

    A copy that has arrived ends a phase of its stage's barrier `full`; a product that is done, one of
    `empty`. In round r the consumer waits for parity r % 2 of full, and the producer for the other one of
    empty, which in round 0 counts as over.
    """
    _check(steps=steps, copy=copy, multiply=multiply)
    done = turns(steps, copy, multiply, BUFFERS)
    end = done[-1].empty
    copies = [(step.asked, step.full) for step in done]
    products = [(step.begun, step.empty) for step in done]
    lost = [_waited(each) for each in (copies, products)]
    finding = f"The producer waits {lost[0]:g} units for empty stages, the consumer {lost[1]:g} for full ones"
    told = f"{steps} steps in {BUFFERS} stages, with the phases of the mbarriers full and empty of each."
    time = Timeline(finding, told, end, 6.6, 78)
    notes = (
        "Green: a copy that is complete, or a product that is done, ends a phase of its stage's barrier.",
        "In the first round the producer waits for parity 1 of empty, which counts as over: it goes on.",
    )
    for line, note in enumerate(notes):
        time.picture.text(8, 32 + 17 * line, note, class_="soft")
    named = [f"step {step}\nstage {step % BUFFERS}" for step in range(steps)]
    rounds = [step // BUFFERS for step in range(steps)]
    sent = [f"waits\nparity {number % 2 ^ 1}" for number in rounds]
    asked = [f"waits\nparity {number % 2}" for number in rounds]
    time.row(0, "producer", _with_waits(copies, named, _LOAD, sent))
    time.row(5.6, "consumer", _with_waits(products, named, _COMPUTE, asked))
    for stage in range(BUFFERS):
        own = done[stage::BUFFERS]
        time.row(1.3 + stage, f"full[{stage}]", _phases([step.full for step in own], end), at_start=True)
        time.row(3.3 + stage, f"empty[{stage}]", _phases([step.empty for step in own], end), at_start=True)
    _draw_releases(time, done)
    return time.picture


def _with_waits(
    spans: Sequence[tuple[float, float]], names: Sequence[str], fill: str, waits: Sequence[str] = ()
) -> list[Bar]:
    """Return a bar for each span, and before it a pale one since the last; `waits` are their texts."""
    bars, free = list[Bar](), 0.0
    for number, ((begin, end), name) in enumerate(zip(spans, names, strict=True)):
        if begin > free:
            bars.append(Bar(free, begin, waits[number] if waits else "waits", fill, True))
        bars.append(Bar(begin, end, name, fill))
        free = end
    return bars


def _waited(spans: Sequence[tuple[float, float]]) -> float:
    """Return the time before and between spans."""
    return spans[-1][1] - sum(end - begin for begin, end in spans)


def _phases(ends: Sequence[float], last: float) -> list[Bar]:
    """Return the phases of an mbarrier that end at `ends`; one more runs then. Odd ones are darker."""
    begins, stops = [0.0, *ends], [*ends, last]
    spans = zip(begins, stops, strict=True)
    return [
        Bar(begin, end, f"phase {phase}\nparity {phase % 2}", waits=phase % 2 == 0)
        for phase, (begin, end) in enumerate(spans)
        if end > begin
    ]


def _draw_releases(time: Timeline, done: Sequence[Step]) -> None:
    """Mark the end of each phase: a line from who ends it to its barrier, with a dot there."""
    bar = _ROW - _GAP
    for number, step in enumerate(done):
        stage = number % BUFFERS
        full, empty = time.y(1.3 + stage) + bar / 2, time.y(3.3 + stage) + bar / 2
        for at, begin, end in (
            (step.full, time.y(0) + bar, full),
            (step.empty, time.y(5.6), empty),
        ):
            x = time.x(at) - 0.5
            time.picture.line(x, begin, x, end, stroke=GREEN, stroke_width=2)
            time.picture.add("circle", cx=x, cy=end, r=4, fill=GREEN)


def _check(**numbers: int) -> None:
    for name, number in numbers.items():
        if not 1 <= number <= _MOST:
            raise ValueError(f"{name}={number} cannot be drawn. Choose 1 to {_MOST}.")
