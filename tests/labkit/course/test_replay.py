"""The button below a failed check: it opens the block that went wrong, at the moment when it did."""

import pickle
import re

import pytest
from course_tables import judged, mutant

from labkit.course.replay_button import LABEL, show_with_button
from simt.common.cell import Cell

FIRST = "        __syncthreads();\n        for"
SECOND = "        __syncthreads();\n    }"

# exercise, what to replace in its solution, the kind of event at which the page begins
MISTAKES = {
    "invalid read": ("00.1", ("i < n", "i <= n"), "load"),
    "wrong value": ("00.1", ("blockIdx.x * blockDim.x + ", ""), "store"),
    "missing barrier": ("03.1", (SECOND, "    }"), None),
    "wrong tile": ("03.1", ("B_tile[k][x]", "B_tile[x][k]"), "store"),
    "barrier in a branch": (
        "03.2",
        (FIRST, "        if (row < M && col < N) __syncthreads();\n        for"),
        "barrier",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_it_begins_where_the_mistake_is(mistake):
    exercise, change, kind = MISTAKES[mistake]
    feedback = judged(exercise, mutant(exercise, change))
    assert not feedback.ok
    recording, start = feedback.replay.recorded()
    assert 0 < start <= len(recording.events)
    code = recording.code[recording.events.site[start - 1]]
    if line := re.search(r"line (\d+): ", feedback.failure):
        assert str(code.line) == line[1]
    if kind == "barrier":
        assert code.is_barrier
    elif kind:
        assert code.family.reads if kind == "load" else code.family.writes
    view = feedback.step()
    assert f'"start":{start}' in view.recording


def test_feedback_that_met_all_has_no_button():
    feedback = judged("00.1", mutant("00.1"))
    assert feedback.ok
    assert feedback.replay is None
    with pytest.raises(ValueError, match="nothing to step through"):
        feedback.step()
    with pytest.raises(NotImplementedError):
        feedback._ipython_display_()


def test_a_button_stands_below_a_failed_check(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *objects, **_: shown.extend(objects))
    feedback = judged("00.1", mutant("00.1", ("i < n", "i <= n")))
    show_with_button(feedback)
    assert len(shown) == 1  # no page, no button
    shown.clear()
    monkeypatch.setattr("labkit.course.replay_button.current", lambda: Cell(id="cell-7"))
    show_with_button(feedback)
    told, box = shown
    assert told["text/plain"] == repr(feedback)
    button, _ = box.children
    assert button.description == LABEL
    assert pickle.loads(pickle.dumps(feedback)) == feedback  # kernels stay where they are
