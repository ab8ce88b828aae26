"""A cache on disk for results that are slow to make again, such as compiled kernels and libraries.

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
    """Return the cache's folder: `LABKIT_CACHE` if set, else the user's cache folder. It may not exist."""
    override = os.environ.get("LABKIT_CACHE")
    if override:
        return Path(override).expanduser()
    from platformdirs import (
        user_cache_path,
    )  # here: the Makefile runs the doctor before anything is installed

    return user_cache_path("labkit", appauthor=False)


def cached_bytes(kind: str, key_parts: Sequence[str | bytes], make: Callable[[], bytes]) -> bytes:
    """Return `make()`, from the disk where it was made before with the same `kind` and `key_parts`.

    `kind` names a subfolder ("ptx", "c"). `key_parts` must hold all that changes the result: source, options,
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
    """Return the SHA-256 of the parts, each after its length, so that ('ab', 'c') and ('a', 'bc') differ."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _read(path: Path) -> bytes | None:
    """Return the data stored at `path`, or None where there is none or its checksum is wrong."""
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
