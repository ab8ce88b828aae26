"""Record how many wavefronts an access to shared memory takes, by the lanes' addresses.

usage, on a machine with a GPU, CuPy and ncu: python benchmarks/shared_wavefronts.py data/h200
Writes data/h200/machine_code/shared_wavefronts.csv and shared_wavefronts.json, its provenance. Each row is
one launch of one warp with a single access to shared memory:

    op          ld, st, atom (an addition that returns), red (one that does not), cas, ldsm (ldmatrix) or
                cp_async
    width       bytes per lane; of ldsm the bytes of the matrices that it loads, per lane
    pattern     what the addresses are like
    mask        the lanes that take part, in hexadecimal; lane 0 is the lowest bit
    offsets     the 32 lanes' addresses, in bytes from the start of shared memory
    wavefronts  of the access: Nsight Compute's l1tex__data_pipe_lsu_wavefronts_mem_shared.sum without those
                of its ..._op_misc.sum
    misc        the latter: one for the warp and, before a cp.async, one for each of three LDS that NVRTC
                puts there and no lane executes
    conflicts   l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum or _st; empty for atomics
                and cp.async
"""

import csv
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated

import typer

sys.path[:0] = [str(Path(__file__).parent)]

from record_gallery import architecture, built, count, number, output, place, say  # noqa: E402

from labkit import records  # noqa: E402

LANES = 32
ALL = 0xFFFFFFFF
MEMORY = 48 * 1024  # bytes of shared memory
TOTAL = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
MISC = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_misc.sum"
CONFLICTS = {op: f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in ("ld", "st")}
CONFLICTS["ldsm"] = CONFLICTS["ld"]
METRICS = (TOTAL, MISC, CONFLICTS["ld"], CONFLICTS["st"])
COLUMNS = ("op", "width", "pattern", "mask", "offsets", "wavefronts", "misc", "conflicts")
# The one instruction of each kernel: %0 is the address in shared memory, %1 one in global memory, and a to d
# are registers.
INSTRUCTIONS = {
    ("ld", 1): "ld.volatile.shared.u8 a, [%0];",
    ("ld", 2): "ld.volatile.shared.u16 h, [%0];",
    ("ld", 4): "ld.volatile.shared.u32 a, [%0];",
    ("ld", 8): "ld.volatile.shared.v2.u32 {a, b}, [%0];",
    ("ld", 16): "ld.volatile.shared.v4.u32 {a, b, c, d}, [%0];",
    ("st", 1): "st.volatile.shared.u8 [%0], a;",
    ("st", 2): "st.volatile.shared.u16 [%0], h;",
    ("st", 4): "st.volatile.shared.u32 [%0], a;",
    ("st", 8): "st.volatile.shared.v2.u32 [%0], {a, b};",
    ("st", 16): "st.volatile.shared.v4.u32 [%0], {a, b, c, d};",
    ("atom", 4): "atom.shared.add.u32 a, [%0], b;",
    ("red", 4): "red.shared.add.u32 [%0], b;",
    ("cas", 4): "atom.shared.cas.b32 a, [%0], b, c;",
    ("cas", 8): "atom.shared.cas.b64 x, [%0], y, x;",
    ("ldsm", 4): "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {a}, [%0];",
    ("ldsm", 8): "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {a, b}, [%0];",
    ("ldsm", 16): "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a, b, c, d}, [%0];",
    ("cp_async", 4): "cp.async.ca.shared.global [%0], [%1], 4;",
    ("cp_async", 8): "cp.async.ca.shared.global [%0], [%1], 8;",
    ("cp_async", 16): "cp.async.cg.shared.global [%0], [%1], 16;",
}
SOURCE = """
extern "C" __global__ void {name}(const unsigned* offsets, unsigned mask, unsigned* out)
{{
    __shared__ __align__(16) unsigned char memory[{memory}];
    unsigned lane = threadIdx.x, address = (unsigned)__cvta_generic_to_shared(memory) + offsets[lane];
    const unsigned* from = offsets + lane * 4;
    unsigned sum = lane;
    if (mask >> lane & 1) {{
        asm volatile("{{\\n .reg .b32 a, b, c, d; .reg .b16 h; .reg .b64 x, y;\\n"
                     " mov.b32 a, %2; mov.b32 b, %2; mov.b32 c, %2; mov.b32 d, %2; cvt.u16.u32 h, %2;\\n"
                     " mov.b64 x, {{a, b}}; mov.b64 y, {{c, d}};\\n"
                     " {instruction}\\n"
                     " {results}\\n}}" : : "r"(address), "l"(from), "r"(sum), "l"(out + lane) : "memory");
    }}
}}
"""
# What keeps a result in use: it is written to global memory.
RESULTS = {
    ("ld", 2): "st.global.u16 [%3], h;",
    ("ld", 8): "xor.b32 a, a, b; st.global.u32 [%3], a;",
    ("ld", 16): "xor.b32 a, a, b; xor.b32 c, c, d; xor.b32 a, a, c; st.global.u32 [%3], a;",
    ("cas", 8): "mov.b64 {a, b}, x; xor.b32 a, a, b; st.global.u32 [%3], a;",
}
RESULTS |= {("ldsm", width): RESULTS.get(("ld", width), "st.global.u32 [%3], a;") for width in (4, 8, 16)}
RESULTS |= {(op, 4): "st.global.u32 [%3], a;" for op in ("ld", "atom", "cas")}
RESULTS[("ld", 1)] = "st.global.u32 [%3], a;"


