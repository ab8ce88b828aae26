"""Serve the barriers of a block, of some of its threads, and of a cluster, and the waits of a warpgroup.

Reference: PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier.cluster";
"Asynchronous Warpgroup Level Matrix Instructions".
"""

from __future__ import annotations

from simt.asynchronous.cluster import Call, Host, Meeting
from simt.common.limits import WARP

WARPS = 4  # of a warpgroup


def arrive(host: Host, call: Call) -> None:
    """Serve an arrival at a barrier of the block: (number, threads or 0 for all, vote); give the round."""
    lane = call.lanes[0]
    number, threads = call.operand(0, lane), call.operand(1, lane)
    if threads % WARP:
        message = f"barrier {number} takes {threads} threads; choose a multiple of {WARP}"
        raise host.mistake(call, lane, "barrier", message)
    meeting = call.cluster.meetings.setdefault((call.head.rank, number), Meeting())
    call.give(meeting.rounds)
    meeting.voted += sum(call.operand(2, each) for each in call.lanes)
    _meet(host, call, meeting, threads or host.warps * WARP)


def wait(host: Host, call: Call) -> None:
    """Answer whether a barrier's round is complete, and what the votes come to: (number, round)."""
    number, round_ = call.operand(0, call.lanes[0]), call.operand(1, call.lanes[0])
    meeting = call.cluster.meetings[call.head.rank, number]
    if _passes(host, call, meeting, round_, f"barrier {number} of the block"):
        voted, voters = meeting.votes
        results = {"popc": voted, "and": voted == voters, "or": voted > 0}
        if (kind := call.instruction.parts[2]) in results:
            call.give(results[kind], number=1)


def arrive_in_cluster(host: Host, call: Call) -> None:
    """Serve `barrier.cluster.arrive`."""
    meeting = call.cluster.meetings.setdefault((-1, 0), Meeting())
    call.cluster.arrivals[call.number] = meeting.rounds
    _meet(host, call, meeting, WARP * host.warps * host.kernel.blocks_together)


def wait_in_cluster(host: Host, call: Call) -> None:
    """Answer whether the cluster's barrier is complete at which the warp has arrived."""
    meeting, round_ = call.cluster.meetings.get((-1, 0)), call.cluster.arrivals.get(call.number)
    if meeting is None or round_ is None:
        message = "barrier.cluster.wait without barrier.cluster.arrive before it"
        raise host.mistake(call, call.lanes[0], "barrier", message)
    _passes(host, call, meeting, round_, "the barrier of the cluster")


def commit_products(host: Host, call: Call) -> None:
    """Serve `wgmma.commit_group`."""
    groups = call.cluster.groups
    groups[call.number] = groups.get(call.number, 0) + 1
    call.cluster.progress += 1
    if host.watcher:
        host.watcher.commit_products(call)


def wait_for_products(host: Host, call: Call) -> None:
    """Answer whether at most n groups of a warp's products are incomplete: `wgmma.wait_group n`.

    The four warps of a warpgroup make a product together, so it is complete when all have issued it.
    """
    left, groups = call.operand(0, call.lanes[0]), call.cluster.groups
    needed = groups.get(call.number, 0) - left
    first = call.head.warp // WARPS * WARPS
    others = range(first, min(first + WARPS, host.warps))
    start = call.number - call.head.warp
    late = [warp for warp in others if groups.get(start + warp, 0) < needed]
    call.give(not late)
    if late:
        host.wait(call, f"the wgmma never completes: warp {late[0]} of its warpgroup has not issued it")
        return
    if host.watcher:
        host.watcher.wait_products(call, left, [start + warp for warp in others])
    host.go_on(call)


def _meet(host: Host, call: Call, meeting: Meeting, needed: int) -> None:
    """Note that threads arrive at a barrier; the last of `needed` complete a round."""
    meeting.arrived += host.arrived(call)
    call.cluster.progress += 1
    if host.watcher:
        host.watcher.arrive(call, meeting)
    if meeting.arrived >= needed:
        meeting.votes, meeting.voted = (meeting.voted, min(needed, host.threads)), 0
        meeting.arrived, meeting.rounds = 0, meeting.rounds + 1
        if host.watcher:
            host.watcher.complete(call.cluster, meeting)


def _passes(host: Host, call: Call, meeting: Meeting, round_: int, name: str) -> bool:
    """Answer whether a round of a barrier is over; if it is not, the warp waits."""
    is_over = meeting.rounds > round_
    call.give(is_over)
    if not is_over:
        host.wait(call, f"{name} never completes: {meeting.arrived} threads wait there")
        return False
    if host.watcher:
        host.watcher.pass_(call, meeting, round_)
    host.go_on(call)
    return True
