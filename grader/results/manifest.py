"""manifest.json: what took part in a grading run, so that grades can be explained, and had again."""

import hashlib
import json
import platform
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import labkit
from grader.model import Graded
from grader.results import by_hand, roster
from grader.results.scores import Scores
from grader.sandbox.limits import Limits
from grader.text import write_whole
from labkit import doctor, paths
from labkit.c.compile import compiler_version, find_compiler

PACKAGES = (
    *("numpy", "pandas", "llvmlite", "cuda-bindings", "nvidia-cuda-nvrtc"),
    *("nbval", "jupyter_client", "ipykernel", "IPython", "distributed"),
)


@dataclass(frozen=True)
class Grading:
    """A grading run: its seed, the command that began it, the folder of the solved notebooks.

    `limits` are those of a sandbox, and `began` is in UTC. `strays` tells in sentences which files beside the
    submissions are none.
    """

    seed: int
    command: str
    solved: Path
    limits: Limits
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    strays: tuple[str, ...] = ()


def write(
    out: Path,
    scores: Scores,
    run: Grading,
    submissions: Callable[[], Iterable[Graded]],
    tables: Iterable[Path],
) -> Path:
    """Write the manifest of a run into the folder `out`, and return its path."""
    gpu = doctor.find_gpu()
    told = {
        "seed": run.seed,
        "command": run.command,
        "began": run.began.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "labkit": labkit.__version__,
        "commit": commit(),
        "submissions": scores.students,
        "graded": scores.students - scores.waiting,
        "to_regrade": scores.waiting,
        "isolation": sorted(scores.isolation),
        "limits": asdict(run.limits),
        "labs": {lab.number: [exercise.id for exercise in lab.exercises] for lab in scores.labs},
        "platform": platform.platform(),
        "gpu": asdict(gpu) if gpu else None,
        "versions": versions(),
        "solved_notebooks": {path.name: sha256(path) for path in sorted(run.solved.glob("*.ipynb"))},
        "tables": {path.name: sha256(path) for path in sorted(tables)},
        "by_instructor": {
            path.name: sha256(path) for name in (by_hand.FILE, roster.FILE) if (path := out / name).exists()
        },
        "submitted_files": {
            graded.submission.student: dict(sorted(graded.submission.files.items()))
            for graded in submissions()
        },
    }
    path = out / "manifest.json"
    write_whole(path, json.dumps(told, indent=1) + "\n")
    return path


def versions() -> dict[str, str]:
    """Return the versions of what judges and isolates submissions, by name; "none" for what is missing."""
    compiler = find_compiler()
    return {
        "Python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "bubblewrap": _told("bwrap", "--version").removeprefix("bubblewrap ") or "none",
        "C compiler": compiler_version(compiler).partition("\n")[0] if compiler else "none",
    }


def commit() -> str:
    """Return the commit of the clone that labkit runs from, with + where its files have changed; empty
    outside one.
    """
    root, ours = paths.PACKAGE.parent, [folder.name for folder in paths.PACKAGES]
    if not (root / ".git").exists():
        return ""  # an installed package, perhaps below somebody else's repository
    name = _told("git", "-C", str(root), "rev-parse", "HEAD")
    return name + "+" * bool(name and _told("git", "-C", str(root), "status", "--porcelain", "--", *ours))


def sha256(path: Path) -> str:
    """Hash a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _told(*command: str) -> str:
    """Return what a command prints; "" where it fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
