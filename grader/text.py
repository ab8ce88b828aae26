"""Text that others wrote, made fit to be shown, or to be a file's name: no control characters, not too long.

Whoever writes such a text into HTML or CSV still has to escape it: markup stays as it is.
"""

import hashlib
import re
import unicodedata
from pathlib import Path

# What a terminal takes as commands: colours and the like (CSI), titles and links (OSC), two-letter escapes.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\|$)|[@-Z\\-_])")
# Control characters but tab and \n, for no compiler counts lines by others; lone surrogates, which stand for
# bytes of a file's name that are no text; and marks that turn the direction of what follows.
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """Clean a text: line ends \\n, no terminal commands, and U+FFFD for what else cannot be shown."""
    return _UNFIT.sub(_UNKNOWN, _ESCAPES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, most: int = 200) -> str:
    """Return a text on one line, cut to `most` characters with … at the end."""
    # what is cut off need not be cleaned: it may be megabytes
    words = " ".join(clean(text[: 4 * most]).split())
    return words if len(words) <= most and len(text) <= 4 * most else words[: most - 1] + "…"


def block(text: str, lines: int, columns: int = 300) -> tuple[str, str]:
    """Return the first `lines` lines of a text, each cut to `columns` characters, and in a sentence what is
    left out.
    """
    shown = clean(text[: lines * columns]).expandtabs(4).split("\n")
    cut = [line if len(line) <= columns else line[: columns - 1] + "…" for line in shown[:lines]]
    is_whole = cut == shown and len(text) <= lines * columns
    left_out = f"Cut here: the whole text has {len(text):,} characters."
    return "\n".join(cut), "" if is_whole else left_out


def slug(student: str) -> str:
    """Return a file's name for a student, safe on every system; a hash of the whole name keeps different
    ones apart.
    """
    ascii_only = unicodedata.normalize("NFKD", student[:300]).encode("ascii", "ignore").decode()
    readable = re.sub(r"[^A-Za-z0-9]+", "_", ascii_only).strip("_")[:60]
    return (
        f"{readable or 'student'}-{hashlib.sha256(student.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file so that nobody ever finds half of it."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8", newline="\n")
    part.replace(path)
