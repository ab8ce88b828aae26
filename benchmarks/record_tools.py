"""Record what NVIDIA's tools print of the programs in data/tools, for notebook 14.

usage, on a machine with a GPU, nvcc, ncu, compute-sanitizer and cuda-gdb:

    python benchmarks/record_tools.py data/tools

Writes a text per tool and program, whose first line is the command, and tools.json with GPU, driver,
versions and date. The text is what the tool printed, without the paths of the machine.
"""

import json
import re
import subprocess
import sys
import tempfile
from datetime import date
from itertools import chain
from pathlib import Path

SECTIONS = (
    *("LaunchStats", "SpeedOfLight", "MemoryWorkloadAnalysis"),
    *("Occupancy", "SchedulerStats", "WarpStateStats"),
)
METRICS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "smsp__inst_executed.sum",
)
# What a student would type into cuda-gdb.
STEPS = (
    *("set breakpoint pending on", "break products.cu:32", "run", "info cuda kernels"),
    *("cuda block (1,3) thread (5,2)", "print row", "print col", "next"),
    *("print As[2][5]", "print sum", "delete", "continue"),
)
NCU = ["ncu", "--clock-control", "none", *chain(*(("--section", each) for each in SECTIONS))]
COMMANDS = {
    "ncu_products": [*NCU, "./products"],
    "ncu_unnamed": [*NCU, "--apply-rules", "no", "--metrics", ",".join(METRICS), "./unnamed"],
    "ncu_counters": ["ncu", "--clock-control", "none", "--metrics", ",".join(METRICS), "./products"],
    "memcheck": ["compute-sanitizer", "--tool", "memcheck", "--print-limit", "2", "./broken"],
    "racecheck": ["compute-sanitizer", "--tool", "racecheck", "./broken"],
    "cuda_gdb": ["cuda-gdb", "-batch", *chain(*(("-ex", each) for each in STEPS)), "./products_debug"],
}


def printed(command: list[str], folder: Path) -> str:
    """Run a tool in a folder and return what it prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    return (done.stdout + done.stderr).replace(f"{folder}/", "")


def main(out: Path) -> None:
    """Build the programs, run each tool, and write what it printed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for program in ("products", "broken", "unnamed"):
            (folder / f"{program}.cu").write_text((out / f"{program}.cu").read_text())
            build = ["nvcc", "-arch=native", "-lineinfo", f"{program}.cu", "-o", program]
            subprocess.run(build, cwd=folder, check=True)
        debug = ["nvcc", "-arch=native", "-g", "-G", "products.cu", "-o", "products_debug"]
        subprocess.run(debug, cwd=folder, check=True)
        for report, command in COMMANDS.items():
            (out / f"{report}.txt").write_text(f"$ {' '.join(command)}\n{printed(command, folder)}")
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.check_output(query, text=True).splitlines()[0].split(", ")
    tools = ("ncu", "compute-sanitizer", "cuda-gdb", "nvcc")
    versions = {tool: re.findall(r"\d+\.\d+[.\d]*", printed([tool, "--version"], out))[-1] for tool in tools}
    about = {"gpu": gpu, "driver": driver, "versions": versions, "date": str(date.today())}
    (out / "tools.json").write_text(json.dumps(about, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
