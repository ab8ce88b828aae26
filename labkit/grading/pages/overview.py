"""The class's page: how points are distributed, how each exercise went, and what wants a look."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from markupsafe import Markup

import labkit
from labkit.grading.intake.labs import Lab, number
from labkit.grading.pages import chart
from labkit.grading.pages.template import render
from labkit.grading.results.manifest import Run
from labkit.grading.results.scores import Scores, is_full


@dataclass(frozen=True)
class Part:
    """A lab: how many have points in it, and the chart of those with its title."""

    lab: Lab
    students: int
    finding: str
    chart: Markup


def page(scores: Scores, run: Run, links: Mapping[str, str]) -> str:
    """Return the HTML of the overview. `links` are the pages of students."""
    return render(
        "overview.html",
        scores=scores,
        run=run,
        version=labkit.__version__,
        parts=[_part(lab, scores) for lab in scores.labs],
        hardest=_hardest(scores),
        links=links,
    )


def _part(lab: Lab, scores: Scores) -> Part:
    totals = scores.totals[lab.number]
    count = totals.total()
    if not count:
        return Part(lab, 0, "Nobody has points in it", Markup(""))
    full = sum(own for points, own in totals.items() if is_full(points, lab.points))
    middle = number(median(totals.elements()))
    finding = f"The median of {count} is {middle} of {lab.points} points; {full} have all"
    return Part(lab, count, finding, chart.distribution(totals, lab.points, f"{lab}: {finding}"))


def _hardest(scores: Scores) -> str:
    """Say which exercise gave the smallest share of its points, in a sentence; empty where none has been
    judged.
    """
    judged = {id: own for id, own in scores.exercises.items() if own.students}
    if not judged:
        return ""
    id = min(judged, key=lambda id: judged[id].mean_share)
    share = f"{100 * judged[id].mean_share:.0f} %"
    return f"Exercise {id} was the hardest: {share} of its points on average."