@dataclass(frozen=True)
class Kernel:
    """One access to shared memory by one warp, with what record_gallery needs to compile it."""

    op: str
    width: int
    family = "shared"
    options = ()
    name_expressions = ()

    @property
    def name(self) -> str:
        """The kernel's name."""
        return f"{self.op}_{self.width}"

    entry = name

    @property
    def source(self) -> str:
        """CUDA C++."""
        key = self.op, self.width
        return SOURCE.format(
            name=self.name, memory=MEMORY, instruction=INSTRUCTIONS[key], results=RESULTS.get(key, "")
        )


@dataclass(frozen=True)
class Access:
    """Addresses in bytes, one per lane, and which lanes take part."""

    pattern: str
    offsets: tuple[int, ...]
    mask: int = ALL


KERNELS = {key: Kernel(*key) for key in INSTRUCTIONS}
# The instructions of each run of ncu, and which patterns they get: all, or every n-th.
PARTS = {
    (("ld", 8), ("st", 8)): 1,
    (("ld", 4), ("st", 4)): 2,
    tuple(key for key in KERNELS if key[0] not in ("ld", "st") or key[1] < 4): 7,
    (("ld", 16), ("st", 16)): 1,
}


# ------------------------------------------------------------------------------------------------- patterns


def accesses(op: str, width: int) -> list[Access]:
    """Return the patterns for an instruction, each once."""
    every = next(nth for keys, nth in PARTS.items() if (op, width) in keys)
    rng = Random(f"shared wavefronts {width}")  # the same addresses for loads and stores
    found: dict[tuple[tuple[int, ...], int], Access] = {}
    for name, words, mask in patterns(rng):
        offsets = tuple(word * width % MEMORY for word in words)
        if op == "ldsm":
            offsets, mask = tuple(word * 16 % MEMORY for word in words), ALL
        found.setdefault((offsets, mask), Access(name, offsets, mask))
    chosen = list(found.values())
    return [*chosen[:24], *chosen[24::every]]


def patterns(rng: Random) -> Iterator[tuple[str, list[int], int]]:
    """Yield names, each lane's place in units of the access's width, and masks."""
    yield "broadcast", each(lambda lane: 7), ALL
    for step in (*range(1, 20), 24, 31, 32, 33, 48, 64):
        yield f"stride {step}", each(lambda lane, s=step: lane * s), ALL
    yield from pairs(rng)
    yield from bits(rng)
    for reach in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 1024):
        for _ in range(4):
            yield f"random below {reach}", [rng.randrange(reach) for _ in range(LANES)], ALL
    for reach in (32, 64, 256, 1024):
        for _ in range(3):
            yield f"permutation below {reach}", rng.sample(range(reach), LANES), ALL
    yield from masked(rng)


def each(place: Callable[[int], int]) -> list[int]:
    return [place(lane) for lane in range(LANES)]


