"""What NVIDIA's compiler makes of the course's own kernels, for machines that it has no build for (macOS).

`benchmarks/precompile.py` writes the archive: the entries of a cache in which every notebook has run, and the
versions of the packages that made them, which are part of an entry's key.
"""

import json
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from labkit.core.cache import digest
from labkit.core.paths import shipped

KINDS = ("ptx", "resources", "types")
MANIFEST = "manifest.json"
ARCHIVE = shipped("data") / "precompiled.zip"


def find(kind: str, key_parts: Sequence[str | bytes]) -> bytes | None:
    """What the compiler made of this, or None where the archive has it not."""
    try:
        return _opened().read(f"{kind}/{digest(key_parts)}")
    except KeyError:
        return None


@cache
def manifest() -> dict[str, Any]:
    """Versions of the `packages`, the `architectures` they compile for, the digest of the course's
    `sources`.
    """
    return json.loads(_opened().read(MANIFEST))


def entries() -> dict[str, bytes]:
    """All that the archive holds, but its manifest."""
    return {name: _opened().read(name) for name in _opened().namelist() if name != MANIFEST}


def write(entries: Mapping[str, bytes], about: Mapping[str, Any]) -> None:
    """Make the archive anew: `kind/digest` -> content. Same entries, same bytes."""
    # Deflated: many a Python on macOS is built without LZMA.
    with zipfile.ZipFile(ARCHIVE, "w") as archive:
        for name, content in sorted({MANIFEST: json.dumps(about, indent=1).encode(), **entries}.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)


@cache
def _opened() -> zipfile.ZipFile:
    return zipfile.ZipFile(ARCHIVE)
