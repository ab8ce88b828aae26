"""The course's own kernels as NVIDIA's compiler compiles them, for machines that it does not support (macOS).

`benchmarks/precompile.py` writes the archive. It holds the entries of a cache in which every notebook has
run, and the versions of the packages that made them, which are part of an entry's key.
"""

import json
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from simt.common.cache import digest
from simt.common.paths import DATA

KINDS = ("ptx", "resources", "types", "sass")
MANIFEST = "manifest.json"
ARCHIVE = DATA / "precompiled.zip"


def find(kind: str, key_parts: Sequence[str | bytes]) -> bytes | None:
    """Return the compiler's output for this key, or None where the archive does not have it."""
    try:
        return _opened().read(f"{kind}/{digest(key_parts)}")
    except KeyError:
        return None


@cache
def manifest() -> dict[str, Any]:
    """Return the versions of `packages`, the `architectures`, and the digest of the course's `sources`."""
    return json.loads(_opened().read(MANIFEST))


def entries() -> dict[str, bytes]:
    """Return everything in the archive except its manifest."""
    return {name: _opened().read(name) for name in _opened().namelist() if name != MANIFEST}


def write(entries: Mapping[str, bytes], about: Mapping[str, Any]) -> None:
    """Write the archive from scratch: `kind/digest` -> content. The same entries give the same bytes."""
    # Deflated, as many Pythons on macOS are built without LZMA.
    with zipfile.ZipFile(ARCHIVE, "w") as archive:
        for name, content in sorted({MANIFEST: json.dumps(about, indent=1).encode(), **entries}.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)


@cache
def _opened() -> zipfile.ZipFile:
    return zipfile.ZipFile(ARCHIVE)
