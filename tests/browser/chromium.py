"""Find a Chromium for the browser tests; run as a script, install one where there is none."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")

# No sandbox: containers run as root. The rest: no requests to the outside.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@cache
def find() -> str | None:
    """Path of the system's Chromium or Chrome, else of Playwright's; None if Playwright itself cannot run."""
    driver = subprocess.run([sys.executable, "-m", "playwright", "--version"], capture_output=True)
    if driver.returncode:
        return None
    for name in NAMES:
        if path := shutil.which(name):
            return path
    if MAC.exists():
        return str(MAC)
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def install() -> None:
    """Debian's packages as root, Playwright's download otherwise. Playwright's Node.js needs libatomic."""
    apt = ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", "chromium", "libatomic1"]
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"])  # a stale or unreachable extra source need not be fatal
        if subprocess.run(apt).returncode == 0:
            return
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"])


if __name__ == "__main__":
    if find() is None:
        print("No Chromium found for the browser test; installing one.")
        install()
        find.cache_clear()
    print(f"Chromium: {find() or 'none; the browser test cannot run'}")
