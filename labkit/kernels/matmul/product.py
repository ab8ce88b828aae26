"""`labkit.matmul`: the product of two float32 matrices of any shape, with the rung and the tile that suit it.

The rule, for a GPU with S multiprocessors (SMs):

1. There are three tiles: the larger one is, the less it reads, and the higher its rate (`TILES`).
2. A tile comes into question if C has one for every second SM at least; else SMs would idle or share much.
3. Of these, take the one that computes C soonest: its padded tiles' elements, divided by its rate.
4. If the tiles fill their waves of blocks to 95 %, and are not the largest or K is short, each block computes
   one, with `10_any_tile`. A single wave need not be full: it is enough if 95 % of the SMs get as many tiles
   as the busiest.
5. Otherwise all blocks of one wave share the work, with `11_stream_k`: each the same part of a tile if that
   leaves at most 5 % of them without work, else the same number of steps.

The rates and limits come from an H200; docs/measurements.md has the times.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from labkit import kernels
from labkit.kernels.matmul.family import Matmul
from simt.common.limits import MAX_GRID, Dim3
from simt.common.occupancy import DEFAULT_GPU, gpu
from simt.kernel import PATIENCE_SECONDS, Kernel

FULL = 0.95  # of the places for blocks, from which on a division into equal parts is even enough
FEWEST = 0.5  # tiles per SM, below which a smaller tile serves better
SHORT = 32  # steps along K, below which to share them costs more than it gives, also with the largest tile
SIMULATED_SMS = gpu(DEFAULT_GPU).multiprocessors  # in the simulator

Matrix = NDArray[np.float32]  # of CuPy on a GPU


@dataclass(frozen=True)
class Tile:
    """A tile of C: its macros in the order of MACROS, the blocks of a wave per SM, and its rate in TFLOP/s.

    `blocks` may be less than the SM holds: more, smaller shares of a small tile take longer to add.
    """

    macros: tuple[int, int, int, int, int, int, int]
    blocks: int
    rate: float

    def count(self, m: int, n: int) -> int:
        """Return how many tiles cover C (m,n)."""
        return -(-m // self.macros[0]) * -(-n // self.macros[1])

    def seconds_per_flop(self, m: int, n: int) -> float:
        """Return the time, in any unit, for C (m,n): its tiles are computed whole, beyond the edges too."""
        return self.count(m, n) * self.macros[0] * self.macros[1] / self.rate


MACROS = ("TILE_M", "TILE_N", "TILE_K", "THREAD_M", "THREAD_N", "STAGES", "PER_SM")
TILES = (
    Tile((128, 256, 8, 8, 16, 3, 1), blocks=1, rate=52),
    Tile((64, 128, 16, 8, 8, 2, 3), blocks=3, rate=50),
    Tile((32, 64, 32, 4, 4, 3, 4), blocks=1, rate=31),
)


@dataclass(frozen=True)
class Choice:
    """A rung with the macros that differ from no other call of its tile, and the grid of its launch."""

    kernel: str
    macros: tuple[tuple[str, int], ...]
    grid: Dim3
    block: Dim3


def choose(m: int, n: int, k: int, multiprocessors: int) -> Choice:
    """Choose the rung, the macros and the grid for C (m,n) = A (m,k) B (k,n), by the rule above."""
    tile = min(_in_question(m, n, multiprocessors), key=lambda each: each.seconds_per_flop(m, n))
    tile_m, tile_n, tile_k, thread_m, thread_n, *_ = tile.macros
    macros = tuple(zip(MACROS, tile.macros, strict=True))
    block = (tile_m // thread_m * tile_n // thread_n, 1, 1)
    down, across = -(-m // tile_m), -(-n // tile_n)
    tiles, places = down * across, tile.blocks * multiprocessors
    waves = -(-tiles // places)
    is_short = k < SHORT * tile_k
    filled = waves * places if waves > 1 else -(-tiles // multiprocessors) * multiprocessors
    if tiles >= FULL * filled and (tile is not TILES[0] or is_short) and down <= MAX_GRID[1]:
        return Choice("matmul/10_any_tile", macros, (across, down, 1), block)
    even = places // tiles * tiles  # blocks, if each computes the same part of a tile
    blocks = even if even >= FULL * places else places
    steps = tiles * -(-k // tile_k)
    return Choice("matmul/11_stream_k", (*macros, ("BLOCKS", places)), (min(blocks, steps), 1, 1), block)


def _in_question(m: int, n: int, multiprocessors: int) -> Iterator[Tile]:
    """Yield the tiles of which C has enough; the smallest always."""
    yield from (tile for tile in TILES[:-1] if tile.count(m, n) >= FEWEST * multiprocessors)
    yield TILES[-1]


def matmul(A: Matrix, B: Matrix, out: Matrix | None = None, alpha: float = 1, beta: float = 0) -> Matrix:
    """Return alpha A B + beta out, in full float32, for matrices A (M,K) and B (K,N) of any sizes.

    A, B and out (M,N) are contiguous float32 arrays: CuPy's on a GPU, NumPy's in the simulator. The result is
    written to `out`, if there is one; with beta = 0 it is not read. On a GPU the call returns before the
    result is there, as all of CuPy does. Every call with the same shapes gives the same bits. Products of
    several CUDA streams must not run at the same time: their blocks would share one workspace.

    Raises TypeError for another kind of array, and ValueError for shapes that do not fit, other dtypes,
    arrays that are not contiguous or overlap, or a beta without `out`.
    """
    from labkit.devices.select import device, xp

    _check_array("A", A, xp.ndarray)
    _check_array("B", B, xp.ndarray)
    (m, k), (rows, n) = A.shape, B.shape
    if k != rows:
        raise ValueError(
            f"A {A.shape} has {k} columns and B {B.shape} has {rows} rows; these numbers must be equal. "
            "Choose other matrices, or pass a contiguous copy of a transposed one."
        )
    if out is None:
        if beta:
            raise ValueError(f"beta={beta} scales the old values of out, and there is no out. Pass it.")
        out = xp.empty((m, n), np.float32)
    else:
        _check_out(out, (m, n), A, B)
    here = device()
    kernel, grid, block, scalars = _plan(
        m, n, k, alpha, beta, (here.kind, here.index), here.multiprocessors or SIMULATED_SMS
    )
    kernel(grid, block, (A, B, out, *scalars), timeout=PATIENCE_SECONDS)
    return out


@lru_cache(maxsize=1024)
def _plan(
    m: int, n: int, k: int, alpha: float, beta: float, _device: tuple[str, int], multiprocessors: int
) -> tuple[Kernel, Dim3, Dim3, tuple[np.generic, ...]]:
    """Compile the kernel for a product; return it with grid, block and what follows its arrays."""
    scalars = Matmul(m, n, k, alpha=alpha, beta=beta).scalars()  # refuses sizes and factors out of range
    chosen = choose(m, n, k, multiprocessors)
    return kernels.load(chosen.kernel, **dict(chosen.macros)), chosen.grid, chosen.block, scalars


def _check_out(out: Matrix, shape: tuple[int, int], *operands: Matrix) -> None:
    from labkit.devices.select import xp

    _check_array("out", out, xp.ndarray)
    if out.shape != shape:
        raise ValueError(
            f"out has the shape {out.shape}; the product has {shape}. Pass an out of that shape."
        )
    if any(xp.may_share_memory(out, operand) for operand in operands):
        raise ValueError("out overlaps A or B, which are read while it is written. Pass another array.")


def _check_array(name: str, array: Matrix, kind: type) -> None:
    if not isinstance(array, kind):
        raise TypeError(
            f"{name} is a {type(array).__module__}.{type(array).__name__}; this device takes "
            f"{kind.__module__.partition('.')[0]} arrays. Pass labkit.xp.asarray({name})."
        )
    if array.ndim != 2:
        raise ValueError(f"{name} has the shape {array.shape}; a matrix has two dimensions. Reshape it.")
    if array.dtype != np.float32:
        raise ValueError(f'{name} has the dtype {array.dtype}; pass {name}.astype("float32").')
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous. Pass labkit.xp.ascontiguousarray({name}).")
