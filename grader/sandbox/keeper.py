"""Run an engine's client, and remove its container when the grader is gone.

    python keeper.py GRADER REMOVE... -- RUN...

GRADER is a process. This imports nothing of labkit.
"""

import os
import subprocess
import sys
from contextlib import suppress

POLL_SECONDS = 0.1


def main(grader: int, remove: list[str], run: list[str]) -> int:
    """Run the client and return its exit code."""
    client = subprocess.Popen(run)
    while os.getppid() == grader:
        with suppress(subprocess.TimeoutExpired):
            return client.wait(POLL_SECONDS)
    client.kill()
    subprocess.run(remove, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return 1


if __name__ == "__main__":
    grader, *words = sys.argv[1:]
    at = words.index("--")
    sys.exit(main(int(grader), words[:at], words[at + 1 :]))
