"""The part of tests/mutants.py that runs inside pytest: which test covers which line, and which tests run.

pytest -p mutants_plugin --cover-into FOLDER tests/simt    # writes coverage and seconds of each test
pytest -p mutants_plugin --only-tests FILE tests/simt      # runs the tests in the JSON file, in its order
"""

import faulthandler
import json
import os
import shutil
import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import coverage
import psutil
import pytest

MEMORY, LOOKS = 8 << 30, 0.25  # bytes of a run and what it starts; seconds between two looks at it
LEFT_OUT = ("gpu", "slow")  # marks of tests that are not make test's
KEPT = ("ptx", "c", "zig")  # parts of the cache that are made by other compilers than labkit
IN_MEMORY = ("labkit.kernels", "labkit.kernels.in_c", "labkit.model.predicted")  # they keep kernels by name


def pytest_addoption(parser):
    parser.addoption("--cover-into", type=Path, help="the folder for the coverage of each test")
    parser.addoption("--only-tests", type=Path, help="a JSON file with the ids of the tests to run")


def pytest_configure(config):
    if folder := config.getoption("--cover-into"):
        config.pluginmanager.register(Cover(folder))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if file := config.getoption("--only-tests"):
        limits = json.loads(file.read_text())
        place = {id: place for place, id in enumerate(limits)}
        items[:] = sorted(
            (item for item in items if item.nodeid in place), key=lambda each: place[each.nodeid]
        )
        config.pluginmanager.register(Limit(limits))
    if config.getoption("--cover-into"):
        items[:] = [item for item in items if not any(map(item.get_closest_marker, LEFT_OUT))]


class Limit:
    """The seconds that each test may take, and the memory. A test without an end ends pytest."""

    def __init__(self, seconds):
        self.seconds = seconds
        threading.Thread(target=_end_beyond_memory, daemon=True).start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        faulthandler.dump_traceback_later(self.seconds[item.nodeid], exit=True)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()


def _end_beyond_memory():
    """End pytest when it uses too much memory. A limit of the system would stop AddressSanitizer, too: it
    reserves terabytes, and uses few of them.
    """
    this = psutil.Process()
    while True:
        used = 0
        for process in (this, *this.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                used += process.memory_info().rss
        if used > MEMORY:
            print(f"Timeout (memory): {used >> 20} MiB", flush=True)
            os._exit(1)
        time.sleep(LOOKS)


class Cover:
    """Coverage with the test as the context. Each test finds an empty cache: it compiles what it runs."""

    def __init__(self, folder):
        self.folder = folder
        self.seconds = defaultdict(float)
        self.shared = {}  # by test: the fixtures of its file that it shares with other tests
        self.coverage = coverage.Coverage(
            str(folder / "coverage"),
            include=[f"{Path.cwd()}/{name}/*" for name in ("simt", "labkit", "grader")],
            config_file=False,
        )
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        forget_kernels(item.module)
        known = item._fixtureinfo.name2fixturedefs.items()
        self.shared[item.nodeid] = [
            f"{each.baseid}::{name}"
            for name, those in known
            for each in those
            if each.scope != "function" and each.baseid.startswith(item.nodeid.partition("::")[0])
        ]
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        self.coverage.stop()
        self.coverage.save()
        told = {"seconds": self.seconds, "shared": self.shared}
        (self.folder / "tests.json").write_text(json.dumps(told))


def forget_kernels(test_module):
    """Empty the cache on disk, and those in memory that hold kernels: labkit's and the test module's."""
    cache = Path(os.environ["LABKIT_CACHE"])
    for folder in cache.iterdir() if cache.is_dir() else ():
        if folder.name not in KEPT:
            shutil.rmtree(folder, ignore_errors=True)
    for module in (test_module, *(sys.modules[name] for name in IN_MEMORY if name in sys.modules)):
        for each in vars(module).values():
            if getattr(each, "__module__", "") == module.__name__ and hasattr(each, "cache_clear"):
                each.cache_clear()
