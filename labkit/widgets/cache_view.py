"""The explorer of cache lines: how the order of the loops and BLOCK change what a small cache must fetch."""

from labkit.cpu.cache_lines import LARGEST, VECTOR, VERSIONS, Cache, Loops, count_misses, reuse
from labkit.figures.cache_lines import cache_picture, state
from labkit.widgets.explorer import Choices, Explorer, Offer, View, menu, plain, selection

_SIZES = (16, 24, 32, 33, 40, 48, LARGEST)
_CACHES = (8, 16, 32, 64, 128, 256)  # lines
_FEW_WAYS = (1, 2, 4)


def cache() -> Explorer:
    """Show how often each cache line of A, B and C is fetched, for each order of the loops.

    A menu chooses the loops; sliders set N, BLOCK, the cache's lines and ways, and the moment that is shown.
    """

    def offer(version: str, N: int, block: int, lines: int, **_: object) -> dict[str, Choices | Offer]:
        why = "" if Loops(version, N, block).blocked else "only blocked loops have a BLOCK"
        return {"block": Offer(_blocks(N), why), "ways": _ways(lines)}

    controls = {
        "moment": selection("moment", [(f"{part} %", part) for part in range(1, 101)], 40),
        "version": menu("loops", plain(VERSIONS), group="product"),
        "N": selection("N", plain(_SIZES), 48, group="product"),
        "block": selection("BLOCK", _blocks(48), 16, group="product"),
        "lines": selection("cache lines", plain(_CACHES), 32, group="cache"),
        "ways": selection("ways", _ways(32), 32, group="cache"),
    }
    return Explorer(cache_view, controls, offer, "What a small cache must fetch, by the order of the loops")


def cache_view(version: str, N: int, block: int, lines: int, ways: int, moment: int) -> View:
    """Draw the lines of A, B and C by how often they are fetched; tell what the cache keeps.

    The text also says what would help. `block` matters for the blocked versions only; `moment` is the part of
    the accesses, in percent, after which the picture shows the cache.
    """
    loops, small = Loops(version, N, block), Cache(lines, ways)
    details = (
        *(_reuse(loops, small), _now(loops, small, moment)),
        *(*_conflicts(loops, small), _mend(loops, small)),
    )
    return View(
        (cache_picture(loops, small, moment),),
        _misses(loops, small),
        "\n".join(details),
        "Point at a line to see how often it is fetched; click a version to choose its loops.",
    )


# Sentences.


def _misses(loops: Loops, cache: Cache) -> str:
    counted = count_misses(loops, cache)
    block = f", BLOCK = {loops.block}" if loops.blocked else ""
    return (
        f"{loops.version}, N = {loops.N}{block}: {counted.misses:,} misses; "
        f"{loops.compulsory:,} is the least possible, each line once."
    )


def _reuse(loops: Loops, cache: Cache) -> str:
    two = reuse(loops, cache)
    kept = {0: "none", two.again: "all"}.get(two.kept, str(two.kept))
    return (
        f"The first {two.name} touches {two.touched} lines, the second {two.again} of these again. "
        f"The cache holds {cache.lines} lines and still has {kept} of the {two.again} when they are needed."
    )


def _now(loops: Loops, cache: Cache, moment: int) -> str:
    """Say what the cache holds at the moment."""
    present, (i, j, k) = state(loops, cache, moment)
    held = [
        f"{count} of {name}"
        for name, count in zip(loops.matrices, present.reshape(3, -1).sum(axis=1), strict=True)
    ]
    return (
        f"After {moment} % of the accesses, at i = {i}, j = {j}, k = {k}, it holds {', '.join(held[:2])} and "
        f"{held[2]}."
    )


def _conflicts(loops: Loops, cache: Cache) -> list[str]:
    """Say how many misses come from the sets, where the cache has several."""
    if cache.sets == 1:
        return []
    misses = count_misses(loops, cache).misses
    one_set = count_misses(loops, Cache(cache.lines, cache.lines)).misses
    sets = f"A line has {cache.ways} possible {'place' if cache.ways == 1 else 'places'} in this cache. "
    if misses > one_set:
        return [
            f"{sets}With free choice of the place there are {one_set:,} misses: the others are conflicts."
        ]
    return [f"{sets}Free choice of the place would not help: {one_set:,} misses."]


def _mend(loops: Loops, cache: Cache) -> str:
    misses = count_misses(loops, cache).misses
    if loops.version == "blocked, B transposed":
        return (
            f"{_lost(loops, cache)}Each step needs {VECTOR} numbers from {VECTOR} rows of BT; in B they lie "
            "side by side. That costs time even where it costs no miss. Transposing B is not counted here."
        )
    if misses == loops.compulsory:
        return "Nothing is left to mend: each line is fetched once."
    if loops.version == "three loops":
        fewer = count_misses(Loops("loop order", loops.N, loops.block), cache).misses
        if fewer < misses:
            return (
                f"Exchange the loops over j and k (loop order) to go along the lines of B: {fewer:,} misses."
            )
    best, fewest = _best_block(loops, cache)
    if fewest >= misses:
        return "No BLOCK gives fewer misses in this cache."
    if not loops.blocked:
        why = "In blocks, a part of B stays in the cache while several rows of C use it. "
    elif best > loops.block:
        why = "A larger block is used more often before it leaves the cache. "
    else:
        why = _lost(loops, cache)
    return f"{why}Best is BLOCK = {best}: {fewest:,} misses."


def _lost(loops: Loops, cache: Cache) -> str:
    """Say so where the cache loses part of a block between two rows."""
    two = reuse(loops, cache)
    return "The block does not stay in the cache. " if two.kept < two.again else ""


def _best_block(loops: Loops, cache: Cache) -> tuple[int, int]:
    """Return the BLOCK with which the version `blocked` has the fewest misses, and their number."""
    misses = {
        block: count_misses(Loops("blocked", loops.N, block), cache).misses for _, block in _blocks(loops.N)
    }
    best = min(misses, key=misses.__getitem__)
    return best, misses[best]


# What the controls offer.


def _blocks(N: int) -> Choices:
    """Offer multiples of 8; with the last one a single block covers the matrix."""
    return plain(range(VECTOR, N + VECTOR, VECTOR))


def _ways(lines: int) -> Choices:
    return [*plain(_FEW_WAYS), ("all", lines)]
