"""Feedback that goes back: the students' pages in a zip that Moodle or Canvas takes, named as each asks for.

Moodle reads name_number_assignsubmission_file_… (mod/assign/feedback/file/importziplib.php), Canvas
name_user_attachment_… (infer_comment_context_from_filename in app/models/abstract_assignment.rb). Each page
has one student's name in it, and that student's alone.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from grader.model import Graded
from grader.pages import link

PAGE = "feedback.html"
MOODLE, CANVAS = "feedback-moodle.zip", "feedback-canvas.zip"
# Moodle divides a name at each _; the others are letters that a system does not take in a file's name.
_UNFIT = re.compile(r'[\x00-\x1f\x7f_/\\:*?"<>|]')


def write(out: Path, submissions: Iterable[Graded]) -> list[Path]:
    """Write a zip for Moodle and one for Canvas, if anything came from there, into the folder `out`."""
    names: dict[str, dict[str, Path]] = {MOODLE: {}, CANVAS: {}}
    for graded in submissions:
        page = out / link(graded.submission.student)
        names[MOODLE] |= dict.fromkeys(_for_moodle(graded), page)
        names[CANVAS] |= dict.fromkeys(_for_canvas(graded), page)
    written = []
    for zipped, files in names.items():
        path = out / zipped
        path.unlink(missing_ok=True)
        if files:
            part = path.with_name(f"{path.name}.part")
            with ZipFile(part, "w", ZIP_DEFLATED) as archive:
                for name, page in sorted(files.items()):
                    # a ZipInfo has the same time for all, so that the same pages give the same bytes
                    archive.writestr(ZipInfo(name), page.read_bytes(), ZIP_DEFLATED)
            part.replace(path)
            written.append(path)
    return written


def _for_moodle(graded: Graded) -> Iterator[str]:
    """Yield the name of a page for Moodle, if the submission has a participant's number."""
    identity = graded.submission.identity
    number = identity.get("Identifier", "").removeprefix("Participant ")
    if number.isdecimal():
        name = identity.get("Full name") or graded.submission.student
        shown = _UNFIT.sub(" ", name).strip(" .~")[:100] or "Participant"
        yield f"{shown}_{number}_assignsubmission_file_{PAGE}".encode("utf-8", "replace").decode()


def _for_canvas(graded: Graded) -> Iterator[str]:
    """Yield the name of a page for Canvas: that of the newest file of the submission, up to its number."""
    identity = graded.submission.identity
    user = identity.get("ID") or identity.get("Anonymous ID")
    if user:
        named = re.compile(rf"(.*?(?:^|_)(?:LATE_)?(?:anon_)?{re.escape(user)}_)([1-9][0-9]*)_.")
        found = [match for name in graded.submission.sent_as if (match := named.match(name))]
        if found:
            newest = max(found, key=lambda match: int(match[2]))
            yield f"{newest[1]}{newest[2]}_{PAGE}".encode("utf-8", "replace").decode()
