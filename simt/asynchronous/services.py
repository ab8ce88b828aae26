"""Serve what a warp does asynchronously: mbarriers, barriers of some threads, clusters, bulk copies.

Generated code calls `Services` with the operands of an instruction (lowering/services.py). A copy is complete
at once. So a plain run never waits for data, only for other warps; whether a kernel waits as it must, a
checked run finds out (ordering.py).

A warp that cannot go on gives way. When all warps that have not ended wait, and nothing has happened since
each last looked, they would wait for ever: that is an error, which says what is missing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from simt.asynchronous import barriers, bulk_copies, mbarriers
from simt.asynchronous.cluster import Call, Cluster, Host
from simt.code import abi
from simt.common.errors import SimtError
from simt.ptx import Instruction

CALLBACK = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.c_uint32,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint64),
)
OWN = ("serve", "poll", "await")  # opcodes that lowering/services.py puts before others
Handler = Callable[[Host, Call], None]
HANDLERS: dict[tuple[str, ...], Handler] = {
    ("mbarrier", "init"): mbarriers.init,
    ("mbarrier", "inval"): mbarriers.invalidate,
    ("mbarrier", "arrive"): mbarriers.arrive,
    ("mbarrier", "arrive_drop"): mbarriers.arrive,
    ("mbarrier", "expect_tx"): mbarriers.expect_bytes,
    ("mbarrier", "complete_tx"): mbarriers.complete_bytes,
    ("mbarrier", "pending_count"): mbarriers.pending_count,
    ("mbarrier", "test_wait"): mbarriers.test_wait,
    ("mbarrier", "try_wait"): mbarriers.try_wait,
    ("bar", "arrive"): barriers.arrive,
    ("bar", "sync"): barriers.wait,
    ("bar", "popc"): barriers.wait,
    ("bar", "and"): barriers.wait,
    ("bar", "or"): barriers.wait,
    ("cluster", "arrive"): barriers.arrive_in_cluster,
    ("cluster", "wait"): barriers.wait_in_cluster,
    ("wgmma", "commit_group"): barriers.commit_products,
    ("wgmma", "wait_group"): barriers.wait_for_products,
    ("cp", "async", "mbarrier"): mbarriers.arrive_after_copies,
    ("cp", "async", "bulk"): bulk_copies.serve,
    ("cp", "reduce", "async"): bulk_copies.serve,
    ("st", "async"): bulk_copies.store_remotely,
    ("red", "async"): bulk_copies.store_remotely,
}


class Services:
    """Serves the calls of one launch. `error` is the first mistake, after which the launch ends.

    `workers` are the frames of each worker's warps, and `watched` serves what a checked run tells besides.
    """

    def __init__(
        self,
        host: Host,
        workers: Sequence[Sequence[abi.Frame]],
        watched: Handler | None = None,
    ) -> None:
        self.host, self.watched = host, watched
        self.error: BaseException | None = None
        self._agents: dict[int, tuple[Cluster, int, abi.Frame]] = {}
        for heads in workers:
            cluster = Cluster(heads)
            self._agents |= {ctypes.addressof(head): (cluster, i, head) for i, head in enumerate(heads)}
        self._handlers: dict[int, Handler] = {}
        self._callback = CALLBACK(self._serve)
        host.launch.serve = ctypes.cast(self._callback, ctypes.c_void_p)

    def _serve(self, frame, site, mask, operands, results) -> None:  # type: ignore[no-untyped-def]
        """Serve a call; no error may leave it, as the caller is machine code."""
        if self.error:
            return
        try:
            reads_registers, site = site < 0, max(site, ~site)
            instruction = self.host.kernel.code[site]
            call = Call(instruction, site, self._agents[frame], mask, operands, results)
            cluster, first = call.cluster, call.cluster.heads[0]
            if cluster.place != (place := (first.x, first.y, first.z)):
                self._begin(cluster, place)
            if reads_registers:
                assert self.host.watcher is not None
                self.host.watcher.read_registers(self.host, call)
                return
            handler = self._handlers.get(site) or self._handlers.setdefault(site, self._handler(instruction))
            handler(self.host, call)
        except BaseException as error:
            self.error = error
            self.host.launch.stop = 1

    def _begin(self, cluster: Cluster, place: tuple[int, int, int]) -> None:
        """Start a cluster with nothing of the one before."""
        cluster.__dict__.update(Cluster(cluster.heads, place).__dict__)
        if self.host.watcher:
            self.host.watcher.begin(cluster)

    def _handler(self, instruction: Instruction) -> Handler:
        """Return what serves an instruction. Raises SimtError for one that is not known."""
        if instruction.parts[0] not in OWN:
            assert self.watched is not None
            return self.watched
        parts = instruction.parts[1:]
        found = HANDLERS.get(parts[:3]) or HANDLERS.get(parts[:2])
        if found is None:
            opcode, line = ".".join(parts), instruction.line
            raise SimtError(f"line {line}: the simulator does not know the PTX instruction `{opcode}`")
        return found
