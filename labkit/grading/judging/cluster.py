"""Who grades: processes of this machine, or the workers of a Dask cluster.

These processes exchange pickles. On this machine they do so over TLS, with keys of their own, so that what a
submission runs cannot talk to them.
"""

import asyncio
import platform
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dask.config
from distributed import Client, LocalCluster, Security, Worker, WorkerPlugin
from distributed.comm import connect

from labkit import __version__

CONNECT_SECONDS = 20.0
WORKERS_SECONDS = 300.0  # a cluster's queue may take its time to give us workers
LOCAL = {
    "distributed.scheduler.allowed-failures": 0,  # the engine counts tries
    "distributed.scheduler.worker-saturation": 1.0,  # what waits for a worker does not die with it
    "distributed.worker.profile.enabled": False,
    # jsonschema would take seconds to make parsers of web addresses, which notebooks do not have.
    "distributed.worker.preload": ["import sys; sys.modules['rfc3987_syntax'] = None"],
    "distributed.scheduler.http.routes": [],
    "distributed.deploy.lost-worker-timeout": "365d",  # or who dies twice in 15 s is not started again
    "distributed.admin.log-length": 100,
    "distributed.admin.low-level-log-length": 100,
    "distributed.admin.system-monitor.log-length": 100,
    "distributed.admin.system-monitor.gil.enabled": False,
}
QUIET = 60  # a level of logging above all: the engine tells what happens to workers


class NoCluster(RuntimeError):
    """There are no workers that could grade; the message says why, and what to do."""


class Undisturbed(WorkerPlugin):
    """Ctrl-C in a terminal reaches all of its processes; what it means is for the grader to say."""

    def setup(self, worker: Worker) -> None:
        """Called by Dask on each worker. A handler, unlike SIG_IGN, is not handed down to other programs."""
        signal.signal(signal.SIGINT, lambda *_: None)


@contextmanager
def local(workers: int) -> Iterator[Client]:
    """So many processes of this machine."""
    with (
        dask.config.set(LOCAL),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},  # not 8787
            security=Security.temporary(),
            silence_logs=QUIET,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(Undisturbed())
        yield client


@contextmanager
def existing(scheduler: str) -> Iterator[Client]:
    """The workers of a scheduler that runs already, such as tcp://node7:8786. Raises NoCluster."""
    try:
        asyncio.run(_reach(scheduler))
    except (OSError, ValueError, TypeError) as error:  # TypeError: tls:// without a configured key
        why = str(error) or f"no answer in {CONNECT_SECONDS:g} s"
        raise NoCluster(
            f"The scheduler {scheduler} cannot be reached: {why}. "
            "Does it run (dask scheduler), and is this the address that it prints?"
        ) from None
    with Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False) as client:
        yield client


async def _reach(scheduler: str) -> None:
    """Connect and go. A client tries for ever where something else listens, and leaves threads behind."""
    secure = Security().get_connection_args("client")
    async with asyncio.timeout(CONNECT_SECONDS):
        comm = await connect(scheduler, timeout=CONNECT_SECONDS, **secure)
        await comm.close()


def ask(client: Client, question: Callable[[], str]) -> dict[str, str]:
    """What `question`, a function of labkit, answers on each worker, by the worker's address.

    Raises NoCluster where no worker comes in time, or one has another Python or labkit.
    """
    try:
        client.wait_for_workers(1, timeout=WORKERS_SECONDS)
    except TimeoutError:
        raise NoCluster(
            f"The scheduler has had no workers for {WORKERS_SECONDS:.0f} seconds. "
            "Start some with its address: dask worker tcp://…"
        ) from None
    python = platform.python_version_tuple()[:2]
    for address, told in client.sync(client._get_versions)["workers"].items():
        other = told["host"]["python"]
        if tuple(other.split(".")[:2]) != python:
            raise NoCluster(
                f"The worker {address} runs Python {other}, this is {'.'.join(python)}. "
                "They exchange pickles: have the same Python everywhere."
            )
    answers = client.run(_introduce, question, on_error="return")
    install = f"Install labkit {__version__} there as it is here, with its extra grade."
    for address, answer in answers.items():
        if isinstance(answer, Exception):
            raise NoCluster(f"The worker {address} has no labkit that grades: {answer!r}. {install}")
        if answer[0] != __version__:
            raise NoCluster(f"The worker {address} has labkit {answer[0]}, this is {__version__}. {install}")
    return {address: answer[1] for address, answer in answers.items()}


def _introduce(question: Callable[[], str]) -> tuple[str, str]:
    return __version__, question()
