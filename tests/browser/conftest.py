"""Browser tests need a Chromium: without one they are skipped, and in CI they fail."""

import os

import chromium
import lab
import pytest


@pytest.fixture(scope="session", autouse=True)
def a_chromium():
    if chromium.find() is None:
        reason = "no Chromium: install Debian's chromium, or run python tests/browser/chromium.py"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The folder that JupyterLab shows; tests copy notebooks into it."""
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="session")
def server(folder):
    with lab.jupyter_server(folder) as address:
        yield address


@pytest.fixture
def page(tmp_path):
    """An empty page; what it shows when the test ends is kept as last.png in the test's temporary folder."""
    with lab.browser_page() as page:
        yield page
        page.screenshot(path=tmp_path / "last.png")
