"""A zip of submissions, unpacked where nothing of it can do harm.

A zip may name files anywhere, hold links, or grow to any size. One that does is refused before anything of it
is written: a download of a learning platform is never such.
"""

import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile

from labkit.grading.intake.entries import NoSubmissions, TooDeep, found

MOST_FILES = 100_000
MOST_BYTES = 8 * 2**30
MOST_GROWTH = 100  # times that all files may be as large as the zip, if they have more than FEW_BYTES
FEW_BYTES = 256 * 2**20
DEEPEST = 64  # folders
LONGEST = 255  # bytes of a name: file systems take no more

_ENCRYPTED, _IN_UTF_8 = 0x1, 0x800  # of a file's flags
_UNIX = 3  # the system that wrote a file's attributes
_BY_HAND = "Unpack it by hand, look at what is in it, and name the folder."


class NotUnpacked(ValueError):
    """A zip is damaged, or nothing that a class hands in; the message names it, and what to do."""


def is_zip(path: Path) -> bool:
    """Tell whether this is a zip, or should be one by its name: half a download is not known as such."""
    return path.is_file() and (path.suffix.lower() == ".zip" or is_zipfile(path))


@contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """Unpack a zip into a folder that is there as long as the context is. Raises NotUnpacked."""
    with tempfile.TemporaryDirectory(prefix="labkit-submissions-") as name:
        folder = Path(name)
        try:
            with ZipFile(archive) as opened:
                files = _checked(archive, opened.infolist())
                _check_room(archive, files, folder)
                for inner, info in files:
                    path = folder / inner
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with opened.open(info) as source, path.open("xb") as target:
                        shutil.copyfileobj(source, target)
                    _keep_time(path, info)
        except (BadZipFile, EOFError, zlib.error) as error:
            raise NotUnpacked(
                f"{archive} is damaged ({error}). Download it again, or unpack by hand what can be read "
                "of it, and name the folder."
            ) from None
        except NotImplementedError as error:
            raise NotUnpacked(f"{archive} cannot be unpacked here ({error}). {_BY_HAND}") from None
        yield folder


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Give the folder of submissions: a zip is unpacked for a while. Raises NotUnpacked and NoSubmissions."""
    if not is_zip(path):
        yield path
        return
    with unpacked(path) as folder:
        yield _within(path, folder)


def _within(archive: Path, folder: Path) -> Path:
    """Return the folder of a zip that has the submissions: a zip often has one around all."""
    try:
        found(folder)
    except TooDeep as error:
        if len(error.folders) == 1:
            return error.folders[0]
        names = ", ".join(each.relative_to(folder).as_posix() for each in error.folders[:5])
        raise NoSubmissions(
            f"{archive} has folders with the submissions of several students each: {names}. "
            "Unpack it by hand, and grade them one by one."
        ) from None
    except NoSubmissions as error:
        raise NoSubmissions(str(error).replace(str(folder), str(archive))) from None
    return folder


def _checked(archive: Path, members: Sequence[ZipInfo]) -> list[tuple[PurePosixPath, ZipInfo]]:
    """Return the files of a zip and the paths at which they belong. Raises NotUnpacked."""
    files: dict[PurePosixPath, ZipInfo] = {}
    for info in members:
        name = _name(info)
        inner = PurePosixPath(name)
        mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
        wrong = ""
        if info.flag_bits & _ENCRYPTED:
            wrong = "is encrypted"
        elif inner.is_absolute() or ".." in inner.parts or name[1:2] == ":":
            wrong = "would lie outside of it"
        elif stat.S_ISLNK(mode):
            wrong = "is a link"
        elif stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            wrong = "is no plain file"
        elif len(inner.parts) > DEEPEST:
            wrong = f"lies more than {DEEPEST} folders deep"
        elif any(len(part.encode("utf-8", "surrogatepass")) > LONGEST for part in inner.parts):
            wrong = "has too long a name"
        elif inner in files:
            wrong = "is in it twice"
        if wrong:
            raise NotUnpacked(f"{archive} is not unpacked: {name[:200]!r} {wrong}. {_BY_HAND}")
        if not info.is_dir() and not name.endswith("/"):
            files[inner] = info
    if clash := next((parent for inner in files for parent in inner.parents if parent in files), None):
        raise NotUnpacked(
            f"{archive} is not unpacked: {str(clash)[:200]!r} is a file and a folder. {_BY_HAND}"
        )
    return list(files.items())


def _check_room(archive: Path, files: Sequence[tuple[PurePosixPath, ZipInfo]], folder: Path) -> None:
    """Raise NotUnpacked where a zip has more than a class hands in, or than there is room for."""
    size = sum(info.file_size for _, info in files)  # more than this is never read of a file
    grown = size > FEW_BYTES and size > MOST_GROWTH * archive.stat().st_size
    if len(files) > MOST_FILES or size > MOST_BYTES or grown:
        raise NotUnpacked(
            f"{archive} is not unpacked: it has {len(files):,} files of {size / 2**20:,.0f} MiB together, "
            f"more than a class hands in. {_BY_HAND}"
        )
    free = shutil.disk_usage(folder).free
    if size > free:
        raise NotUnpacked(
            f"{archive} is not unpacked: it takes {size / 2**20:,.0f} MiB, and {folder.parent} has "
            f"{free / 2**20:,.0f} MiB left. The variable TMPDIR names another place."
        )


def _keep_time(path: Path, info: ZipInfo) -> None:
    """Give a file the time that the zip has of it, which is without a time zone."""
    with suppress(ValueError, OverflowError):  # a zip may have any numbers
        time = datetime(*info.date_time).timestamp()
        os.utime(path, (time, time))


def _name(info: ZipInfo) -> str:
    """Return a file's name with / between folders, and read as UTF-8 where it is: macOS does not say so."""
    name = info.filename
    if not info.flag_bits & _IN_UTF_8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name if info.create_system == _UNIX or "/" in name else name.replace("\\", "/")
