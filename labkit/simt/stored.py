"""What the simulator has worked out once, kept on disk: parsed modules, compiled kernels."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from labkit.core.cache import cached_bytes

T = TypeVar("T")


def stored(kind: str, key: Sequence[str], make: Callable[[], T]) -> T:
    """`make()`, from the disk where this version of the simulator made the same before."""
    return pickle.loads(cached_bytes(kind, [*key, _version()], lambda: pickle.dumps(make())))


@lru_cache(maxsize=1)
def _version() -> str:
    """Digest of when the simulator's own sources were changed: others make other code."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    times = ((source.name, (stat := source.stat()).st_mtime_ns, stat.st_size) for source in sources)
    return hashlib.sha256(repr(list(times)).encode()).hexdigest()
