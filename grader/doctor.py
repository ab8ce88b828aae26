"""What `labkit doctor` says of the sandbox that submissions are graded in."""

import shutil
import subprocess
import sys
from pathlib import Path

from labkit import mend
from labkit.doctor.row import Absent


def sandbox() -> str:
    """Return the version of bubblewrap, after running Python in one of its sandboxes."""
    if not sys.platform.startswith("linux"):
        raise Absent("teachers grade on Linux, whose namespaces keep submissions apart")
    if not shutil.which("bwrap"):
        install = mend.system_package(apt="bubblewrap", dnf="bubblewrap", zypper="bubblewrap")
        raise Absent("bubblewrap is not installed: teachers need it to grade", install)
    try:
        from grader.sandbox import process  # imported here: it needs what only teachers have
    except ImportError as error:
        absent = f"{error.name} is not installed: teachers need it to grade"
        raise Absent(absent, mend.install("grade")) from error
    try:
        process.require(process.BUBBLEWRAP)
    except process.NoSandbox as error:
        raise Absent(str(error), _namespaces()) from error
    return subprocess.run(["bwrap", "--version"], capture_output=True, text=True).stdout.strip()


def _namespaces() -> str:
    """Return the command that lets bubblewrap make namespaces where a kernel setting forbids it."""
    if _setting("apparmor_restrict_unprivileged_userns") == "1":  # Ubuntu; since 25.04 it has the profile
        profile = "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict"
        return (
            f"sudo apt install apparmor-profiles && sudo cp {profile} /etc/apparmor.d/ && "
            "sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict"
        )
    if _setting("unprivileged_userns_clone") == "0":  # older Debian
        return "sudo sysctl kernel.unprivileged_userns_clone=1"
    return ""


def _setting(name: str) -> str:
    """Return a kernel setting; empty where there is none of that name."""
    path = Path("/proc/sys/kernel", name)
    return path.read_text().strip() if path.is_file() else ""


SANDBOX = "Sandbox (labkit grade)", sandbox