def pairs(rng: Random) -> Iterator[tuple[str, list[int], int]]:
    """Lanes that share a place with those whose numbers differ in given bits, and a few lanes that do not."""
    for same in range(1, 32):
        words = ranked(same)
        yield f"equal across bits {same}", words, ALL
        if same.bit_count() == 1 or same in (3, 5, 6, 12, 24):
            spread = rng.sample(range(64), LANES)
            yield f"equal across bits {same}, spread", [spread[word] for word in words], ALL
            for start in range(0, LANES, 8):  # one lane of each quarter leaves its pair
                odd = words.copy()
                odd[start + rng.randrange(8)] = 40
                yield f"equal across bits {same}, but for one lane", odd, ALL
            lane = rng.randrange(LANES)
            yield f"equal across bits {same}, one lane off", words, ALL & ~(1 << lane)
            yield f"equal across bits {same}, a pair off", words, ALL & ~(1 << lane | 1 << (lane ^ same))
            quarter = 0xFF << 8 * rng.randrange(4)
            yield f"equal across bits {same}, a quarter off", words, ALL & ~quarter
            yield f"equal across bits {same}, half off", words, 0xFFFF << 16 * rng.randrange(2)
    for low, high in ((1, 2), (2, 1), (1, 4), (4, 1), (2, 4), (1, 8), (8, 1), (0, 1), (1, 0), (0, 2), (2, 0)):
        mixed = [*ranked(low)[:16], *(64 + word for word in ranked(high)[16:])]
        yield f"equal across bits {low} below, {high} above", mixed, ALL
    for chosen in (
        (1, 2, 1, 2),
        (1, 1, 2, 2),
        (1, 2, 2, 1),
        (1, 0, 1, 1),
        (1, 1, 1, 0),
        (2, 2, 2, 0),
        (0, 1, 0, 1),
    ):
        mixed = [ranked(chosen[lane // 8])[lane] + lane // 8 * 32 for lane in range(LANES)]
        yield f"equal across bits {' '.join(map(str, chosen))} by quarters", mixed, ALL
    for size in (4, 8, 16):
        yield f"the same {size}", each(lambda lane, s=size: lane % s), ALL
        yield f"the same {size}, turned", each(lambda lane, s=size: (lane + lane // s) % s), ALL
        yield (
            f"the same {size}, mirrored",
            each(lambda lane, s=size: lane % s ^ (s - 1) * (lane // s % 2)),
            ALL,
        )
    yield "backwards", each(lambda lane: 31 - lane), ALL


def ranked(same: int) -> list[int]:
    """Places close together: equal for lanes whose numbers differ only in the bits of `same`."""
    kept = sorted({lane & ~same for lane in range(LANES)})
    return [kept.index(lane & ~same) for lane in range(LANES)]


def bits(rng: Random) -> Iterator[tuple[str, list[int], int]]:
    """A coefficient for each bit of the lane's number: rows, columns and tiles of matrices."""
    likely = (0, 0, 1, 2, 4, 8, 16, 32, 33, 36, 40, 64, 9, 17, 5, 3)
    for nth in range(90):
        by_bit = [rng.choice(likely) for _ in range(5)]
        if nth % 3 == 0:  # the most usual: bits in a row step by powers of two
            step = rng.choice((0, 1, 1, 2, 4))
            by_bit[: rng.randrange(1, 5)] = [step << bit for bit in range(rng.randrange(1, 5))]
            by_bit = (by_bit + [rng.choice(likely)] * 5)[:5]
        words = each(lambda lane, c=tuple(by_bit): sum(w for bit, w in enumerate(c) if lane >> bit & 1))
        yield f"bits step {' '.join(map(str, by_bit))}", words, ALL


def masked(rng: Random) -> Iterator[tuple[str, list[int], int]]:
    """Some lanes only."""
    dense, same = each(lambda lane: lane), each(lambda lane: 3)
    for name, words in (("dense", dense), ("broadcast", same)):
        for lanes in (1, 2, 4, 8, 9, 16, 17, 24):
            yield f"{name}, the first {lanes} lanes", words, (1 << lanes) - 1
        yield f"{name}, the last 8 lanes", words, 0xFF000000
        yield f"{name}, the middle 16 lanes", words, 0x00FFFF00
        yield f"{name}, even lanes", words, 0x55555555
        yield f"{name}, odd pairs", words, 0xCCCCCCCC
        yield f"{name}, one lane of each quarter", words, 0x04200180
        yield f"{name}, first and third quarter", words, 0x00FF00FF
        yield f"{name}, first and last quarter", words, 0xFF0000FF
        yield f"{name}, one lane of each half", words, 0x00400010
    for nth in range(80):
        lanes = rng.randrange(1, 32)
        mask = sum(1 << lane for lane in rng.sample(range(LANES), lanes))
        kind = nth % 4
        if kind == 0:
            yield f"random mask of {lanes}, dense", dense, mask
        elif kind == 1:
            reach = rng.choice((2, 4, 8, 16, 32, 64, 256))
            yield (
                f"random mask of {lanes}, random below {reach}",
                [rng.randrange(reach) for _ in range(LANES)],
                mask,
            )
        elif kind == 2:
            step = rng.choice((2, 3, 4, 8, 16, 32))
            yield f"random mask of {lanes}, stride {step}", each(lambda lane, s=step: lane * s), mask
        else:
            shared = rng.choice((1, 2, 4, 8, 16, 3, 7))
            yield f"random mask of {lanes}, equal across bits {shared}", ranked(shared), mask


# ---------------------------------------------------------------------------------------------- measurement


def main(
    folder: Annotated[Path, typer.Argument(help="where the records of this machine lie, such as data/h200")],
    compiled: Annotated[Path | None, typer.Option(help="kernels that --compile-only left here")] = None,
    compile_only: Annotated[bool, typer.Option(help="fill --compiled for an H200; needs no GPU")] = False,
    drive: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Record the wavefronts; or, with --drive, launch what a plan says."""
    if drive:
        launch(json.loads(drive), folder)
        return
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        work = compiled or Path(scratch)
        work.mkdir(exist_ok=True)
        built(list(KERNELS.values()), work, "sm_90" if compile_only else architecture())
        if compile_only:
            return
        target = folder / "machine_code"
        target.mkdir(parents=True, exist_ok=True)
        rows: list[list[object]] = []
        for part in PARTS:
            rows += measured(part, work)
            with (target / "shared_wavefronts.csv").open("w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(COLUMNS)
                writer.writerows(rows)
            say(start, f"{len(rows)} accesses")
        version = output(["ncu", "--version"]).split("Version ")[1].split()[0]
        command = f"python benchmarks/shared_wavefronts.py {folder.as_posix()}"
        command += f" --compiled {compiled.name}" if compiled else ""
        origin = records.provenance(command, NVRTC=(work / "nvrtc").read_text(), ncu=version)
    (target / "shared_wavefronts.json").write_text(json.dumps(origin, indent=2) + "\n")


def measured(part: tuple[tuple[str, int], ...], work: Path) -> Iterator[list[object]]:
    """Yield the rows of the table for these instructions, all counted in one run of ncu."""
    plan = [key for key in part if place(KERNELS[key], work).exists()]
    command = [sys.executable, __file__, str(work), "--drive", json.dumps(plan)]
    entries = [KERNELS[key].name for key in plan]
    found = count(command, METRICS, entries, ["--cache-control", "none"])
    wanted = [(key, access) for key in plan for access in accesses(*key)]
    if len(found) != len(wanted):
        print(f"ncu counted {len(found)} of {len(wanted)} accesses", flush=True)
    for ((op, width), access), row in zip(wanted, found, strict=False):
        if f"{op}_{width}" not in row["Kernel Name"]:
            raise SystemExit(f"{op}_{width} is out of step: ncu counted {row['Kernel Name']}")
        total, misc = int(number(row[TOTAL])), int(number(row[MISC]))
        conflicts = number(row[CONFLICTS[op]]) if op in CONFLICTS else ""
        offsets = " ".join(map(str, access.offsets))
        yield [op, width, access.pattern, f"{access.mask:08x}", offsets, total - misc, misc, conflicts]


def launch(plan: list[list[object]], work: Path) -> None:
    """Launch every pattern of these instructions, in order."""
    import cupy
    import numpy as np

    for op, width in plan:
        kernel = cupy.RawModule(path=str(place(KERNELS[op, width], work))).get_function(f"{op}_{width}")
        chosen = accesses(op, width)
        table = cupy.asarray(np.array([access.offsets for access in chosen], np.uint32))
        room = cupy.zeros(4 * LANES, np.uint32)  # the table's last row is also read as 16 bytes per lane
        table, out = cupy.concatenate([table.ravel(), room]), cupy.zeros(LANES, np.uint32)
        for row, access in enumerate(chosen):
            kernel((1,), (LANES,), (table[row * LANES :], np.uint32(access.mask), out))
        cupy.cuda.Device().synchronize()


if __name__ == "__main__":
    typer.run(main)
