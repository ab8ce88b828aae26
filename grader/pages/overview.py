"""The class's page: how points are distributed, how each exercise went, and what wants a look."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median

from markupsafe import Markup

import labkit
from grader.intake.labs import Lab, number
from grader.model import IGNORED, TAKEN, File, Submission
from grader.pages import chart
from grader.pages.template import render
from grader.results.manifest import Grading
from grader.results.scores import MOST_REMARKS, Remark, Scores, is_full


@dataclass(frozen=True)
class Part:
    """A lab: how many have points in it, and the chart of those with its title."""

    lab: Lab
    students: int
    finding: str
    chart: Markup


@dataclass
class Files:
    """What became of the files of a class: how many had each fate, and which were not just taken.

    Of those `odd` has the first that may hold answers, `ignored` the first others.
    """

    counts: Counter[str] = field(default_factory=Counter)
    odd: list[tuple[str, File]] = field(default_factory=list)
    ignored: list[tuple[str, File]] = field(default_factory=list)

    def add(self, submission: Submission) -> None:
        """Count the files of a submission."""
        for file in submission.found:
            self.counts[file.fate] += 1
            if file.fate != TAKEN or file.why:
                listed = self.ignored if file.fate == IGNORED else self.odd
                listed += [(submission.student, file)] * (len(listed) < MOST_REMARKS)

    @property
    def listed(self) -> list[tuple[str, File]]:
        """Return those that the page has room for."""
        return [*self.odd, *self.ignored][:MOST_REMARKS]

    def __str__(self) -> str:
        each = ", ".join(f"{count} {fate}" for fate, count in self.counts.most_common())
        return f"{self.counts.total()} files: {each}"


def page(scores: Scores, run: Grading, links: Mapping[str, str], files: Files | None = None) -> str:
    """Return the HTML of the overview. `links` are the pages of students, `files` what was handed in."""
    return render(
        "overview.html",
        scores=scores,
        run=run,
        version=labkit.__version__,
        parts=[_part(lab, scores) for lab in scores.labs],
        hardest=_hardest(scores),
        links=links,
        regrades=_together(scores.regrades.listed),
        files=files or Files(),
    )


def _together(remarks: Sequence[Remark]) -> list[Remark]:
    """Put exercises of a student into one line that wait for the same reason."""
    groups = groupby(remarks, lambda remark: (remark.student, remark.text))
    return [
        Remark(student, ", ".join(remark.exercise for remark in own), text) for (student, text), own in groups
    ]


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
