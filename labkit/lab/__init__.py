"""What labkit adds to Jupyter: a server extension here, and in extension/ one of JupyterLab and Notebook 7.

The wheel puts their files where Jupyter looks for them (pyproject.toml, shared-data).
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

START = "00_*.ipynb"  # the first notebook is in a folder with the course


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Tell the page Course what there is to do, and make explorers answer without a delay."""
    root = Path(app.contents_manager.root_dir).expanduser().resolve()
    route = url_path_join(app.web_app.settings["base_url"], "labkit", "course")
    app.web_app.add_handlers(".*$", [(route, CourseHandler, {"root": root})])
    undelayed(app.web_app.settings)
    if course_folder(root):
        hidden = ["solutions", "progress.jsonl"]
        app.contents_manager.hide_globs = [*app.contents_manager.hide_globs, *hidden]


def course_folder(root: Path) -> Path | None:
    """Find the folder with the course's notebooks: the server's own, or notebooks/ in it."""
    return next((each for each in (root, root / "notebooks") if list(each.glob(START))), None)


def undelayed(settings: dict[str, Any]) -> None:
    """Have a kernel's websocket send each message at once.

    As it is, a message waits up to 40 ms until the one before it is confirmed (Nagle's algorithm), which is
    longer than an explorer takes to draw.
    """
    given = settings["kernel_websocket_connection_class"]

    class Undelayed(given):  # type: ignore[misc, valid-type]
        async def connect(self) -> Any:
            self.websocket_handler.set_nodelay(True)
            return await super().connect()

    settings["kernel_websocket_connection_class"] = Undelayed


class CourseHandler(APIHandler):
    """GET labkit/course: the notebooks in order, their exercises, and what is earned."""

    def initialize(self, root: Path) -> None:
        """Keep the folder that the server shows."""
        self.root = root

    @web.authenticated
    async def get(self) -> None:
        """Answer as JSON."""
        told = await asyncio.to_thread(course, self.root)  # the first time it imports the simulator
        self.finish(json.dumps(told))


def course(root: Path) -> dict[str, Any]:
    """Return what the page Course shows, for the course in `root` or in its folder notebooks/."""
    from labkit.course import progress
    from labkit.course.notebooks import catalog

    folder = course_folder(root)
    if folder is None:
        return {"notebooks": []}
    earned = progress.load(folder)
    nothing = progress.Best(0, False)
    notebooks: list[dict[str, Any]] = []
    worked_in: dict[str, str] = {}
    for path in catalog.notebooks(folder):
        try:
            lesson = catalog.lesson(path)
        except catalog.NoNotebook:
            continue
        names = (lesson.number, *(each.id for each in lesson.exercises))
        worked_in |= dict.fromkeys(names, path.relative_to(root).as_posix())
        notebooks.append(
            {
                "path": path.relative_to(root).as_posix(),
                "number": lesson.number,
                "title": lesson.title,
                "concept": lesson.concept,
                "part": catalog.PARTS.get(lesson.part, ""),
                "minutes": lesson.minutes,
                "exercises": [
                    {
                        "id": each.id,
                        "title": f"{each.title} (more practice)" if each.practice else each.title,
                        "points": each.points,
                        "earned": each.points * earned.best.get(each.id, nothing).share,
                        "solved": earned.best.get(each.id, nothing).solved,
                    }
                    for each in lesson.exercises
                ],
            }
        )
    return {"notebooks": notebooks, "last": worked_in.get(earned.last, "")}
