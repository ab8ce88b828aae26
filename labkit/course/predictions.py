"""The predictions of the notebooks: what each asks, its answer, and one sentence of why.

A cell of a notebook names one: `labkit.guess("02.a")`. The text above the cell asks the question; here
stands what the input is labelled with. The answer is worked out here or taken from a record, and a student
sees it only when a prediction is committed. `labkit.predict` is another thing: it predicts a kernel's time.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import gcd, isfinite
from typing import Literal, cast

import pandas as pd

from labkit import records
from labkit.course import mystery_kernels, progress
from labkit.figures.pictures import fragments
from labkit.figures.pictures.pipeline import Pipeline
from labkit.kernels.problem import Problem, problem
from labkit.ladder import recorded, steps
from labkit.model import atomics, predicted
from labkit.widgets.prediction import Prediction, Reveal, Said
from simt import AnyKernel
from simt.common.errors import SimtError
from simt.common.occupancy import DEFAULT_GPU, gpu, occupancy
from simt.programs.server.gpu import pinned_rate

Answer = float | str
Verdict = Literal["Right", "Close", "Wrong", "Partly right"]

SIMULATED = "Counted by the simulator."
REPORT = "As the report {} printed it."
H200 = "Recorded on an NVIDIA H200."
NSIGHT = "Counted by Nsight Compute on an NVIDIA H200, and recorded."
H200_PEAK = gpu("H200").peak_gflop_s or 0  # GFLOP/s
SMALL = ("tiled", "tiled_unrolled", "register_column", "double_buffered", "tuned")  # rungs for N = 512
LIMITS = ("issue slots", "FP32", "L1 requests", "shared memory", "latency", "L2", "DRAM")  # to choose from
PIPELINE = ("nothing", "wrong parity", "missing proxy fence", "overwritten while a copy reads")  # kinds
TENSOR = ("mma", "cp_async", "wgmma", "warp_specialised", "persistent", "cluster", "tma_store", "stream_k")
UNIFORM_MS = 0.2192  # of a histogram of 2^22 elements: histogram_global-4 in data/h200/timed/times.csv
CLOSE = 1.5  # the factor up to which a number is close


@dataclass(frozen=True)
class Input:
    """One input: its label, the answer, and a unit or choices.

    A number is right within `margin` of the answer's size, and within `slack` of the answer.
    """

    label: str
    answer: Answer | Callable[[], Answer]
    unit: str = ""
    choices: tuple[str, ...] = ()
    margin: float = 0.02
    slack: float = 0

    @property
    def right(self) -> Answer:
        """Return the answer, worked out if need be."""
        return self.answer() if callable(self.answer) else self.answer

    def judge(self, said: str) -> Verdict:
        """Hold what was said against the answer. Raises NotANumber."""
        right = self.right
        if isinstance(right, str):
            return "Right" if said == right else "Wrong"
        value = number(said)
        off = abs(value - right)
        if off <= max(self.margin * abs(right), self.slack):
            return "Right"
        near = right / CLOSE <= value <= right * CLOSE or off <= 3 * self.slack
        return "Close" if near else "Wrong"


@dataclass(frozen=True)
class Question:
    """What a prediction asks, why the answer is what it is, and where a measured answer comes from."""

    inputs: tuple[Input, ...]
    why: str
    source: str = ""

    def judge(self, said: Said) -> Reveal:
        """Say how good a prediction is, and what is right."""
        try:
            right = self._listed([shown(each.right) for each in self.inputs])
        except SimtError as error:  # of a student's own kernel
            return {"error": str(error)}
        tells = f"It is {right}: {self.why}"
        if said is None:
            return {"verdict": "", "text": tells, "source": self.source}
        try:
            found = [each.judge(value) for each, value in zip(self.inputs, said, strict=True)]
        except ValueError as error:
            return {"error": str(error)}
        if "Right" in found and set(found) != {"Right"}:
            verdict: Verdict = "Partly right"
        else:
            verdict = "Close" if "Close" in found else found[0]
        mine = self._listed([" ".join(value.split()) for value in said])
        before = "" if mine == right else f"You said {mine}. "
        return {"verdict": verdict, "text": before + tells, "source": self.source}

    def _listed(self, values: list[str]) -> str:
        """Name each value with its unit, and with its label where there are several."""
        several = len(values) > 1
        parts = [
            f"{value} {_singular(each.unit) if value == '1' else each.unit}".rstrip()
            + (f" ({each.label})" if several else "")
            for each, value in zip(self.inputs, values, strict=True)
        ]
        return " and ".join(parts)


class NotANumber(ValueError):
    """What was entered is no number; the message says what one looks like."""


def number(text: str) -> float:
    """Read a number as people write it: 18,977 or 0,5 or 1e3 or 16 %. Raises NotANumber."""
    plain = text.replace(" ", "").strip("%x×").replace("−", "-")
    head, *groups = plain.split(",")
    thousands = bool(groups) and head not in ("", "0") and all(len(group[:3]) == 3 for group in groups)
    with suppress(ValueError):
        if isfinite(value := float(plain.replace(",", "" if thousands else "."))):
            return value
    raise NotANumber(f"“{text.strip()[:40]}” is no number. Enter one such as 16 or 0.5.")


def shown(answer: Answer) -> str:
    """Write an answer with as many digits as matter."""
    if isinstance(answer, str):
        return answer
    if answer >= 1000:
        return f"{answer:,.0f}"
    return f"{answer:g}" if round(answer, 2) == answer else f"{answer:.3g}"


def predict(
    kernel: str | AnyKernel, problem: Problem | None = None, gpu: str = DEFAULT_GPU, **macros: int | str
) -> predicted.Prediction:
    """Predict how long a kernel takes for a problem on a GPU, which need not be here.

        labkit.predict("tiled", labkit.problem("matmul", 1024, 1024, 1024), gpu="H200", TILE=16)

    The kernel is a rung, or a compiled kernel whose source has a line `// launch:`; `macros` are those to
    compile it with. The result has `.seconds`, `.low`, `.high`, `.limit` and `.limits`; printed, it is a
    sentence. Raises ValueError for an unknown rung, macro or GPU, LaunchError where the source does not say
    how it is launched, and NoPrediction where the time cannot be predicted.
    """
    if problem is None:
        asked = kernel if isinstance(kernel, str) and kernel in QUESTIONS else ""
        raise ValueError(
            f'Your own prediction is asked by labkit.guess("{asked}").'
            if asked
            else "To predict a kernel's time, say for which problem: "
            'labkit.predict(kernel, labkit.problem("matmul", 1024, 1024, 1024), gpu="H200").'
        )
    return predicted.predict(kernel, problem, gpu, **macros)


def guess(id: str) -> Prediction:
    """Ask for the prediction `id`, such as "02.a". Raises ValueError where there is none."""
    if id not in QUESTIONS:
        alike = [known for known in QUESTIONS if known[:2] == id[:2]] or list(QUESTIONS)
        raise ValueError(f"There is no prediction {id!r}. There are {alike[0]} to {alike[-1]}.")
    question = QUESTIONS[id]
    inputs = [{"label": each.label, "unit": each.unit, "choices": each.choices} for each in question.inputs]

    def judge(said: Said) -> Reveal:
        reveal = question.judge(said)
        if "error" not in reveal:
            from labkit.course import progress_panel  # imported here: it imports the notebooks

            progress.commit(id, said)
            progress_panel.update()
        return reveal

    asked = Prediction(f"Prediction {id}", inputs, judge)
    if id in (before := progress.committed()) and "error" not in (reveal := question.judge(before[id])):
        asked.show(before[id], reveal)
    return asked


def _singular(unit: str) -> str:
    counted = len(unit) > 2 and unit.replace("-", "").isalpha() and unit != "times"  # threads, but not ms
    return unit.removesuffix("s") if counted else unit


def _tensor_rates() -> pd.DataFrame:
    """Return the rates on tensor cores in half precision at 4096, without cuBLAS's own step."""
    return steps.rates(recorded(problem("tensor_matmul", 4096, 4096, 4096))).drop(index="cublas")


