"""Keep what the simulator has worked out on disk: parsed modules and compiled kernels."""

import hashlib
import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from simt.common.cache import cached_bytes

T = TypeVar("T")


def disk_cached(kind: str, key: Sequence[str], make: Callable[[], T]) -> T:
    """Return `make()`, or the copy on disk if this version of the simulator made it before."""
    return pickle.loads(cached_bytes(kind, [*key, _version()], lambda: pickle.dumps(make())))


@lru_cache(maxsize=1)
def _version() -> str:
    """Return a digest of when the simulator's own sources were changed: other sources make other code."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    times = ((source.name, (stat := source.stat()).st_mtime_ns, stat.st_size) for source in sources)
    return hashlib.sha256(repr(list(times)).encode()).hexdigest()
