"""The colour and the marker of each kernel, the same in all pictures."""

from labkit.kernels.problem import families
from labkit.ladder import rungs

# In the order in which the course climbs them. Colours that colour-blind readers can distinguish: Okabe and
# Ito's, then Tol's. Kernels that never meet in one plot may share a colour.
LOOKS = {
    "cpu_naive": ("#000000", "o"),
    "cpu_loop_order": ("#999999", "P"),
    "cpu_avx": ("#56B4E9", "s"),
    "cpu_avx_blocked": ("#009E73", "D"),
    "cpu_avx_blocked_bt": ("#CC79A7", "v"),
    "cpu_register_tile": ("#E69F00", "^"),
    "cpu_packed": ("#D55E00", "<"),
    "cpu_threads": ("#0072B2", ">"),
    "cpu_strassen": ("#882255", "*"),
    "cpu_blas": ("#7F7F7F", "X"),
    "naive_uncoalesced": ("#CC79A7", "v"),
    "naive": ("#D55E00", "o"),
    "naive_write_coalesced": ("#CC79A7", "v"),
    "shared": ("#0072B2", "s"),
    "padded": ("#009E73", "D"),
    "swizzled": ("#332288", "<"),
    "unrolled": ("#E69F00", "^"),
    "any_size": ("#AA4499", "h"),
    "tiled": ("#0072B2", "s"),
    "tiled_unrolled": ("#56B4E9", "D"),
    "register_column": ("#009E73", "<"),
    "register_tile": ("#E69F00", "^"),
    "vectorised": ("#882255", ">"),
    "double_buffered": ("#332288", "P"),
    "warp_tile": ("#117733", "h"),
    "tuned": ("#000000", "*"),
    "any_tile": ("#DDCC77", "p"),
    "stream_k": ("#44AA99", "8"),
    "tensor_cores": ("#AA4499", "d"),
    "cublas": ("#7F7F7F", "X"),
    "copy": ("#56B4E9", "P"),
    "memcpy": ("#7F7F7F", "X"),
}


# For the rungs of a ladder that LOOKS does not list, from the bottom up.
_NEXT = ("#56B4E9", "#D55E00", "#0072B2", "#009E73", "#E69F00", "#882255", "#332288", "#CC79A7", "#000000")
_OTHER = ("#7F7F7F", "X")  # for a kernel that is not a rung, such as a student's own


def look_of(kernel: str) -> tuple[str, str]:
    """Return the colour and marker of a kernel: those listed, or those for its position on its ladder."""
    if kernel in LOOKS:
        return LOOKS[kernel]
    for ladder in map(list, map(rungs, families())):
        if kernel in ladder:
            place = ladder.index(kernel)
            return _NEXT[place % len(_NEXT)], "osDv^<>Ph"[place % 9]
    return _OTHER


def rank(kernel: str) -> int:
    """Return the position on the course's ladder; kernels that LOOKS does not list come last."""
    if kernel in LOOKS:
        return list(LOOKS).index(kernel)
    places = [place for family in families() for place, rung in enumerate(rungs(family)) if rung == kernel]
    return len(LOOKS) + min(places, default=len(LOOKS))