def _one(
    label: str,
    answer: Answer | Callable[[], Answer],
    unit: str,
    why: str,
    source: str = "",
    *,
    margin: float | None = None,
    choices: tuple[str, ...] = (),
    slack: float = 0,
) -> Question:
    """Make a question with one input; what was measured is right within a tenth."""
    near = margin if margin is not None else 0.1 if callable(answer) else 0.02
    return Question((Input(label, answer, unit, choices, near, slack),), why, source)


def _time(report: str, **where: object) -> float:
    """Return the one time of a report, in milliseconds."""
    return float(records.load(report, "time", **where).value.item())


def _h200(quantity: str = "time", **where: object) -> float:
    """Return the one figure recorded on the H200."""
    return float(records.recorded("h200", quantity, **where).value.item())


def _transpose(kernel: str, size: int = 8192, dtype: str = "float32") -> float:
    """Return the time of a transpose kernel on the H200, in milliseconds."""
    return float(recorded(problem("transpose", size, size, dtype=dtype)).set_index("kernel").value[kernel])


def _reduction(rung: str, power: int = 24) -> float:
    """Return the time of a sum of 2^power floats on the H200, in milliseconds."""
    return float(recorded(problem("reduction", 2**power)).set_index("kernel").value[rung])


def _rates(size: int) -> Mapping[str, float]:
    """Return the rate of each rung of the product on the H200, in TFLOP/s."""
    return dict(steps.rates(recorded(problem("matmul", size, size, size)))["TFLOP/s"])


