"""What opening the course takes: seconds from `pip install` to the first picture, disk and memory.

    python benchmarks/opened.py [--memory [00 03 ...]]

Builds the wheel and installs it into a new virtual environment without pip's cache: the base, then the
extra `lab`. The notebooks run there in empty folders with empty caches (LABKIT_CACHE), on the device of the
environment (else the simulator). Seconds are those of the students' notebooks from the first on, up to the
first picture. For memory each solved notebook runs as a whole; its figure is the highest sum of resident
memory of the kernel and all that it starts (compilers, C functions), sampled ten times per second. Memory
that processes share counts for each. The server is JupyterLab's with its page fetched, before any notebook
is opened. Installing depends on the network, and every time on what else the machine does.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any
from unittest import mock

os.environ.setdefault("LABKIT_DEVICE", "simt")

import nbformat
import pandas as pd
import psutil
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from labkit.course.notebooks import catalog, release

ROOT = Path(__file__).parent.parent
TOOLS = ("pip", "setuptools", "wheel")  # of the environment, not of the course
PORT = 18899


class Kernels(KernelSpecManager):
    """Kernels of a Python that need not be this one."""

    python: str = ""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """That Python's kernel."""
        return KernelSpec(argv=[self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"])


class Watch(threading.Thread):
    """Samples the resident memory of a process and all below it; `peak` is the highest sum, in bytes."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.over = psutil.Process(pid), 0, threading.Event()

    def run(self) -> None:
        """Sample ten times per second."""
        while not self.over.wait(0.1):
            self.peak = max(self.peak, resident(self.process))


def resident(process: psutil.Process) -> int:
    """Bytes that a process and all below it have in memory; those that end meanwhile count 0."""
    total = 0
    try:
        for each in [process, *process.children(recursive=True)]:
            try:
                total += each.memory_info().rss
            except psutil.NoSuchProcess:
                continue
    except psutil.NoSuchProcess:
        pass
    return total


def install(python: Path, what: str) -> tuple[float, float]:
    """Seconds that pip takes, and those of them that a core works for it."""
    start, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", what], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return perf_counter() - start, worked


def sizes(python: Path) -> pd.Series:
    """Megabytes of the environment's packages, by the name of their folder, without pip and its like."""
    (site,) = (python.parent.parent / "lib").glob("python*/site-packages")
    found: dict[str, float] = {}
    for file in site.rglob("*"):
        if file.is_file() and not file.is_symlink():
            name = file.relative_to(site).parts[0].partition("-")[0]
            found[name] = found.get(name, 0) + file.stat().st_size / 1e6
    return pd.Series(found).drop(TOOLS, errors="ignore")


@contextmanager
def opened(python: Path, notebook: Path) -> Iterator[tuple[NotebookClient, list[tuple[int, Any]], float]]:
    """A notebook in a new kernel, with an empty folder and cache: client, code cells, seconds to start."""
    content = nbformat.read(notebook, as_version=4)
    cells = [(index, cell) for index, cell in enumerate(content.cells) if cell.cell_type == "code"]
    for _, cell in cells:
        cell.outputs = []
    specs = type("Specs", (Kernels,), {"python": str(python)})()
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, LABKIT_CACHE=f"{folder}/cache"):
        (work := Path(folder, "work")).mkdir()
        client = NotebookClient(
            content,
            km=AsyncKernelManager(kernel_spec_manager=specs),
            resources={"metadata": {"path": str(work)}},
            allow_errors=True,
            shutdown_kernel="immediate",
        )
        start = perf_counter()
        with client.setup_kernel(cleanup_kc=True, stderr=subprocess.DEVNULL):
            yield client, cells, perf_counter() - start


def is_picture(output: Any) -> bool:
    """Whether an output is a plot, or a widget with one."""
    kinds = output.get("data", {})
    return any(kind.startswith("image/") or "widget-view" in kind for kind in kinds)


def first_picture(python: Path, notebooks: list[Path]) -> list[dict[str, Any]]:
    """Seconds of each kernel's start and of each code cell, up to the first with a picture."""
    rows = []
    for notebook in notebooks:
        with opened(python, notebook) as (client, cells, start):
            rows.append({"step": f"{notebook.stem}: the kernel starts", "s": start})
            for number, (index, cell) in enumerate(cells, start=1):
                begin = perf_counter()
                client.execute_cell(cell, index)
                first = cell.source.partition("\n")[0]
                rows.append({"step": f"[{number}] {first}", "s": perf_counter() - begin})
                if any(map(is_picture, cell.outputs)):
                    return rows
    raise SystemExit("No notebook has a picture.")


def peak(python: Path, notebook: Path) -> dict[str, Any]:
    """Return the most memory that a notebook takes."""
    with opened(python, notebook) as (client, cells, start):
        watch = Watch(client.km.provisioner.pid)
        watch.start()
        begin = perf_counter()
        for index, cell in cells:
            client.execute_cell(cell, index)
        seconds = perf_counter() - begin + start
        watch.over.set()
    failed = [cell for _, cell in cells if "raises-exception" not in cell.metadata.get("tags", [])]
    failures = sum(output.output_type == "error" for cell in failed for output in cell.outputs)
    return {"notebook": notebook.stem, "peak MB": watch.peak / 1e6, "s": seconds, "failed": failures}


def server(python: Path) -> float:
    """Megabytes of JupyterLab's server once its page has been fetched."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            python,
            "-m",
            "jupyter",
            "lab",
            "--no-browser",
            "--allow-root",
            "--ServerApp.port_retries=0",
        ]
        options = [f"--port={PORT}", "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"]
        running = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(240):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{PORT}/lab", timeout=30).read()
                    return resident(psutil.Process(running.pid)) / 1e6
                except OSError:
                    sleep(0.5)
            raise SystemExit("JupyterLab did not start in two minutes.")
        finally:
            running.terminate()
            running.wait()


def show(rows: list[dict[str, Any]], digits: int = 1) -> None:
    """Print a table."""
    text = pd.DataFrame(rows).to_string(index=False, float_format=lambda value: f"{value:.{digits}f}")
    print(text, end="\n\n", flush=True)


def main() -> None:
    """Measure, and print as it comes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", nargs="*", metavar="NOTEBOOK", help="Such as 03; all if none is named.")
    asked = parser.parse_args()
    solved = ROOT / "notebooks" / release.SOLUTIONS
    print(f"{len(os.sched_getaffinity(0))} cores; load at the start {os.getloadavg()[0]:.1f}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--wheel-dir", folder, str(ROOT)], check=True)
        (wheel,) = Path(folder).glob("labkit-*.whl")
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
        python = Path(folder, "venv", "bin", "python")

        print(f"wheel: {wheel.stat().st_size / 1e6:.1f} MB\n")
        seconds = install(python, str(wheel))
        base = sizes(python)
        more_seconds = install(python, f"{wheel}[lab]")
        rows = [("base", *seconds, base.sum()), ("lab", *more_seconds, sizes(python).sum() - base.sum())]
        show([dict(zip(("install", "s", "core s", "MB"), row, strict=True)) for row in rows])
        show([{"largest of base": name, "MB": size} for name, size in base.nlargest(8).items()])

        (shipped,) = Path(folder, "venv", "lib").glob("python*/site-packages/labkit/notebooks")
        steps = first_picture(python, catalog.notebooks(shipped))
        show(steps, 2)
        opening = seconds[0] + more_seconds[0] + sum(row["s"] for row in steps)
        print(f"from pip install to the first picture: {opening:.0f} s\n", flush=True)

        lab = server(python)
        print(f"JupyterLab's server: {lab:.0f} MB\n")
        if asked.memory is not None:
            chosen = catalog.find(asked.memory, solved) or catalog.notebooks(solved)
            rows = [peak(python, notebook) for notebook in chosen]
            show([row | {"with server MB": row["peak MB"] + lab} for row in rows])


if __name__ == "__main__":
    main()
