"""Serve mbarriers. Reference: PTX ISA, "Parallel Synchronization and Communication: mbarrier"."""

from __future__ import annotations

from simt.asynchronous.cluster import Call, Cluster, Host, Mbarrier
from simt.common.limits import WARP

MOST_PENDING = (1 << 20) - 1  # of an mbarrier: arrivals, and bytes
PATIENCE = 1000  # looks by `test_wait`, which need not wait, until a warp counts as waiting


def init(host: Host, call: Call) -> None:
    """Serve `mbarrier.init [a], count`."""
    for lane in call.lanes:
        count, address = call.operand(1, lane), call.shared(0, lane)
        host.own(call, lane, address, 8)
        if not 1 <= count <= MOST_PENDING:
            message = f"an mbarrier takes 1 to {MOST_PENDING} arrivals per phase, not {count}"
            raise host.mistake(call, lane, "mbarrier", message)
        barrier = call.cluster.mbarriers[address] = Mbarrier(count, count)
        if host.watcher:
            host.watcher.init(call, lane, barrier)


def invalidate(host: Host, call: Call) -> None:
    """Serve `mbarrier.inval [a]`."""
    for lane in call.lanes:
        find(host, call, lane, call.shared(0, lane))
        del call.cluster.mbarriers[call.shared(0, lane)]


def arrive(host: Host, call: Call) -> None:
    """Serve `arrive` and `arrive_drop`, perhaps with `expect_tx`: the lanes arrive one after the other."""
    parts = call.instruction.parts
    has_amount = len(call.instruction.operands) > 2
    for lane in call.lanes:
        barrier = find(host, call, lane, call.shared(0, lane))
        amount = call.operand(1, lane) if has_amount else 1
        call.give(barrier.phase << 32 | barrier.pending, [lane])
        if "expect_tx" in parts:
            _expect(host, call, lane, barrier, amount)
            amount = 1
        if "arrive_drop" in parts:
            barrier.expected -= amount
        _arrive(host, call, lane, barrier, amount)


def arrive_after_copies(host: Host, call: Call) -> None:
    """Serve `cp.async.mbarrier.arrive`: the copies of each lane are complete already.

    Without `.noinc` the arrival is one that the mbarrier's count does not have, so nothing changes.
    """
    if "noinc" in call.instruction.parts:
        for lane in call.lanes:
            _arrive(host, call, lane, find(host, call, lane, call.shared(0, lane)), 1)


def expect_bytes(host: Host, call: Call) -> None:
    """Serve `mbarrier.expect_tx [a], bytes`."""
    for lane in call.lanes:
        barrier = find(host, call, lane, call.shared(0, lane))
        _expect(host, call, lane, barrier, call.operand(1, lane))


def complete_bytes(host: Host, call: Call) -> None:
    """Serve `mbarrier.complete_tx [a], bytes`."""
    for lane in call.lanes:
        bytes_came(host, call, lane, call.shared(0, lane), call.operand(1, lane))


def pending_count(_host: Host, call: Call) -> None:
    """Serve `mbarrier.pending_count n, state`."""
    for lane in call.lanes:
        call.give(call.operand(0, lane) & MOST_PENDING, [lane])


def test_wait(host: Host, call: Call) -> None:
    """Serve `mbarrier.test_wait`, which only asks: a warp may ask many times and do other work."""
    _look(host, call, PATIENCE)


def try_wait(host: Host, call: Call) -> None:
    """Serve `mbarrier.try_wait`, which waits."""
    _look(host, call, 1)


def bytes_came(host: Host, call: Call, lane: int, address: int, count: int) -> None:
    """Note that a copy has brought bytes for which the mbarrier at an address waits."""
    barrier = find(host, call, lane, address)
    barrier.tx -= count
    _progress(host, call.cluster, barrier)


