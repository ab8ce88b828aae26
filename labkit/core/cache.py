"""A cache on disk for what is slow to make again: compiled kernels and libraries.

The cache only saves time. Whatever happens to it (deleted, damaged, read-only, full), results are the same.
"""

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

logger = logging.getLogger(__name__)


def cache_dir() -> Path:
    """The cache's folder: `LABKIT_CACHE` where it is set, else the user's cache folder. It may not
    exist yet.
    """
    override = os.environ.get("LABKIT_CACHE")
    if override:
        return Path(override).expanduser()
    from platformdirs import (
        user_cache_path,
    )  # here: the Makefile runs the doctor before anything is installed

    return user_cache_path("labkit", appauthor=False)


def cached_bytes(kind: str, key_parts: Sequence[str | bytes], make: Callable[[], bytes]) -> bytes:
    """Return `make()`, from the disk where the same `kind` and `key_parts` were made before.

    `kind` names a subfolder ("ptx", "c"). What changes the result belongs into `key_parts`: source, options,
    the compiler's version. Raises only what `make` raises.
    """
    path = cache_dir() / kind / digest(key_parts)
    stored = _read(path)
    if stored is not None:
        return stored
    made = make()
    _write(path, made)
    return made


def digest(parts: Sequence[str | bytes]) -> str:
    """SHA-256 over the parts, each after its length, so that ('ab', 'c') and ('a', 'bc') differ."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _read(path: Path) -> bytes | None:
    """The data stored at `path`, or None where there is none or its checksum is wrong."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    checksum, data = stored[:32], stored[32:]
    return data if hashlib.sha256(data).digest() == checksum else None


def _write(path: Path, data: bytes) -> None:
    """Store `data` with its checksum, whole or not at all, even when other processes write the same file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, ignore_cleanup_errors=True) as folder:
            temporary = Path(folder, path.name)
            temporary.write_bytes(hashlib.sha256(data).digest() + data)
            temporary.replace(path)
    except OSError as error:
        logger.debug("not cached: %s", error)
