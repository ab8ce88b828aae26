"""Build and run the programs of programs/ on a GPU with NVIDIA's compiler, and keep what they print.

usage, on a machine with a GPU, CuPy, nvcc and gcc: python benchmarks/record_programs.py data/h200
Writes data/h200/programs/NAME.txt for each program, and provenance.json. A file is a transcript: each command
of the program's head, from its lines `build:` and `run:`, and below it what it printed to stdout.

A build that fails, as with -lcublas where there is no cuBLAS, is left out and reported; so is a run that
fails, and then the script ends with exit code 1.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from labkit import records

PROGRAMS = Path(__file__).parent.parent / "programs"
SECONDS = 300  # for one build or run


def sources() -> list[Path]:
    """List the programs, in order of their names."""
    return sorted(path for path in PROGRAMS.iterdir() if path.suffix in (".cu", ".c"))


def commands(source: Path, label: str) -> list[str]:
    """Read the commands behind `build:` or `run:` in a program's head, without their explanations."""
    head = source.read_text(encoding="utf-8").partition("\n\n#include")[0]
    found = re.search(rf"^// {label}: +(.*(?:\n// {{5,}}.*)*)", head, re.M)
    if found is None:
        raise ValueError(f"{source.name}: its head has no line '// {label}:' with a command")
    lines = (line.removeprefix("//").strip() for line in found[1].splitlines())
    return [re.split(r" {2,}", line)[0] for line in lines]


def execute(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a program's head in `folder`, with nothing to read from stdin."""
    return subprocess.run(
        command.split(), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
    )


def transcript(source: Path) -> tuple[str, bool]:
    """Build and run a program in all the ways that its head names; also return whether all runs passed."""
    parts, good = [], True
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copy(source, folder)
        for build in commands(source, "build"):
            built = execute(build, folder)
            if built.returncode:
                print(f"{build}\n  is left out, exit code {built.returncode}\n{built.stderr}", flush=True)
                continue
            parts.append(f"$ {build}\n")
            for run in commands(source, "run"):
                done = execute(run, folder)
                parts.append(f"$ {run}\n{done.stdout}")
                if done.returncode:
                    print(f"{run}\n  failed, exit code {done.returncode}\n{done.stderr}", flush=True)
                    good = False
    return "\n".join(parts), good and any(part.startswith("$ ./") for part in parts)


def version(command: str, pattern: str) -> str:
    """Return the version that a compiler prints."""
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(pattern, said)
    return found[1] if found else "of unknown version"


def main(
    folder: Annotated[Path, typer.Argument(help="where the records of this machine lie, such as data/h200")],
    match: Annotated[str, typer.Option(help="a regular expression for the names of programs")] = "",
) -> None:
    """Record the programs."""
    versions = {"nvcc": version("nvcc", r"V([\d.]+)"), "gcc": version("gcc", r"([\d.]+)\s")}
    origin = records.provenance(f"python benchmarks/record_programs.py {folder.as_posix()}", **versions)
    place = folder / "programs"
    place.mkdir(parents=True, exist_ok=True)
    failed = []
    for source in sources():
        if not re.search(match, source.name):
            continue
        text, good = transcript(source)
        (place / f"{source.stem}.txt").write_text(text, encoding="utf-8")
        print(f"{source.name}: {'recorded' if good else 'FAILED'}", flush=True)
        failed += [] if good else [source.name]
    (place / "provenance.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    typer.run(main)
