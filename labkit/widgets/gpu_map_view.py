"""The explorer of a GPU's map: which parts it has, how large and how fast they are, and who says so."""

from labkit.figures.gpu_map import gpu_map as draw
from labkit.model.gpu_parts import DEVICE_MEMORY, PARTS, parts, sources
from labkit.widgets.explorer import Explorer, View, menu, plain, selection
from simt.common.occupancy import DEFAULT_GPU, gpus
from simt.common.occupancy import gpu as find_gpu
from simt.common.text import article


def gpu_map() -> Explorer:
    """Show the parts of a GPU from the host to the cores, with their figures and where these come from.

    A menu chooses the GPU; a slider, or a click on a part, chooses the part that the text explains.
    """
    names = [each.name for each in reversed(gpus())]
    controls = {
        "part": selection("part", plain(PARTS), DEVICE_MEMORY),
        "gpu": menu("GPU", plain(names), DEFAULT_GPU),
    }
    return Explorer(gpu_map_view, controls, title="A map of the GPU")


def gpu_map_view(gpu: str, part: str) -> View:
    """Draw the map of a GPU; the text has all figures of `part`, and their sources."""
    board = find_gpu(gpu)
    shown = parts(board)[part]
    used = {figure.origin for figure in shown.figures if figure.value is not None}
    lines = [
        *(f"{figure.told}." for figure in shown.figures),
        *(f"{origin}: {text}." for origin, text in sources(board).items() if origin in used),
    ]
    return View(
        (draw(board, part, acts=True),),
        f"{part[0].upper()}{part[1:]} of {article(board.name)}. {shown.says}",
        "\n".join(lines),
        "Click a part to read about it. Small cells count SMs, banks, warp slots and CUDA cores.",
    )