def _best_block() -> str:
    sweep = records.load("cpu-gpu-matmul", "time", kernel="cpu_avx_blocked", n=2048)
    best = sweep[sweep.tile.notna()].set_index("tile").value.idxmin()
    return f"{best}"


def _kernel_share() -> float:
    """Return the part of allocation, copies and kernel that is the kernel's, in per cent."""
    parts = ["malloc_time", "htod_time", "time", "dtoh_time"]
    rows = records.load("cpu-gpu-matmul", parts, kernel="naive", block_x=16, n=512)
    times = rows.set_index("quantity").value
    return float(100 * times["time"] / times.sum())


def _at_l2(kernel: str) -> float:
    """Return the sectors that a transpose moves at the L2, as a multiple of those of the copy."""
    sectors = records.recorded("h200", "lts__t_sectors.sum", problem="transpose", rows=2048)
    counted = sectors.set_index("kernel").value
    return float(counted[kernel] / counted["copy"])


def _product_at_l2(kernel: str) -> float:
    """Return the sectors that a product with N = 1024 moves at the L2."""
    return _h200("lts__t_sectors.sum", problem="matmul", kernel=kernel, n=1024)


def _latency_ns(level: str) -> float:
    """Return the measured latency of a load on the H200, in nanoseconds at its highest clock."""
    measured = records.limits("h200")
    row = measured[(measured.quantity == "latency") & (measured.variant == level)]
    return 1e3 * float(row.value.item()) / (gpu("H200").boost_mhz or 0)


def _gain(size: int) -> float:
    """Return how much faster `double_buffered` is than `vectorised` on the H200, in per cent."""
    rate = _rates(size)
    return 100 * (rate["double_buffered"] / rate["vectorised"] - 1)


def _unrolling_gain() -> float:
    """Return how much faster writing out a loop makes the tiled kernel on the H200, in per cent."""
    tiled, unrolled = (
        _h200(kernel=kernel, tile=32, dtype="float32", m=1024, n=1024, k=1024)
        for kernel in ("tiled", "tiled_unrolled")
    )
    return 100 * (tiled / unrolled - 1)


def _own() -> predicted.Prediction:
    """Predict the time of the student's kernel of 10.5. Raises SimtError where there is none, or no time."""
    from labkit.course import answer

    return predicted.predict(cast("AnyKernel", answer("10.5")), problem("matmul", 2048, 2048, 2048))


def _multiply_adds() -> float:
    """Return the multiply-adds of the naive kernel on the H200, in per cent of all instructions."""
    executed = _h200("smsp__inst_executed.sum", kernel="naive", dtype="float32", problem="matmul", m=1024)
    return 100 * (1024**3 / 32) / executed


def _tf32_error() -> float:
    """Return the error of the product with TF32, as a multiple of that in float32."""
    tf32, float32 = (
        _h200("error", kernel=kernel, dtype=dtype, n=4096)
        for kernel, dtype in (("tensor_cores", "tf32"), ("cublas", "float32"))
    )
    return tf32 / float32


def _fixed(letter: str, why: str) -> Question:
    """Ask how many times as fast a kernel without a name is after its fix; right within a quarter."""
    label = f"Time of kernel {letter} before its fix, as a multiple of that after it"
    return _one(label, lambda: mystery_kernels.gain(letter), "times as fast", why, H200, margin=0.25)