def find(host: Host, call: Call, lane: int, address: int) -> Mbarrier:
    """Return the mbarrier at an address. Raises BarrierError if there is none."""
    barrier = call.cluster.mbarriers.get(address)
    if barrier is None:
        host.own(call, lane, address, 8)
        message = (
            f"{host.named(call, address, lane)} is no mbarrier: nothing has initialised it (mbarrier.init), "
            "or it was invalidated"
        )
        raise host.mistake(call, lane, "mbarrier", message)
    if host.watcher:
        host.watcher.uses(call, lane, address, barrier)
    return barrier


def _look(host: Host, call: Call, patience: int) -> None:
    """Answer whether a phase is complete: the one of a parity, or of a state that `arrive` gave."""
    waiting: tuple[int, Mbarrier, int] | None = None
    lanes = call.lanes[:1] if call.is_same(0) and call.is_same(1) else call.lanes
    for lane in lanes:
        address, asked = call.shared(0, lane), call.operand(1, lane)
        barrier = find(host, call, lane, address)
        phase = asked >> 32
        if "parity" in call.instruction.parts:
            phase = barrier.phase if (barrier.phase & 1) == (asked & 1) else barrier.phase - 1
        is_over = phase < barrier.phase
        call.give(is_over, range(WARP) if len(lanes) == 1 else [lane])
        if not is_over:
            waiting = lane, barrier, address
            continue
        call.cluster.seen[call.number, address] = phase
        if host.watcher:
            host.watcher.pass_(call, barrier, phase)
    if waiting:
        _wait(host, call, patience, *waiting)
    else:
        host.go_on(call)


def _wait(host: Host, call: Call, patience: int, lane: int, barrier: Mbarrier, address: int) -> None:
    """Have a warp wait for the phase that runs; what it lacks, and which it has not seen, tells why."""
    name, phase, seen = (
        host.named(call, address, lane),
        barrier.phase,
        call.cluster.seen.get((call.number, address), -1),
    )
    if seen < phase - 1:
        what = (
            f"waits for phase {phase} of {name} (parity {phase & 1}), which never completes, and has not "
            f"waited for phase {phase - 1} (parity {phase - 1 & 1}) before"
        )
        host.wait(call, what, 3, patience, "wrong parity")
        return
    tells = 2 * (barrier.tx != 0) + (0 < barrier.pending < barrier.expected)
    host.wait(call, f"a phase of {name} never completes: {_missing(barrier)}", tells, patience)


def _missing(barrier: Mbarrier) -> str:
    """Say what the phase of an mbarrier waits for."""
    missing = []
    if barrier.pending:
        missing.append(f"{barrier.pending} of {barrier.expected} arrivals are missing")
    if barrier.tx > 0:
        missing.append(f"{barrier.tx} bytes that it expects are missing (expect_tx)")
    if barrier.tx < 0:
        missing.append(f"copies have brought {-barrier.tx} bytes more than it expects (expect_tx)")
    return " and ".join(missing) or "the warp asks for a phase that has not begun"


def _expect(host: Host, call: Call, lane: int, barrier: Mbarrier, amount: int) -> None:
    barrier.tx += amount
    if barrier.tx > MOST_PENDING:
        message = (
            f"{host.named(call, call.shared(0, lane), lane)} expects {barrier.tx} bytes; a phase takes at "
            f"most {MOST_PENDING}"
        )
        raise host.mistake(call, lane, "mbarrier", message)


def _arrive(host: Host, call: Call, lane: int, barrier: Mbarrier, count: int) -> None:
    if count > barrier.pending:
        message = (
            f"{count} arrive at {host.named(call, call.shared(0, lane), lane)}, whose phase waits for "
            f"{barrier.pending} of {barrier.expected} arrivals: no phase takes more than mbarrier.init says"
        )
        raise host.mistake(call, lane, "mbarrier", message)
    barrier.pending -= count
    if host.watcher:
        host.watcher.arrive(call, barrier)
    _progress(host, call.cluster, barrier)


def _progress(host: Host, cluster: Cluster, barrier: Mbarrier) -> None:
    cluster.progress += 1
    if barrier.complete() and host.watcher:
        host.watcher.complete(cluster, barrier)
