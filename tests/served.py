"""A server that a test has started, asked over HTTP."""

import time
import urllib.request
from contextlib import suppress


def answer(url, process, seconds=240):
    """What an address answers, once it does: a server may tell it before it listens. None if it never
    does.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError):
            return urllib.request.urlopen(url, timeout=30)
        time.sleep(0.5)
    return None
