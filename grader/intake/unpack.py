"""A zip of submissions, unpacked where nothing of it can do harm.

A zip may name files anywhere, hold links, or grow to any size. One that does is refused before anything of it
is written: a download of a learning platform is never such.
"""

import errno
import lzma
import os
import shutil
import stat
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile

from grader.intake.entries import NoSubmissions, TooDeep, found

PREFIX = "labkit-submissions-"  # of the folders
MOST_FILES = 100_000
MOST_BYTES = 8 * 2**30
MOST_GROWTH = 100  # times that all files may be as large as the zip, if they have more than FEW_BYTES
FEW_BYTES = 256 * 2**20
DEEPEST = 64  # folders
LONGEST, LONGEST_PATH = 255, 2048  # bytes of a name, and of those of its folders with it

_ENCRYPTED, _IN_UTF_8 = 0x1, 0x800  # of a file's flags
_UNIX = 3  # the system that wrote a file's attributes
_WAY_OUT = "Download it again; or unpack it by hand, look at what is in it, and name the folder."


class NotUnpacked(ValueError):
    """A zip is damaged, or nothing that is handed in; the message names it, and what to do.

    `why` says what is wrong with it, and ends the sentence that its name begins.
    """

    def __init__(self, why: str, archive: Path | None = None) -> None:
        super().__init__(f"{archive} {why}. {_WAY_OUT}" if archive else why)
        self.why = why


def is_zip(path: Path) -> bool:
    """Tell whether this is a zip, or should be one by its name: half a download is not known as such."""
    return path.is_file() and (path.suffix.lower() == ".zip" or is_zipfile(path))


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Give the folder of submissions: a zip is unpacked for a while. Raises NotUnpacked and NoSubmissions."""
    if not is_zip(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        try:
            unpack(path, Path(name))
        except NotUnpacked as error:
            raise NotUnpacked(error.why, path) from None
        yield _within(path, Path(name))


def unpack(archive: Path | BytesIO, folder: Path, most: int = MOST_BYTES) -> int:
    """Unpack a zip into an empty folder, and return the bytes of its files. Raises NotUnpacked."""
    size = archive.stat().st_size if isinstance(archive, Path) else archive.getbuffer().nbytes
    try:
        with ZipFile(archive) as members:
            files = _checked(members.infolist())
            _check_room(files, size, folder, most)
            for inner, info in files:
                path = folder / inner
                path.parent.mkdir(parents=True, exist_ok=True)
                with members.open(info) as source, path.open("xb") as target:
                    shutil.copyfileobj(source, target)
                _keep_time(path, info)
            return sum(info.file_size for _, info in files)
    except NotUnpacked:
        raise
    except (BadZipFile, EOFError, ValueError, lzma.LZMAError, struct.error, zlib.error) as error:
        raise NotUnpacked(f"is damaged ({error})") from None
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # it is the disk's
            raise
        raise NotUnpacked(f"is damaged ({error})") from None
    except NotImplementedError as error:
        raise NotUnpacked(f"cannot be unpacked here ({error})") from None


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


def _checked(members: Sequence[ZipInfo]) -> list[tuple[PurePosixPath, ZipInfo]]:
    """Return the files of a zip and the paths at which they belong. Raises NotUnpacked."""
    files: dict[PurePosixPath, ZipInfo] = {}
    for info in members:
        name = _name(info)
        inner = PurePosixPath(name)
        if wrong := "is in it twice" if inner in files else _wrong(info, name, inner):
            raise NotUnpacked(f"is not unpacked: {name[:100]!r} {wrong}")
        if not name.endswith("/"):
            files[inner] = info
    if clash := next((parent for inner in files for parent in inner.parents if parent in files), None):
        raise NotUnpacked(f"is not unpacked: {str(clash)[:100]!r} is a file and a folder")
    return list(files.items())


def _wrong(info: ZipInfo, name: str, inner: PurePosixPath) -> str:
    """Say why a member of a zip is not unpacked; "" for one that is."""
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if inner.is_absolute() or ".." in inner.parts or name[1:2] == ":":
        return "would lie outside of it"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link, or no plain file"
    if len(inner.parts) > DEEPEST:
        return f"lies more than {DEEPEST} folders deep"
    lengths = [len(part.encode("utf-8", "surrogatepass")) for part in inner.parts]
    if max(lengths, default=0) > LONGEST or sum(lengths) > LONGEST_PATH:
        return "has too long a name"
    return ""


def _check_room(files: Sequence[tuple[PurePosixPath, ZipInfo]], packed: int, folder: Path, most: int) -> None:
    """Raise NotUnpacked where a zip has more than is handed in, or than there is room for."""
    size = sum(info.file_size for _, info in files)  # more than this is never read of a file
    told = f"is not unpacked: it has {len(files):,} files of {size / 2**20:,.0f} MiB together"
    if len(files) > MOST_FILES or size > most or (size > FEW_BYTES and size > MOST_GROWTH * packed):
        raise NotUnpacked(f"{told}, more than anybody hands in")
    free = shutil.disk_usage(folder).free
    if size > free:
        raise NotUnpacked(
            f"{told}, and {folder.parent} has {free / 2**20:,.0f} MiB left (TMPDIR names another place)"
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
