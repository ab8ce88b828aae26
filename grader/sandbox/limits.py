"""The limits of a sandbox are what the answers in it may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What the answers in one kernel may take, and a submission.

    Seconds of a cell, of judging one answer, and of a submission per lab that it answers; bytes of memory of
    all processes together, of files, and of all that the kernel shows; processes and threads at the same
    time, and open files of a process. `hidden` are folders that no answer sees, wherever they lie.
    """

    cell_seconds: float = 60
    answer_seconds: float = 120
    lab_seconds: float = 400
    memory_bytes: int = 4 * 2**30
    disk_bytes: int = 2**29
    message_bytes: int = 2**22
    processes: int = 512
    open_files: int = 256
    hidden: tuple[str, ...] = ()


LIMITS = Limits()
