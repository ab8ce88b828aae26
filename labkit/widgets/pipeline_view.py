"""The explorer of pipelines: how many stages it takes until the tensor cores never wait for a copy."""

from labkit.figures.pictures.pipeline import Pipeline, timeline
from labkit.widgets.explorer import Explorer, View, slider
from simt.common.text import counted


def pipeline() -> Explorer:
    """Show what the stages of a pipeline hold over time, and when the tensor cores work.

    Sliders set the number of stages, and how long a copy and the product of one stage's tiles take.
    """
    controls = {
        "stages": slider("STAGES", 1, 6, 2),
        "copy": slider("a copy takes", 1, 8, 3, group="units of time"),
        "multiply": slider("a product takes", 1, 8, 1, group="units of time"),
    }
    return Explorer(pipeline_view, controls, title="What the stages of a pipeline hold over time")


def pipeline_view(stages: int, copy: int, multiply: int) -> View:
    """Draw the first steps of a pipeline; say what limits it."""
    now = Pipeline(stages, copy, multiply)
    if stages >= now.enough:
        conclusion = f"The tensor cores never wait: {now.enough} would be enough."
    else:
        conclusion = f"The tensor cores wait for copies. They would not with {now.enough} stages."
    details = (
        f"A stage is taken for {copy} + {multiply} = {copy + multiply} units: a copy, then a product. "
        f"So {counted(stages, 'stage')} can feed {counted(stages, 'product')} in that time.",
        "A copy begins when its stage is empty (mbarrier empty), a product when it is full (mbarrier full).",
    )
    return View((timeline(stages, copy, multiply).svg(),), conclusion, "\n".join(details))
