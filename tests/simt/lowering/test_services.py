"""What the host does for a warp: calls of it, questions, and loops that give way until the answer is yes."""

from ptx_kernels import kernel, opcodes, shown

from simt.lowering.services import make_services
from simt.ptx import Register, Vector


def served(body, attributes=None):
    made = kernel(f"{body} ret;")
    made.cluster = attributes or made.cluster
    make_services(made)
    return made


INIT = "mbarrier.init.shared.b64 [%r9+8], 1;"


def test_a_kernel_without_such_instructions_stays():
    made = served("bar.sync 0; barrier.red.popc.u32 %r1, 0, %p1; bar.warp.sync -1;")
    assert not made.is_asynchronous
    assert opcodes(made.code) == ["bar.sync", "barrier.red.popc.u32", "bar.warp.sync", "ret"]


def test_a_call_of_the_host_has_plain_operands():
    made = served(INIT)
    address, call, _ = made.code
    assert made.is_asynchronous
    assert address.opcode == "add.s32" and [shown(o) for o in address.operands[1:]] == ["%r9", 8]
    assert call.opcode == "serve.mbarrier.init.shared.b64"
    assert [shown(o) for o in call.operands] == ["_", address.operands[0].name, 1]


def test_wide_addresses_and_variables():
    made = served(
        ".shared .align 8 .b64 bar; mbarrier.init.b64 [%rd9+8], 1; mbarrier.inval.shared.b64 [bar];"
    )
    assert opcodes(made.code) == [
        "add.s64",
        "serve.mbarrier.init.b64",
        "mov.b64",
        "serve.mbarrier.inval.shared.b64",
        "ret",
    ]


def test_a_result_is_kept_and_a_sink_is_none():
    made = served(
        "mbarrier.arrive.shared.b64 %rd1, [%r1]; mbarrier.arrive.shared.b64 _, [%r1];"
        "mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r1], %r2;"
    )
    assert [[shown(o) for o in i.operands] for i in made.code[:-1]] == [
        ["%rd1", "%r1"],
        ["_", "%r1"],
        ["%rd2", "%r1", "%r2"],
    ]


def test_a_wait_at_an_mbarrier_asks_twice():
    made = served("mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;")
    poll = "poll.mbarrier.try_wait.shared.b64"
    assert opcodes(made.code) == [poll, "bra", "yield", poll, "ret"]
    branch = made.code[1]
    assert branch.guard.register == Register("%p1") and not branch.guard.negated
    assert made.labels[branch.operands[0].name] == 4


def test_a_wait_under_a_guard_is_over_where_it_does_not_hold():
    made = served("@!%p2 mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;")
    poll, without, with_answer, *_ = made.code
    assert poll.guard.register == Register("%p2") and poll.guard.negated
    assert without.guard.register == Register("%p2") and not without.guard.negated
    assert with_answer.guard.register == Register("%p1")


def loops(made):
    """Return the awaited opcodes, after a check that each loop gives way until the answer is yes."""
    found = []
    for place, each in enumerate(made.code):
        if each.parts[0] != "await":
            continue
        done, gives_way, again = made.code[place + 1 : place + 4]
        first = each.operands[0].items[0] if isinstance(each.operands[0], Vector) else each.operands[0]
        assert done.guard.register == first and gives_way.parts == ("yield",)
        assert made.labels[done.operands[0].name] == place + 4
        assert again.guard is None and made.labels[again.operands[0].name] == place
        found.append(each.opcode)
    return found


def test_barriers_of_some_threads_are_served():
    made = served("bar.arrive 1, 64; bar.sync 2, 96;")
    arrivals = [i for i in made.code if i.opcode == "serve.bar.arrive"]
    assert [[shown(o) for o in i.operands[1:]] for i in arrivals] == [[1, 64, 0], [2, 96, 0]]
    assert loops(made) == ["await.bar.sync"]
    assert not any(i.is_barrier for i in made.code)


def test_all_barriers_are_served_beside_mbarriers():
    made = served(f"{INIT} bar.sync 0; barrier.red.popc.u32 %r1, 0, %p1; bar.red.and.pred %p2, 0, %p3;")
    assert loops(made) == ["await.bar.sync", "await.bar.popc", "await.bar.and"]
    votes = [i for i in made.code if i.opcode == "selp.u32"]
    assert [shown(i.operands[-1]) for i in votes] == ["%p1", "%p3"]
    results = [
        i.operands[0].items[1].name for i in made.code if i.opcode in ("await.bar.popc", "await.bar.and")
    ]
    assert results == ["%r1", "%p2"]


def test_barriers_of_a_cluster():
    made = served("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;")
    assert opcodes(made.code)[0] == "serve.cluster.arrive" and loops(made) == ["await.cluster.wait"]


def test_a_cluster_alone_has_its_barriers_served():
    assert loops(served("bar.sync 0;", (2, 1, 1))) == ["await.bar.sync"]
    assert loops(served("bar.sync 0;", (1, 1, 1))) == []


def test_groups_of_products():
    made = served("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;")
    assert opcodes(made.code)[0] == "serve.wgmma.commit_group.sync.aligned"
    assert loops(made) == ["await.wgmma.wait_group"]


def test_a_product_is_asynchronous_without_its_group_too():
    product = (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;"
    )
    assert served(product).is_asynchronous


def test_a_bulk_copy_has_flat_operands():
    made = served(
        """cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r1], [%rd1, {%r2, %r3}], [%r4+8];""".replace("bytes\n", "bytes ")
    )
    call = next(i for i in made.code if i.parts[0] == "serve")
    assert [shown(o) for o in call.operands[:5]] == ["_", "%r1", "%rd1", "%r2", "%r3"]