QUESTIONS: dict[str, Question] = {
    "00.a": Question(
        (Input("block", 7 // 5), Input("thread in the block", 7 % 5)),
        "each block takes 5 elements, and 7 = 1 · 5 + 2.",
    ),
    "00.b": _one(
        *("Threads without an element", -(-1000 // 256) * 256 - 1000, "threads"),
        "1000 elements need 4 blocks of 256, which are 1024 threads.",
    ),
    "00.c": _one(
        *("Index of row 2, column 1", 2 * 4 + 1, ""),
        "two whole rows of 4 elements come first, and one element of its own row.",
    ),
    "01.a": _one(
        "Time for N = 2048, as a multiple of that for N = 128",
        lambda: (
            _time("cpu-gpu-matmul", kernel="cpu_naive", n=2048)
            / _time("cpu-gpu-matmul", kernel="cpu_naive", n=128)
        ),
        "times as long",
        "there are 4096 times as many operations, and each of them is slower.",
        REPORT.format("cpu-gpu-matmul"),
    ),
    "01.b": _one(
        *("Fetches of each line of B", 48**3 / 144, "times"),
        "each of the 48³ accesses to B is a miss, and B has 144 lines.",
    ),
    "01.c": _one(
        "Lines that this order fetches, for every 100 of the three loops",
        round(100 * (144 + 48**3 / 16 + 144) / (3 * 48 * 48 + 48**3 + 48 * 48)),
        "lines",
        "a line of B is used 16 times before it goes, and A and C are fetched once.",
        margin=0.1,
    ),
    "01.d": _one(
        *("Best BLOCK for N = 2048", _best_block, ""),
        "a block of B then fits the second cache, and smaller ones have more loops around them.",
        REPORT.format("cpu-gpu-matmul"),
        choices=("8", "16", "32", "64", "128", "256", "512", "1024"),
    ),
    "01.e": _one(
        "Time with B transposed, as a multiple of that without",
        lambda: (
            _time("cpu-gpu-matmul", n=2048, tile="", kernel="cpu_avx_blocked_bt")
            / _time("cpu-gpu-matmul", n=2048, tile="", kernel="cpu_avx_blocked")
        ),
        "times as long",
        "eight neighbours of a row of B now lie in eight rows, and are collected one by one.",
        REPORT.format("cpu-gpu-matmul"),
    ),
    "01.f": _one(
        *("FMAs per load", 6 * 4 / (6 + 4), "FMAs"),
        "each step has 6 · 4 FMAs and loads 4 vectors of B and 6 numbers of A.",
    ),
    "02.a": _one(
        *("Rows of C in one warp", len({thread // 16 for thread in range(32)}), "rows"),
        "32 threads are two lines of 16.",
    ),
    "02.b": _one(
        *("Sectors in one request for A", len({thread % 16 for thread in range(32)}), "sectors"),
        "neighbours along x stand in 16 different rows of A, and each row is a sector of its own.",
    ),
    "02.c": _one(
        "Time with blocks of 1 × 1, as a multiple of that with 32 × 32",
        lambda: (
            _time("int-matmul", kernel="naive", n=1024, block_x=1)
            / _time("int-matmul", kernel="naive", n=1024, block_x=32)
        ),
        "times as long",
        "there are 32 times as many warps, each with one thread; at the report's other sizes it is 24 to 35.",
        REPORT.format("int-matmul"),
    ),
    "02.d": _one(
        *("Elements that differ, of 64", 38, "elements"),
        "the GPU rounds a multiply-add once, NumPy twice, so the last digits differ in many.",
        SIMULATED,
    ),
    "02.e": _one(
        *("The kernel's share of the total time", _kernel_share, "%"),
        "allocating the memory takes 234 of 236 ms.",
        REPORT.format("cpu-gpu-matmul"),
        margin=0.2,
    ),
    "03.a": Question(
        (Input("requests", 16, "times fewer"), Input("sectors", 16 * 2 // 4, "times fewer")),
        "a naive request takes 2 sectors, as neighbours share them; a tiled one brings 32 elements in 4.",
    ),
    "03.b": _one(
        *("Rows of C that are right, of 16", 2, "rows"),
        "the warps run one after the other, and only the last one finds the tile complete.",
        "In the simulator. On a GPU it may be another number with each launch.",
    ),
    "03.c": _one(
        *("Elements of C that are wrong, of 64", 0, "elements"),
        "the 16 threads of a block are in one warp and happen to run in step.",
        SIMULATED,
    ),
    "03.d": _one(
        *(
            "Time with TILE = 1 and N = 1024",
            lambda: _time("int-matmul", kernel="tiled", n=1024, tile=1),
            "ms",
        ),
        "it does all that the naive kernel does, and stores, barriers and loads for a single use.",
        REPORT.format("int-matmul"),
    ),
    "03.e": _one(
        "Sectors of naive at the L2, as a multiple of those of tiled",
        lambda: _product_at_l2("naive") / _product_at_l2("tiled"),
        "times",
        "the L1 lets a naive block of 32 × 32 share what its threads read, as a tile of 32 would.",
        NSIGHT,
        margin=0.2,
    ),
    "04.a": _one(
        "Effective bandwidth of naive",
        lambda: 2 * 4 * 2048**2 / (_time("int-transpose", kernel="naive") / 1e3 / 100) / 1e9,
        "GB/s",
        "33.6 million bytes in 1.95 ms, as each launch of the 100 took.",
        "From the time in the report int-transpose.",
        margin=0.05,
    ),
    "04.b": _one(
        *("Sectors in one request, stride 7", (31 * 7 * 4 + 4 + 31) // 32, "sectors"),
        "31 steps of 28 bytes and the last element are 872 bytes, and none of their 28 sectors is left out.",
    ),
    "04.c": _one(
        *("Sectors in one request to write, blocks of 8 × 8", 32 // 4, "sectors"),
        "the 32 elements lie in 8 rows of 4 neighbours.",
    ),
    "04.d": _one(
        "Time of naive, as a multiple of that of naive_write_coalesced",
        lambda: _transpose("naive") / _transpose("naive_write_coalesced"),
        "times as fast",
        "the caches help scattered reads, and not scattered writes, although the sectors are as many.",
        H200,
    ),
    "04.e": Question(
        (
            Input("naive", lambda: _at_l2("naive"), "times", margin=0.1),
            Input("naive_write_coalesced", lambda: _at_l2("naive_write_coalesced"), "times", margin=0.1),
        ),
        "the L1 keeps what scattered reads bring for the next warps, and hands each store on at once.",
        NSIGHT,
    ),
    "05.a": _one(
        "Speed of the transpose through the tile",
        lambda: 100 * _transpose("copy") / _transpose("shared"),
        "% of the copy's",
        "it has as few sectors as the copy, so something else holds it back.",
        H200,
    ),
    "05.b": _one(
        *("Wavefronts of one request for a column", 32, "wavefronts"),
        "a row is 32 words long, so the whole column lies in one bank.",
    ),
    "05.c": Question(
        (
            Input("padding 2", gcd(32 + 2, 32) - 1, "conflicts"),
            Input("padding 8", gcd(32 + 8, 32) - 1, "conflicts"),
        ),
        "a column comes back to its first bank after 16 rows with 2, and after 4 rows with 8.",
    ),
    "05.d": Question(
        (Input("[32][32]", 2 * (16 - 1), "conflicts"), Input("[32][33]", 0, "conflicts")),
        "each half-warp wants 16 words of one bank; with 66 words in a row they fill all 32 banks.",
    ),
    "05.e": Question(
        (Input("store", 1, "conflicts"), Input("load", 1, "conflicts")),
        "the second row of a warp begins at bank 17, so its last element comes round to the first bank.",
    ),
    "05.f": _one(
        *("Time that padding should gain", 1e3 * 31 * (8192**2 / 32) / 132 / 1980e6, "ms"),
        "2 097 152 requests · 31 wavefronts, shared by 132 SMs at 1980 MHz.",
        margin=0.05,
    ),
    "05.g": _one(
        "Time of shared, as a multiple of that of padded",
        lambda: _h200("report_time", kernel="shared") / _h200("report_time", kernel="padded"),
        "times as fast",
        "the two copies are in both times, and no kernel makes them shorter.",
        H200,
        margin=0.05,
    ),
    "06.a": _one(
        *("Right elements, of 1024", 8 * 8, "elements"),
        "256 threads fill 8 rows of the tile and write 256 elements, of which only 8 · 8 are in those rows.",
    ),
    "06.b": _one(
        *("PTX instructions per multiply-add", 3 + 5 / 4, "instructions"),
        "three of them work, and the other five are shared by four.",
    ),
    "06.c": _one(
        *("tiled_unrolled is faster by", _unrolling_gain, "%"),
        "the compiler writes the loop out by itself, so both are the same code.",
        H200,
        slack=0.5,
    ),
    "06.d": _one(
        *("PTX instructions per element", 24.25, "instructions"),
        "some 25 are the same for all elements of a thread, and four share them.",
        "Counted by the simulator.",
        margin=0.05,
    ),
    "06.e": _one(
        "Latency of a load from DRAM",
        lambda: _latency_ns("DRAM"),
        "ns",
        "it goes through both caches to the memory and back, and takes some 660 clocks.",
        H200,
    ),
    "06.f": _one(
        "Time with 8 bytes, as a multiple of that with 4",
        lambda: _transpose("padded", dtype="float64") / _transpose("padded", dtype="int32"),
        "times as long",
        "it waits for its loads, and each now brings twice as much.",
        H200,
    ),
    "06.g": _one(
        *("Local memory per thread", 32 * 4, "bytes"),
        "registers have no numbers, so all 32 floats of v must lie in memory.",
    ),
    "06.h": _one(
        "Time of padded, as a multiple of that of unrolled",
        lambda: _h200("launch_time", kernel="padded") / _h200("launch_time", kernel="unrolled"),
        "times as fast",
        "the copies, which no step changes, are no longer in the time.",
        H200,
    ),
    "07.a": _one(
        *("Rate of the product for 680", 2 * 680**3 / 0.154e-3 / 1e9, "GFLOP/s"),
        "2 · 680³ operations in 0.154 ms, three times what the report prints.",
    ),
    "07.b": _one(
        *("Peak of the H200", H200_PEAK / 1e3, "TFLOP/s"),
        "2 · 132 · 128 · 1.98 GHz.",
    ),
    "07.c": _one(
        "Rate of the multiply-adds, of the theoretical peak",
        lambda: 100 * _h200("performance", kernel="peak", dtype="float32") / H200_PEAK,
        "%",
        "a kernel that does nothing else comes very near; the peak is real.",
        H200,
        margin=0.03,
    ),
    "07.d": _one(
        *("Intensity of the naive kernel", 2 * 32 / (5 * 32), "FLOP per byte"),
        "32 multiply-adds are 64 FLOP, and 5 sectors are 160 bytes.",
    ),
    "07.e": _one(
        *("Multiply-adds, of all instructions of the naive kernel", _multiply_adds, "%"),
        "with each come two loads, and one or two other instructions.",
        NSIGHT,
    ),
    "07.f": _one(
        *("The most that tuned can reach for N = 1024", round(100 * (8 * 4) / 132), "% of the peak"),
        "8 · 4 = 32 blocks keep 32 of 132 SMs busy.",
    ),
    "07.g": _one(
        "Warps on an SM, of 64",
        float(occupancy(gpu("H200"), threads_per_block=256, registers_per_thread=215).warps),
        "warps",
        "a warp takes 32 · 216 registers, so each sub-partition of the SM has room for 2.",
    ),
    "07.h": _one(
        "Warps of register_tile on an SM, of 64",
        float(occupancy(gpu("H200"), threads_per_block=256, registers_per_thread=128).warps),
        "warps",
        "it takes 128 registers per thread; 8 sums per thread and more do what other warps would.",
        "With the registers recorded on an NVIDIA H200.",
    ),
    "08.a": _one(
        "Rate of tiled",
        lambda: 100 * _rates(4096)["tiled"] / _rates(4096)["cublas"],
        "% of cuBLAS's",
        "tiling is a small part of the way.",
        H200,
    ),
    "08.b": _one(
        "Instructions per multiply-add",
        lambda: float(steps.counters().instructions["tiled"]),
        "instructions",
        "with each come its loads, and a share of what a round takes: guards, stores, barriers, jumps.",
        NSIGHT,
    ),
    "08.c": _one(
        *("Reads from shared memory per multiply-add", (4 + 1) / 4, "reads"),
        "four multiply-adds need one element of B and four of A.",
    ),
    "08.d": Question(
        (
            Input("N = 1024", lambda: _gain(1024), "%", margin=0.1),
            Input("N = 4096", lambda: _gain(4096), "%", margin=0.1, slack=1),
        ),
        "the large product has other blocks to run while one waits, and the small one has not.",
        H200,
    ),
    "08.e": Question(
        (
            Input("blocks of tuned", (512 // 128) * (512 // 256)),
            Input(
                "the fastest rung",
                lambda: max((_rates(512)[rung], rung) for rung in SMALL)[1],
                choices=SMALL,
            ),
        ),
        "small tiles make enough blocks for 132 SMs, and large ones leave most of them idle.",
        H200,
    ),
    "08.f": _one(
        *("The error with TF32, as a multiple of that of cuBLAS", _tf32_error, "times"),
        "a TF32 has 11 significant bits where a float has 24.",
        H200,
        margin=0.2,
    ),
    "09.a": _one(
        *("Sizes of a block with which all sums are right, of four", 2, "sizes"),
        "with 32 and 64 threads, no warp reads what another warp adds up.",
        "In the simulator. On a GPU it may be another number with each launch.",
    ),
    "09.b": _one(
        *("Threads that read outside", 2, "threads"),
        "thread 0 reads in[-1], and thread 255 reads in[256].",
    ),
    "09.c": _one(
        *("Sides that the program calls right, of three", 3, "sides"),
        "the launch with 33 was refused, and the comparison read the result of the launch before.",
    ),
    "09.d": Question(
        (Input("N = 100", 0, "results"), Input("N = 50", 40, "results")),
        "in the second round of 100 columns the tile holds old numbers, and 0 times a number is 0; "
        "with 50 columns no thread has written there, and 0 times NaN is NaN.",
        SIMULATED,
    ),
    "09.e": _one(
        *("Threads that are missing", 1, "threads"),
        "thread 0 has no element before its own.",
    ),
    "09.f": _one(
        *("Elements that differ, of 4096", 2954, "elements"),
        "rounding once or twice changes the last bits of most sums.",
        SIMULATED,
        margin=0.1,
    ),
    "09.g": _one(
        *("Rate that the clock tells", 2 * 4096**3 / 0.005e-3 / 1e12, "TFLOP/s"),
        "the clock timed the launch alone, which takes 0.005 ms.",
        margin=0.1,
    ),
    "09.h": _one(
        *("Mistakes that compute-sanitizer finds, of six", 3, "mistakes"),
        "it watches a real GPU, and cannot remember which thread wrote each byte.",
        H200,
    ),
    "09.i": _fixed("A", "then it only has to read the matrix once, and DRAM is its lowest limit."),
    "09.j": _fixed(
        "B", "without conversions, the pipe XU has nothing to do, and issue slots are the lowest limit."
    ),
    "09.k": _fixed("C", "the chain is a quarter as long, and issue slots become the lowest limit."),
    "09.l": _fixed("D", "shared memory is busy for a short time then, and DRAM is the lowest limit."),
    "09.m": _fixed("E", "a round then has some 6 instructions instead of 20, and a few more wait."),
    "09.n": _fixed("F", "each warp runs one loop instead of two."),
    "10.a": _one(
        *("Blocks for C of 1000 × 33", -(-1000 // 128) * -(-33 // 128), "blocks"),
        "eight blocks of 128 rows, and one of 128 columns.",
    ),
    "10.b": _one(
        *("Multiply-adds per sector", 32 / (1 + 4), "multiply-adds"),
        "all 32 threads share one sector of A and four of B.",
    ),
    "10.c": _one(
        *("Intensity with 128 multiply-adds per sector", 128 * 2 / 32, "FLOP per byte"),
        "256 FLOP for 32 bytes.",
    ),
    "10.d": _one(
        *("Reads from shared memory per multiply-add", (8 + 2) / (8 * 2), "reads"),
        "8 elements of A and 2 of B serve 16 multiply-adds.",
    ),
    "10.e": _one(
        *("Loads per multiply-add", 2 / 16 + (4 + 4) / (16 * 4 * 4), "loads"),
        "two loads of float4 serve 16 multiply-adds, and 8 loads bring what 16 rounds of k use.",
        margin=0.05,
    ),
    "10.f": Question(
        (
            Input("time of your kernel", lambda: 1e3 * _own().seconds, "ms", margin=0.1),
            Input("its lowest limit", lambda: _own().limit, choices=LIMITS),
        ),
        "that is what the model says of your kernel of 10.5.",
        "Predicted for an H200.",
    ),
    "11.a": _one(
        "Operations per byte",
        2 * 64 * 256 * 16 / ((64 + 256) * 16 * 2),
        "FLOP per byte",
        "64 · 256 · 16 multiply-adds use (64 + 256) · 16 elements of 2 bytes.",
    ),
    "11.b": _one(
        "Lane that holds C[9, 5]",
        int(fragments.lanes(fragments.of("half"), "c")[9, 5]),
        "",
        "row 9 belongs to group 1, lanes 4 to 7, and columns 4 and 5 to the third of them.",
    ),
    "11.c": _one(
        *("Passes for 8 rows of 16 bytes", 8, "passes"),
        "rows are 128 bytes apart, as long as all 32 banks, so all 8 lie in the same 4 banks.",
        SIMULATED,
    ),
    "11.d": Question(
        (
            Input("parity in step 5", 5 // 2 % 2),
            Input("stages that are enough", Pipeline(1, copy=3, multiply=1).enough),
        ),
        "step 5 is the third use of its stage, phase 2; and a stage is taken for 3 + 1 units.",
    ),
    "11.e": Question(
        tuple(
            Input(line, kind, choices=PIPELINE)
            for line, kind in (
                ("the copy to tile[s]", "overwritten while a copy reads"),
                ("the wait for full[s]", "wrong parity"),
                ("the copy to out", "missing proxy fence"),
            )
        ),
        "step 2 fills a stage that may still be leaving, and is phase 1 of its barrier; and TMA sends what "
        "threads have written.",
        SIMULATED,
    ),
    "11.f": Question(
        (
            Input("gains most", lambda: str(_tensor_rates()["× the one before"].idxmax()), choices=TENSOR),
            Input(
                "rate of wmma",
                lambda: float(_tensor_rates()["% of cublas"]["wmma"]),
                "% of cuBLAS's",
                margin=0.1,
            ),
        ),
        "the tensor cores starve until operands come from shared memory by themselves.",
        H200,
    ),
    "11.g": _one(
        *("Error of bfloat16, as a multiple of that of half", 2.0 ** (11 - 8), "times"),
        "half has 11 significant bits, and bfloat16 has 8.",
        margin=0.1,
    ),
    "12.a": _one(
        "Time of 2^24 additions to one address",
        1e3 * 2**24 / 0.56e9,
        "ms",
        "they take turns, so the time is their number divided by the rate.",
        "With the rate recorded on an NVIDIA H200.",
        margin=0.05,
    ),
    "12.b": Question(
        (
            Input("spread", sum(min(256 >> each, 8) for each in range(1, 9))),
            Input("the first threads", sum(-(-(256 >> each) // 32) for each in range(1, 9))),
        ),
        "spread threads keep all 8 warps busy for 5 rounds, then 4, 2 and 1; the first threads fill 4 warps, "
        "then 2, and one in the other rounds.",
    ),
    "12.c": Question(
        (
            Input(
                "rate of tree, as a multiple of that of tree_divergent",
                lambda: _reduction("tree_divergent") / _reduction("tree"),
                "times",
                margin=0.1,
            ),
            Input(
                "grid_stride with 2^28",
                lambda: 100 * 2**30 / _reduction("grid_stride", 28) / 4.814e9,
                "%",
                margin=0.05,
            ),
        ),
        "both trees wait most of the time; with many loads on their way, only memory is left to wait for.",
        H200,
    ),
    "12.d": _one(
        "equal, as a multiple of uniform",
        lambda: 1e3 * 2**22 / atomics.one_address() / UNIFORM_MS,
        "times",
        "all 2^22 additions go to one address and take turns.",
        "With rates and a time recorded on an NVIDIA H200.",
    ),
    "12.e": Question(
        (Input("s", 7), Input("loads", 100 * 2 / 3, "%", margin=0.03)),
        "both parts have the same maximum, so the sums only add up; and two passes take the place of three.",
    ),
    "13.a": _one(
        "x[7] that is printed",
        7,
        "",
        "CUDA refuses a block of 2048 threads, so the kernel never runs: x comes back as it went.",
    ),
    "13.b": _one(
        "Bandwidth",
        3 * 4 * 2**20 / 0.01e-3 / 1e9,
        "GB/s",
        "three arrays of 2^20 floats are 12.6 MB, and 0.01 ms are 10^-5 s.",
    ),
    "13.c": _one(
        "Time of the copy",
        lambda: 1e3 * 4 * 2**20 / pinned_rate(gpu("H200")),
        "ms",
        "4.19 MB at 87 % of 63 GB/s, 54.8 GB/s.",
        "Predicted for an H200.",
        margin=0.1,
    ),
}
