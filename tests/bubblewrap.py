"""Install bubblewrap for the tests of grading where there is none, and say whether it works."""

import os
import shutil
import subprocess

from grader.sandbox import process

if __name__ == "__main__":
    if not shutil.which("bwrap") and shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"])  # a stale or unreachable extra source need not be fatal
        subprocess.run(["apt-get", "install", "-qq", "--yes", "--no-install-recommends", "bubblewrap"])
    print(f"Isolation of submissions in the tests of grading: {process.best()}")
