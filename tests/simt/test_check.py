"""What `kernel.check` finds, judged by a model of the rule in plain Python and by kernels that
each make one point.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import simt
from simt.compiler.nvrtc import parameter_types
from simt.counters.banks import bank_conflicts
from simt.sanitizer.element_types import mismatch
from simt.sanitizer.quick import Stretch, plan
from simt.sanitizer.shadow import PLANES, SEVERAL, STAMP_STEP
from simt.sanitizer.shadow_memory import LAST_STAMP, MOST_KEPT, ShadowMemory


def kernel(source, name="f", **options):
    return simt.RawModule(code=source, **options).get_function(name)


def ints(*shape):
    return np.zeros(shape, np.int32)


def floats(*shape):
    return np.zeros(shape, np.float32)


def kinds(findings):
    return sorted({(finding.tool, finding.kind, finding.line) for finding in findings})


# --- random programs and a model of the rule ---------------------------------------------------------------

STEPS, BLOCKS, THREADS, WORDS = 4, 2, 64, 132
# What all threads may do together in a step: the memory, the word in CUDA C++ and of thread t in Python, and
# how many words from there on are read at once
PATTERNS = [
    ("s", "shift + t", lambda t, shift: shift + t, 1),
    ("s", "shift + 2 * t", lambda t, shift: shift + 2 * t, 1),
    ("s", "shift", lambda t, shift: shift, 1),
    ("s", "shift + t / 4", lambda t, shift: shift + t // 4, 1),
    ("s", "(shift + 5 * t) % 64", lambda t, shift: (shift + 5 * t) % 64, 1),
    ("s", "(shift + t) % 64", lambda t, shift: (shift + t) % 64, 3),
    ("s", "shift + t", lambda t, shift: shift + t, 3),
    ("g", "shift + t", lambda t, shift: shift + t, 1),
    ("g", "shift + t % 32", lambda t, shift: shift + t % 32, 1),
    ("g", "(shift + 3 * t) % 64", lambda t, shift: (shift + 3 * t) % 64, 1),
    ("g", "shift + t", lambda t, shift: shift + t, 2),
]
NOTHING, SYNCWARP, BARRIER = 0, 1, 2  # at the end of a step


def _step(k: int) -> str:
    """Step k of the program; the comments tell what a line does."""
    text = f"""
    op = ops[{k} * N + id]; word = words[{k} * N + id]; value = same ? 5 : {k} * N + id + 1;
    if (op == 1) sum += s[word]; // {k} r s
    if (op == 2) s[word] = value; // {k} w s
    if (op == 3) sum += g[word]; // {k} r g
    if (op == 4) g[word] = value; // {k} w g
    op = together[{k}]; shift = shifts[{k}];
    """
    for number, (space, index, _, count) in enumerate(PATTERNS):
        words = " + ".join(f"{space}[{index} + {i}]" for i in range(count))
        text += f"""if (op == {2 * number + 1}) sum += {words}; // {k} r {space}
    if (op == {2 * number + 2}) {space}[{index}] = value; // {k} w {space}
    """
    return f"{text}if (syncs[{k}] == 1) __syncwarp();\n    if (syncs[{k}] == 2) __syncthreads();\n"


PROGRAM = f"""extern "C" __global__ void f(const int* ops, const int* words, const int* together,
        const int* shifts, const int* syncs, int* g, int* out, int same) {{
    __shared__ int s[{WORDS}];
    const int N = {BLOCKS * THREADS};
    int t = threadIdx.x, id = blockIdx.x * {THREADS} + t, sum = 0, op, word, value, shift;
    if (same == 7) {{ ((SMALLEST*)s)[t] = 0; ((SMALLEST*)g)[t] = 0; }} // never
{"".join(_step(k) for k in range(STEPS))}
    out[id] = sum;
}}"""
STEP_OF = {
    number: (int(found[1]), found[2] == "w", found[3])
    for number, line in enumerate(PROGRAM.splitlines(), 1)
    if (found := re.search(r"// (\d) ([rw]) ([sg])$", line))
}


@dataclass(frozen=True)
class Event:
    """One access of one thread; `time` counts barriers before it, `phase` __syncwarp calls since then."""

    step: int
    part: int  # 0: by the tables; 1: all together
    is_write: bool
    space: str
    word: int
    block: int
    thread: int
    time: int
    phase: int

    def is_ordered(self, other: "Event") -> bool:
        """Say whether the rule orders these two."""
        if self.block != other.block:
            return False
        if self.thread == other.thread or self.time != other.time:
            return True
        return self.thread // 32 == other.thread // 32 and self.phase != other.phase

    def is_before(self, other: "Event") -> bool:
        return self.is_ordered(other) and (self.step, self.part) < (other.step, other.part)


single_accesses = st.lists(
    st.tuples(
        st.integers(0, STEPS - 1),
        st.integers(0, BLOCKS - 1),
        st.sampled_from([0, 1, 5, 31, 32, 33, 63]),
        st.sampled_from([1, 1, 2, 3, 4]),
        st.integers(0, 4),
    ),
    max_size=10,
)
a_step = st.tuples(st.sampled_from([0, 0, *range(1, 2 * len(PATTERNS) + 1)]), st.integers(0, 3))
programs = st.tuples(
    single_accesses,
    st.lists(a_step, min_size=STEPS, max_size=STEPS),
    st.lists(st.sampled_from([NOTHING, SYNCWARP, BARRIER, BARRIER]), min_size=STEPS, max_size=STEPS),
)


def events_of(ops, words, steps, syncs):
    """Every access of a program, of shared memory a word for each block."""
    found, time, phase = [], 0, 0
    for k in range(STEPS):
        for block, thread in np.ndindex(BLOCKS, THREADS):
            place = block, thread, time, phase
            op, (pattern, shift) = ops[k, block, thread], steps[k]
            if op:
                space = "s" if op < 3 else "g"
                found.append(Event(k, 0, op % 2 == 0, space, int(words[k, block, thread]), *place))
            if pattern:
                space, _, index, count = PATTERNS[(pattern - 1) // 2]
                is_write, first = pattern % 2 == 0, index(thread, shift)
                words_read = range(first, first + (1 if is_write else count))
                found += [Event(k, 1, is_write, space, word, *place) for word in words_read]
        if syncs[k] == BARRIER:
            time, phase = time + 1, 0
        elif syncs[k] == SYNCWARP:
            phase += 1
    return found


def by_word(events):
    """The accesses of each word; shared memory is another in each block."""
    groups = defaultdict(list)
    for event in events:
        groups[event.space, event.block if event.space == "s" else None, event.word].append(event)
    return groups


def races(group, same):
    """Ordered pairs of accesses that race; `same`: all writes store one value, and two of them do not
    race.
    """
    return [
        (a, b)
        for a, b in permutations(group, 2)
        if (a.is_write or b.is_write) and not (same and a.is_write and b.is_write) and not a.is_ordered(b)
    ]


@pytest.fixture(scope="module", params=["int", "char"])
def program(request):
    """The program, with a word of shadow for each 4 bytes or for each byte."""
    return kernel(PROGRAM, options=(f"-DSMALLEST={request.param}",))


def fixed(*accesses, together=(0, 0, 0, 0), syncs=(0, 0, 0, 0)):
    """A program to try in any case: a race that is missed unless all earlier readers are known."""
    return example((list(accesses), [(pattern, 0) for pattern in together], list(syncs)), False, False)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(programs, st.booleans(), st.booleans())
@fixed((0, 0, 0, 1, 0), (0, 0, 1, 1, 0), (1, 0, 1, 2, 0))  # lanes 0 and 1 read, then lane 1 writes
@fixed((0, 0, 0, 1, 0), (0, 0, 33, 1, 0), (1, 0, 33, 2, 0))  # warps 0 and 1 read, then warp 1 writes
@fixed((0, 0, 5, 3, 0), (1, 1, 5, 3, 0), (2, 1, 5, 4, 0))  # blocks 0 and 1 read, then block 1 writes
@fixed((1, 1, 5, 4, 5), together=(9, 0, 0, 0))  # the same, where all threads read together
@fixed((1, 0, 37, 2, 0), together=(5, 0, 0, 0))  # all threads read one word
@fixed((1, 0, 5, 2, 5), together=(1, 0, 0, 0), syncs=(1, 0, 0, 0))  # no race: its own reader
@fixed((2, 0, 6, 2, 5), together=(1, 1, 0, 0), syncs=(1, 0, 0, 0))  # the second read is not ordered
def test_random_programs(program, drawn, same, is_empty):
    """Findings are those of the model, line by line.

    The shadow knows only the last write and the last reads of a word, so of several races one is enough. Is
    none missed altogether? Take the race whose second access comes first. Were the first access no longer
    known, a write between the two would have replaced it; that write is ordered behind the first (or they
    would race, earlier) and before the second (or this race would be found), and then so are the two. With
    writes of one value this does not hold, since they may be unordered without a race: there, only words
    with one writing thread must be found. Of reads, the shadow knows whether there were several.
    """
    accesses, steps, syncs = drawn
    ops, words = ints(STEPS, BLOCKS, THREADS), ints(STEPS, BLOCKS, THREADS)
    for step, block, thread, op, word in accesses:
        ops[step, block, thread], words[step, block, thread] = op, word
    together, shifts = np.array(steps, np.int32).T.copy()
    g = simt.empty(WORDS, np.int32) if is_empty else ints(WORDS)
    args = ops, words, together, shifts, np.array(syncs, np.int32), g, ints(BLOCKS * THREADS), np.int32(same)
    findings = program.check(BLOCKS, THREADS, args)

    groups = by_word(events_of(ops, words, steps, syncs)).values()
    must = [
        pair
        for group in groups
        if not same or len({(e.block, e.thread) for e in group if e.is_write}) == 1
        for pair in races(group, same)
    ]
    found = [finding for finding in findings if finding.tool == "racecheck"]
    assert not must or found
    named = [(first, b) for group in groups for a, b in races(group, same) for first in alike(a, group)]
    possible = {(side(first), side(b), (b.block, 0, 0), (b.thread, 0, 0)) for first, b in named}
    for finding in found:
        sides = STEP_OF[finding.other_line], STEP_OF[finding.line]
        assert (*sides, finding.block, finding.thread) in possible, str(finding)
    in_race = {side(event) for pair in named for event in pair}
    check_unwritten(groups, in_race, findings, is_empty)
    assert {finding.tool for finding in findings} <= {"racecheck", "initcheck"}


def alike(access, group):
    """Accesses that a finding may name instead: of several reads in an interval, the last one is known."""
    if access.is_write:
        return [access]
    return [e for e in group if not e.is_write and (e.block, e.time) == (access.block, access.time)]


def side(event):
    """What the line of an access tells."""
    return event.step, event.is_write, event.space


def check_unwritten(groups, in_race, findings, is_empty):
    """Reads that no write comes before, in the lines that take part in no race."""
    reads = [
        (event, [other for other in group if other.is_write])
        for group in groups
        for event in group
        if not event.is_write and (is_empty or event.space == "s")
    ]
    never = {side(e) for e, writes in reads if not any(not e.is_ordered(w) or w.is_before(e) for w in writes)}
    maybe = {side(e) for e, writes in reads if not any(w.is_before(e) for w in writes)}
    found = {STEP_OF[finding.line] for finding in findings if finding.tool == "initcheck"}
    assert never - in_race <= found <= maybe


# --- what check takes and gives ----------------------------------------------------------------------------

MANY = """extern "C" __global__ void f(const int* in, int* out, int n) {
    __shared__ int s[64];
    __shared__ int never[4];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = in[i];
    int other = s[63 - t];
    __syncthreads();
    out[i] = other + s[t] - s[t];
    if (t < n) never[t % 4] = n;
    if (t == 3) out[i] += never[t];
}"""
MANY_KINDS = [
    ("initcheck", "uninitialised shared read", 10),
    ("memcheck", "out of bounds", 8),
    ("memcheck", "out of bounds", 10),
    ("racecheck", "read after write", 6),
    ("racecheck", "write after read", 5),
]


def many():
    return np.arange(128, dtype=np.int32), ints(66), np.int32(0)


def test_many_mistakes_at_once():
    """The first 66 elements of `out` are right although the rest does not exist."""
    args = many()
    findings = kernel(MANY).check(2, 64, args)
    assert kinds(findings) == MANY_KINDS
    plain = ints(128)
    kernel(MANY)(2, 64, (args[0], plain, args[2]))
    np.testing.assert_array_equal(np.delete(args[1], 3), np.delete(plain[:66], 3))
    np.testing.assert_array_equal(args[0], np.arange(128))


@pytest.mark.parametrize("tools", [("memcheck",), ["racecheck", "initcheck"], (), ("synccheck",)])
def test_tools_choose_findings(tools):
    found = kernel(MANY).check(2, 64, many(), tools=tools)
    assert kinds(found) == [kind for kind in MANY_KINDS if kind[0] in tools]


@pytest.mark.parametrize("tools", ["memcheck", ("memcheck", "leakcheck"), "all"])
def test_unknown_tools(tools):
    args = many()
    with pytest.raises(ValueError, match="choose from memcheck, racecheck, initcheck, synccheck, as a list"):
        kernel(MANY).check(2, 64, args, tools=tools)
    assert not args[1].any()


def test_findings_are_the_same_each_time():
    check = kernel(MANY).check
    first = check(2, 64, many())
    assert all(check(2, 64, many()) == first for _ in range(5))
    assert kernel(MANY).check(2, 64, many()) == first


def test_outputs_are_those_of_a_call():
    source = """extern "C" __global__ void f(const float* a, const float* b, float* c, int n) {
        __shared__ float s[8][8];
        int i = blockIdx.x * 8 + threadIdx.x;
        float sum = 0;
        for (int k = 0; k < n; k += 8) {
            s[threadIdx.y][threadIdx.x] = k + threadIdx.x < n ? a[threadIdx.y * n + k + threadIdx.x] : 0;
            __syncthreads();
            for (int j = 0; j < 8 && k + j < n; j++) if (i < n) sum += s[threadIdx.y][j] * b[(k + j) * n + i];
            __syncthreads();
        }
        if (i < n) c[threadIdx.y * n + i] = sum;
    }"""
    rng = np.random.default_rng(1)
    a, b = (rng.random((19, 19), np.float32) for _ in range(2))
    before, checked, plain, product = (a.copy(), b.copy()), floats(19, 19), floats(19, 19), kernel(source)
    assert product.check(3, (8, 8), (a, b, checked, np.int32(19))) == []
    product(3, (8, 8), (a, b, plain, np.int32(19)))
    np.testing.assert_array_equal(checked, plain)
    np.testing.assert_allclose(checked[:8], (a @ b)[:8], rtol=1e-5)
    assert all(np.array_equal(x, y) for x, y in zip(before, (a, b), strict=True))


HEAD = 'extern "C" __global__ void f(int* g, int n) {\n    __shared__ int s[64];\n    int t = threadIdx.x;\n'


def body(text):
    """A kernel whose body begins in line 4."""
    return kernel(f"{HEAD}    {text}\n}}")


# what a kernel does, how many blocks; then tool, kind, line, other line, block and thread of the one finding
SINGLE = {
    "behind the end": (
        "if (t == 40) g[n + blockIdx.x * 2 - 1] = 1;", 2, "memcheck out of bounds", 4, 0, 1, 40,
    ),
    "misaligned": ("if (t == 2) *(long long*)(g + 1) = 1;", 1, "memcheck misaligned", 4, 0, 0, 2),
    "write after write": (
        "if (t == 5)\ng[0] = 1;\n__syncwarp();\nif (t == 33)\ng[0] = 2;",
        1, "racecheck write after write", 8, 5, 0, 33,
    ),
    "read after write": (
        "if (t == 5)\ns[n - 57] = n;\nif (t == 33)\ng[t] = s[7];",
        1, "racecheck read after write", 7, 5, 0, 33,
    ),
    "write after read": (
        "s[t] = 0;\n__syncthreads();\nif (t == 5)\ng[0] = s[7];\nif (t == 33)\ns[7] = 1;",
        1, "racecheck write after read", 9, 7, 0, 33,
    ),
    "other block": ("if (t == 60 + blockIdx.x) g[3] = t;", 2, "racecheck write after write", 4, 4, 1, 61),
    "never written": (
        "if (t < 2) s[t] = n;\nif (t == 17) g[0] = s[t + 1];",
        1, "initcheck uninitialised shared read", 5, 0, 0, 17,
    ),
    "lanes at a barrier": (
        "if (t >= 32)\nreturn;\n__syncthreads();\ng[t] = 1;",
        1, "synccheck divergent barrier", 6, 0, 0, 32,
    ),
    "some lanes of a warp at a barrier": (
        "if (t >= 40)\nreturn;\n__syncthreads();\ng[t] = 1;",
        1, "synccheck divergent barrier", 6, 0, 0, 40,
    ),
    "mask": ("if (t < 4) g[t] = __shfl_sync(3, t, 0);", 1, "synccheck invalid mask", 4, 0, 0, 2),
    "assert": ("if (t == 6) assert(n == 0);", 1, "memcheck assert", 4, 0, 0, 6),
    "trap": ("if (t == 6) __trap();", 1, "memcheck trap", 4, 0, 0, 6),
    "endless": ("while (*(volatile int*)g == 0) ;", 1, "timeout time limit", 4, 0, 0, None),
}  # fmt: skip


@pytest.mark.parametrize("case", SINGLE.values(), ids=SINGLE)
def test_each_kind_names_its_place(case):
    text, blocks, what, line, other_line, block, thread = case
    found = body(text).check(blocks, 64, (ints(64), np.int32(64)), timeout=0.3)
    assert [f"{finding.tool} {finding.kind}" for finding in found] == [what]
    assert (found[0].line, found[0].other_line, found[0].block) == (line, other_line, (block, 0, 0))
    assert thread is None or found[0].thread == (thread, 0, 0)
    assert found[0].source and f"line {line}: " in str(found[0])
    if other_line and blocks == 1:
        assert "thread (5, 0, 0)" in found[0].message  # who made the other access


# --- what is not a mistake ---------------------------------------------------------------------------------


def test_a_barrier_that_no_thread_skips_is_right():
    """Some could have returned before it."""
    assert (
        body("if (t >= n)\nreturn;\n__syncthreads();\ng[t] = 1;").check(1, 64, (ints(64), np.int32(64))) == []
    )


SIGNATURE = 'extern "C" __global__ void f(const float* in, float* partial, float* out, int n)'
CLEAN = {
    "the last block adds up": """__device__ unsigned arrived;
    KERNEL {
        __shared__ float s[64]; __shared__ bool is_last;
        int t = threadIdx.x, i = blockIdx.x * 64 + t;
        s[t] = i < n ? in[i] : 0;
        __syncthreads();
        for (int step = 32; step > 0; step /= 2) {
            if (t < step) s[t] += s[t + step];
            __syncthreads();
        }
        if (t == 0) {
            *(volatile float*)(partial + blockIdx.x) = s[0];
            __threadfence();
            is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
        }
        __syncthreads();
        if (is_last && t == 0) {
            float sum = 0;
            for (int b = 0; b < gridDim.x; b++) sum += *(volatile float*)(partial + b);
            out[0] = sum;
        }
    }""",
    "the last block, no volatile": """__device__ unsigned arrived;
    KERNEL {
        int t = threadIdx.x;
        __shared__ bool is_last;
        if (t == 0) {
            float sum = 0;
            for (int i = blockIdx.x * 64; i < (blockIdx.x + 1) * 64 && i < n; i++) sum += in[i];
            partial[blockIdx.x] = sum;
            __threadfence();
            is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
        }
        __syncthreads();
        if (is_last && t == 0) {
            __threadfence();
            float sum = 0;
            for (int b = 0; b < gridDim.x; b++) sum += partial[b];
            out[0] = sum;
        }
    }""",
    "a lock around each block's sum": """__device__ int lock;
    KERNEL {
        if (threadIdx.x == 0) {
            float sum = 0;
            for (int i = blockIdx.x * 64; i < (blockIdx.x + 1) * 64 && i < n; i++) sum += in[i];
            while (atomicCAS(&lock, 0, 1) != 0) ;
            __threadfence();
            out[0] += sum;
            __threadfence();
            atomicExch(&lock, 0);
        }
    }""",
    "compare and swap": """KERNEL {
        int i = blockIdx.x * 64 + threadIdx.x, *place = (int*)out, old = *place, seen;
        if (i < n) do {
            seen = old;
            old = atomicCAS(place, seen, __float_as_int(__int_as_float(seen) + in[i]));
        } while (old != seen);
    }""",
    "atomic sums": """KERNEL {
        __shared__ float s;
        if (threadIdx.x == 0) s = 0;
        __syncthreads();
        int i = blockIdx.x * 64 + threadIdx.x;
        if (i < n) atomicAdd(&s, in[i]);
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(out, s);
    }""",
    "all write and read one value": """KERNEL {
        __shared__ float s[2];
        s[threadIdx.x < 40] = n; s[threadIdx.x >= 40] = n;
        __syncthreads();
        partial[3] = 7; partial[blockIdx.x] = s[0] + s[1];
        out[0] = n * (n - 1) / 2;
    }""",
    "warps by themselves": """KERNEL {
        __shared__ float s[64];
        int t = threadIdx.x, lane = t % 32, i = blockIdx.x * 64 + t;
        float x = i < n ? in[i] : 0;
        for (int step = 16; step > 0; step /= 2) {
            s[t] = x;
            __syncwarp();
            x += s[t ^ step];
            __syncwarp();
        }
        if (lane == 0) atomicAdd(out, x);
    }""",
    "a volatile flag": """KERNEL {
        volatile float* flag = partial;
        if (threadIdx.x == blockIdx.x) *flag = 1;
        if (*flag >= 0) out[0] = n * (n - 1) / 2;
    }""",
}


@pytest.mark.parametrize("source", CLEAN.values(), ids=CLEAN)
def test_no_finding(source):
    """Sums of whole numbers, exact in any order."""
    source = source.replace("KERNEL", SIGNATURE)
    out, n = floats(1), 180
    assert kernel(source).check(3, 64, (np.arange(n, dtype=np.float32), floats(4), out, np.int32(n))) == []
    assert out[0] == n * (n - 1) / 2


WRONG_AFTER_ALL = {
    "no fence": ("the last block, no volatile", "__threadfence();", ""),
    "no atomic": ("the last block, no volatile", "atomicInc(&arrived, gridDim.x - 1)", "blockIdx.x"),
    "no lock": ("a lock around each block's sum", "while (atomicCAS(&lock, 0, 1) != 0) ;", ""),
    "a plain sum": ("atomic sums", "atomicAdd(out, s)", "*out += s"),
    "another value": ("all write and read one value", "s[threadIdx.x >= 40] = n", "s[threadIdx.x % 2] = -n"),
    "no __syncwarp": ("warps by themselves", "__syncwarp();", ""),
    "no flag": ("a volatile flag", "volatile float*", "float*"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_AFTER_ALL.values(), ids=WRONG_AFTER_ALL)
def test_the_same_without_what_makes_it_right(case):
    name, text, instead = case
    assert text in CLEAN[name]
    args = np.arange(180, dtype=np.float32), floats(4), floats(1), np.int32(180)
    source = CLEAN[name].replace("KERNEL", SIGNATURE).replace(text, instead)
    found = kernel(source).check(3, 64, args)
    assert {finding.tool for finding in found} == {"racecheck"}


# --- memory ------------------------------------------------------------------------------------------------

SHIFT = """extern "C" __global__ void f(const TYPE* in, TYPE* out, int n) {
    int i = threadIdx.x;
    TYPE x = in[i];
    if (i < n) out[i] = x;
}"""


def test_one_array_as_two_arguments():
    shift = kernel(SHIFT.replace("TYPE", "int"))
    array = np.arange(80, dtype=np.int32)
    assert shift.check(1, 64, (array, array, np.int32(64))) == []
    assert shift.check(1, 64, (array[:64], array[16:], np.int32(64))) != []
    assert shift.check(1, 64, (array[16:], array[:64], np.int32(64))) != []
    assert shift.check(1, 64, (array[16:], array[:64], np.int32(16))) == []
    assert shift.check(1, 16, (array[:16], array[16:], np.int32(16))) == []


@pytest.mark.parametrize(
    "dtype, name", [("i1", "signed char"), ("i2", "short"), ("i4", "int"), ("i8", "long long")]
)
def test_neighbouring_elements(dtype, name):
    """Elements of one word are not one place; a wide access touches all of them."""
    source = """extern "C" __global__ void f(TYPE* g, int shift) {
        __shared__ TYPE s[96];
        int t = threadIdx.x;
        s[t] = t;
        if (t < 32) s[t + 64] = t;
        g[t] = t;
        __syncthreads();
        s[t] = t + 1; g[t] = t + 2;
        g[96 + t] = s[t + shift] + g[t + shift];
    }""".replace("TYPE", name)
    check = kernel(source).check
    assert check(1, 64, (np.zeros(200, dtype), np.int32(0))) == []
    lines = {finding.line for finding in check(1, 64, (np.zeros(200, dtype), np.int32(1)))}
    assert lines <= {8, 9} and lines


@pytest.mark.parametrize("wide", ["int2", "int4"])
def test_wide_accesses(wide):
    source = """extern "C" __global__ void f(WIDE* g, int* words, int first) {
        __shared__ __align__(16) int s[256];
        int t = threadIdx.x, n = sizeof(WIDE) / 4;
        s[t * n + first] = t;
        WIDE x = g[t];
        *(WIDE*)(s + (t ^ first) * n) = x;
        __syncthreads();
        words[t] = s[t];
    }""".replace("WIDE", wide)
    check, array = kernel(source).check, ints(256)
    assert check(1, 64, (array, ints(64), np.int32(0))) == []
    assert kinds(check(1, 64, (array, ints(64), np.int32(1)))) == [("racecheck", "write after write", 6)]
    found = check(1, 64, (array[:128], ints(64), np.int32(0)), tools=["memcheck"])
    assert {finding.kind for finding in found} == (set() if wide == "int2" else {"out of bounds"})


def test_generic_pointers():
    source = """extern "C" __global__ void f(int* g, int shared_too, int other) {
        __shared__ int s[64];
        int t = threadIdx.x, own[4] = {t, t, t, t};
        s[t] = t; g[t] = t;
        int* places[3] = {s, g, own};
        int* p = places[(t + shared_too) % 2];
        p[t] += 1;
        int sum = p[t ^ other] + places[2][t % 4];
        g[64 + t] = sum;
    }"""
    check = kernel(source).check
    assert check(1, 64, (ints(128), np.int32(0), np.int32(0))) == []
    found = check(1, 64, (ints(128), np.int32(1), np.int32(2)))
    assert {finding.tool for finding in found} == {"racecheck"} and {f.line for f in found} <= {7, 8}


def test_local_arrays():
    source = """extern "C" __global__ void f(int* g, int filled) {
        int own[8], t = threadIdx.x;
        for (int i = 0; i < filled; i++) own[(i * 5 + t) % 8] = i;
        g[t] = own[g[64 + t] % 8];
    }"""
    check = kernel(source).check
    assert check(2, 64, (ints(128), np.int32(8))) == []
    for filled in (0, 7):
        found = check(1, 64, (ints(128), np.int32(filled)))
        assert kinds(found) == [("initcheck", "uninitialised local read", 4)]


# --- simt.empty --------------------------------------------------------------------------------------------

READS = """template <class T> __global__ void f(const T* in, T* out, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) out[i] = in[i];
}
template <class T> __global__ void fill(T* out, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) out[i] = T(3);
}"""
READERS = {
    "u1": "unsigned char",
    "i2": "short",
    "f4": "float",
    "i4": "int",
    "f8": "double",
    "i8": "long long",
    "c8": "float2",
}


def reader(dtype, name="f"):
    full = f"{name}<{READERS[dtype]}>"
    return kernel(READS, full, name_expressions=[full])


@pytest.mark.parametrize("shape", [1, 33, (5, 7), (2, 3, 11)])
@pytest.mark.parametrize("dtype", READERS)
def test_empty(dtype, shape):
    array = simt.empty(shape, dtype)
    assert array.shape == (shape if isinstance(shape, tuple) else (shape,)) and array.dtype == dtype
    assert array.flags.c_contiguous and array.flags.writeable
    out, n = np.zeros(array.shape, dtype), np.int32(array.size)
    check = reader(dtype).check
    assert kinds(check(2, 64, (array, out, n))) == [("initcheck", "uninitialised global read", 3)]
    array[...] = 1
    assert check(2, 64, (array, out, n)) == []
    assert (out == 1).all()


def test_empty_partly_written():
    array, out = simt.empty((4, 16)), floats(64)
    array[:2] = 5
    check = reader("f4").check
    assert check(1, 64, (array, out, np.int32(32))) == []
    assert check(1, 64, (array[:2], out, np.int32(32))) == []
    found = check(1, 64, (array, out, np.int32(34)))
    assert [finding.thread for finding in found] == [(32, 0, 0)]
    assert "`in[32]` (`in[2, 0]`)" in found[0].message
    assert len(check(1, 64, (array[2:], out, np.int32(1)))) == 1


def test_empty_written_by_kernels():
    array, n = simt.empty(100, "f4"), np.int32(99)
    reader("f4", "fill")(2, 64, (array, n))
    check = reader("f4").check
    assert check(2, 64, (array, floats(100), n)) == []
    assert len(check(2, 64, (array, floats(100), np.int32(100)))) == 1
    again = simt.empty(100, "f4")
    assert reader("f4", "fill").check(2, 64, (again, n)) == []
    assert check(2, 64, (again, floats(100), n)) == []
    assert check(2, 64, (floats(100), again, np.int32(100))) == []


def test_empty_without_elements_and_of_numpy_sizes():
    assert simt.empty(0).size == 0
    assert simt.empty(np.int64(3), np.float64).shape == (3,)
    assert simt.empty((3, 0, 2), np.int8).shape == (3, 0, 2)
    assert np.isnan(simt.empty((3, 3))).all()


def test_memory_of_an_empty_array_that_is_gone():
    """The same values elsewhere are no finding."""
    for _ in range(50):
        simt.empty(64)
    poison = simt.empty(64).copy()
    assert reader("f4").check(1, 64, (poison, floats(64), np.int32(64))) == []


# --- one check after another -------------------------------------------------------------------------------

EXCHANGE = """extern "C" __global__ void f(const TYPE* in, TYPE* out, int barrier) {
    __shared__ TYPE s[256];
    int t = threadIdx.x, n = blockDim.x;
    if (barrier != 2 || t > 0) s[t] = in[blockIdx.x * n + t];
    if (barrier) __syncthreads();
    out[blockIdx.x * n + t] = s[n - 1 - t];
}"""


def test_checks_do_not_remember_each_other():
    """Shadow memory goes from launch to launch, with other shapes, other kernels and other sizes of
    elements.
    """
    checks = {dtype: kernel(EXCHANGE.replace("TYPE", READERS[dtype])).check for dtype in ("u1", "i4", "i8")}
    rng = np.random.default_rng(7)
    for _ in range(120):
        dtype, barrier = rng.choice(list(checks)), int(rng.choice([0, 1, 1, 2]))
        grid, block = int(rng.integers(1, 4)), int(rng.choice([64, 96, 200]))
        arrays = [np.zeros(grid * block, dtype) for _ in range(2)]
        found = checks[dtype](grid, block, (*arrays, np.int32(barrier)))
        wanted = ({"racecheck"}, set(), {"initcheck"})[barrier]
        assert {finding.tool for finding in found} == wanted, (dtype, barrier, grid, block)


def test_stamps_begin_anew(monkeypatch):
    """Close to the last stamp nothing is lost, and nothing from before is found behind it."""
    check = kernel(EXCHANGE.replace("TYPE", "int")).check
    memory = ShadowMemory()
    monkeypatch.setattr("simt.sanitizer.sanitizer._shadows", memory)
    for first in (LAST_STAMP - 200, LAST_STAMP, LAST_STAMP + 64):
        memory._first_stamp = first // STAMP_STEP * STAMP_STEP
        for barrier, wanted in ((1, set()), (0, {"racecheck"}), (2, {"initcheck"}), (1, set())):
            found = check(3, 64, (ints(192), ints(192), np.int32(barrier)))
            assert {finding.tool for finding in found} == wanted, (first, barrier)
    assert 0 < memory._first_stamp < LAST_STAMP


def test_other_blocks_are_told_close_to_the_last_stamp(monkeypatch):
    """Half of all stamps fit a signed number; a launch may go on beyond them."""
    check = body("g[0] = blockIdx.x;").check
    memory = ShadowMemory()
    monkeypatch.setattr("simt.sanitizer.sanitizer._shadows", memory)
    for before in range(6):
        memory._free.clear()
        memory._first_stamp = LAST_STAMP - before * STAMP_STEP
        (found,) = check(3, 1, (ints(1), np.int32(1)))
        assert "a thread of another block" in found.message and "nothing orders blocks" in found.message
        assert memory._first_stamp > 0


def test_a_loop_in_which_lanes_meet():
    """Each turn all lanes store one value, but another than in the turn before."""
    source = (
        HEAD
        + """#pragma unroll 1
        for (int i = 0; i < n; i++) s[(t + i) % 64] = i;
        __syncthreads();
        g[t] = s[t];
    }"""
    )
    check = kernel(source).check
    assert check(1, 64, (ints(64), np.int32(1))) == []
    assert kinds(check(1, 32, (ints(64), np.int32(2)))) == [("racecheck", "write after write", 5)]
    # lane 1 alone in the first turn; in the second both, lane 0 first
    check = kernel(source.replace("s[(t + i) % 64] = i", "if (t < 2 && t + i > 0) s[0] = i")).check
    assert check(1, 32, (ints(64), np.int32(1)), tools=["racecheck"]) == []
    found = check(1, 32, (ints(64), np.int32(2)), tools=["racecheck"])
    assert kinds(found) == [("racecheck", "write after write", 5)]


# --- parts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "offsets, group, size, granule, is_store, runs",
    [
        ([4 * i for i in range(32)], 32, 4, 4, True, ((0, tuple(range(32)), tuple(range(32))),)),
        ([0] * 32, 32, 4, 4, False, ((0, (0,), (SEVERAL,)),)),
        ([0] * 32, 32, 4, 4, True, None),  # lanes meet: their values matter
        ([4 * (i // 16) for i in range(32)], 32, 4, 4, False, ((0, (0, 1), (SEVERAL, SEVERAL)),)),
        ([0, 128] * 16, 32, 4, 4, False, ((0, (0,), (SEVERAL,)), (0, (32,), (SEVERAL,)))),
        ([4 * i for i in range(32)], 1, 4, 4, False, None),  # a base a lane
        ([4 * i for i in range(32)], 16, 4, 4, True, None),  # two bases may meet
        (
            [4 * i for i in range(16)] * 2, 16, 4, 4, False,
            ((0, tuple(range(16)), tuple(range(16))), (1, tuple(range(16)), tuple(range(16, 32)))),
        ),
        ([8 * i for i in range(32)], 32, 8, 4, True,
            ((0, tuple(range(64)), tuple(i // 2 for i in range(64))),)),
        ([2 * i for i in range(32)], 32, 2, 1, True,
            ((0, tuple(range(64)), tuple(i // 2 for i in range(64))),)),
        ([-4 * i for i in range(32)], 32, 4, 4, True,
            ((0, tuple(range(32)), tuple(range(31, -1, -1))),)),
        ([128 * i for i in range(32)], 32, 4, 4, True,
            ((0, tuple(range(0, 1024, 32)), tuple(range(32))),)),
    ],
)  # fmt: skip
def test_plan(offsets, group, size, granule, is_store, runs):
    found = plan([offsets], [0], group, size, granule, is_store)
    expected = runs and tuple(Stretch(base, words, lanes, (0,) * len(words)) for base, words, lanes in runs)
    assert found == expected


def test_plan_of_several_loads():
    neighbours = [4 * i for i in range(32)]
    (run,) = plan([neighbours, [each + 4 for each in neighbours]], [0, 7], 32, 4, 4, False)
    assert run.granules == tuple(range(33))
    assert run.lanes == (0, *[SEVERAL] * 31, 31)
    assert run.sites == (0, *[7] * 32)
    rows = [[each + 4 * 40 * row for each in neighbours] for row in range(20)]
    assert [run.granules[0] for run in plan(rows, range(20), 32, 4, 4, False)] == list(range(0, 800, 40))
    pairs = [[160 * lane + 4 * row for lane in range(32)] for row in range(2)]
    (run,) = plan(pairs, range(2), 32, 4, 4, False)  # 32 short runs
    assert run.granules == tuple(40 * lane + row for lane in range(32) for row in range(2))


BETWEEN_LOADS = {
    "a store": ("s[t] = a;", {("write after read", 5, 4), ("read after write", 6, 5)}),
    "__syncwarp": ("__syncwarp();", {("write after read", 7, 6)}),
}


@pytest.mark.parametrize("between", BETWEEN_LOADS)
def test_loads_that_share_a_base_are_noted_in_their_turn(between):
    text, races = BETWEEN_LOADS[between]
    last = "" if between == "a store" else "s[t] = a + c;"
    source = f"""extern "C" __global__ void f(int* out) {{
    __shared__ int s[40]; int t = threadIdx.x; s[t] = t; if (t < 8) s[32 + t] = 0;
    __syncthreads();
    int a = s[t + 1];
    {text}
    int c = s[t + 2];
    {last}
    out[t] = a + c;
}}"""
    found = kernel(source).check(1, 32, (ints(32),))
    assert {(each.kind, each.line, each.other_line) for each in found} == races


@pytest.mark.parametrize(
    "addresses, size, conflicts",
    [
        ([4 * i for i in range(32)], 4, 0),
        ([0] * 32, 4, 0),
        ([8 * i for i in range(32)], 4, 1),
        ([128 * i for i in range(32)], 4, 31),
        ([132 * i for i in range(32)], 4, 0),
        ([8 * i for i in range(32)], 8, 0),  # by half-warps
        ([16 * i for i in range(32)], 16, 0),  # by quarter-warps
        ([256 * i for i in range(32)], 8, 30),
        (list(range(32)), 1, 0),
        ([130 * i for i in range(32)], 2, 1),
        ([4 * (31 - i) for i in range(32)], 4, 0),
    ],
)  # fmt: skip
def test_bank_conflicts(addresses, size, conflicts):
    assert bank_conflicts(addresses, size) == conflicts


@pytest.mark.parametrize(
    "dtype, declared, wanted",
    [
        ("f4", "const float *", None),
        ("f8", "const float *", "np.float32"),
        ("f4", "double *__restrict__", "np.float64"),
        ("i4", "float *", "np.float32"),
        ("u4", "int *", None),
        ("i8", "const int *", "np.int32"),
        ("i4", "unsigned long long *", "np.int64"),
        ("f4", "float4 *", None),
        ("f8", "const float4 *", "np.float32"),
        ("c8", "float2 *", None),
        ("f2", "__half *", None),
        ("u2", "__nv_bfloat16 *", None),
        ("f4", "half2 *", "np.float16"),
        ("u1", "float *", None),
        ("bfloat16", "__nv_bfloat16 *", None),
        ("bfloat16", "const __half *", "np.float16"),
        ("f2", "const __nv_bfloat162 *", "ml_dtypes.bfloat16"),
        ("bfloat16", "const float *", "np.float32"),
        ("float8_e4m3fn", "const __nv_fp8_e4m3 *", None),
        ("float8_e5m2", "const __nv_fp8_e4m3 *", "ml_dtypes.float8_e4m3fn"),
        ("float8_e4m3fn", "const __half *", "np.float16"),
        ("f2", "const __nv_fp8_e4m3 *", "ml_dtypes.float8_e4m3fn"),
        ("u1", "const __nv_fp8_e4m3 *", None),
        ("f8", "void *", None),
        ("f8", "const Particle *", None),
        ("f8", "float **", None),
        ("f8", "unsigned int *", "np.int32"),
    ],
)
def test_mismatch(dtype, declared, wanted):
    reason = mismatch(np.dtype(dtype), declared)
    assert (reason is None) == (wanted is None)
    assert wanted is None or (f"`{declared}`" in reason and reason.endswith(f"an array of {wanted}"))


@pytest.mark.parametrize(
    ("dtype", "declared", "why"),
    [
        ("f8", "float", "each element is read in pieces"),
        ("f4", "double", "elements are read together"),
        ("i4", "float", "the bits of integers are nonsense as floats"),
        ("f2", "__nv_bfloat16", "the bits of float16 are nonsense as bfloat16"),
    ],
)
def test_a_mismatch_says_what_comes_of_it(dtype, declared, why):
    assert f"the kernel declares `{declared}*`: {why}." in mismatch(np.dtype(dtype), f"{declared}*")


def test_wrong_dtypes_are_found_where_they_are_used():
    found = reader("f4").check(1, 64, (np.zeros(64), floats(64), np.int32(64)))
    assert [(f.tool, f.kind, f.line) for f in found] == [("memcheck", "wrong dtype", 3)]
    assert "(float64, shape (64,)) is not what" in found[0].message and "np.float32" in found[0].message


def test_parameter_types():
    source = """struct Pair { int a; float b; };
    namespace inner { __global__ void g(double* x) { *x = 1; } }
    extern "C" __global__ void f(const float* __restrict__ in, float4* out, int n, Pair p, const Pair* q) {
        out[0] = make_float4(in[0], n, p.a, q->b);
    }
    template <class T, int N> __global__ void h(T (*x)[N], T** y) { **y = **x; }"""
    names = ["h<float, 3>"]
    types = parameter_types(source, [], names, "f")
    assert [type_.replace(" ", "").replace("__restrict__", "") for type_ in types] == [
        "constfloat*", "float4*", "int", "Pair", "constPair*",
    ]  # fmt: skip
    assert len(parameter_types(source, [], names, "h<float, 3>")) == 2
    assert parameter_types(source, [], names, "nobody") == []


def test_shadow_memory_is_lent_once_and_kept():
    memory = ShadowMemory()
    assert memory.begin() == STAMP_STEP
    first, second = memory.lend(400), memory.lend(400)
    assert abs(first - second) >= PLANES * 400
    memory.end(6400)
    assert memory.begin() == 6400 + STAMP_STEP
    assert {memory.lend(400), memory.lend(400)} == {first, second}
    assert memory.lend(400) not in (first, second)


def test_shadow_memory_is_let_go():
    memory = ShadowMemory()
    memory.begin()
    memory.lend(MOST_KEPT // PLANES + 100)
    memory.end(640)
    assert memory.begin() == STAMP_STEP and not memory._free
    memory.lend(64)
    memory.end(LAST_STAMP)
    assert memory.begin() == STAMP_STEP and not memory._free


def test_too_large_a_shadow_is_none():
    memory = ShadowMemory()
    memory.begin()
    assert memory.lend(1 << 50) == 0


# --- some of the blocks ------------------------------------------------------------------------------------


def test_only_the_wanted_blocks_run():
    kernel = body("if (t == 0) g[blockIdx.y * gridDim.x + blockIdx.x] = 1;")
    for blocks, ran in (
        ([7, 2], [2, 7]),
        (3, [0, 5, 11]),
        (1, [0]),
        (np.int64(3), [0, 5, 11]),
        (np.array([7, 2]), [2, 7]),
        (12, list(range(12))),
        (None, list(range(12))),
    ):
        g = ints(12)
        assert kernel.check((4, 3), 32, (g, np.int32(0)), blocks=blocks) == []
        assert np.flatnonzero(g).tolist() == ran


def test_findings_are_those_of_the_wanted_blocks():
    kernel = body("if (t == 0 && blockIdx.x > 4) g[blockIdx.x + n] = 1;")
    args = ints(10), np.int32(3)
    assert kernel.check(10, 32, args, blocks=[0, 4, 6]) == []
    (finding,) = kernel.check(10, 32, args, blocks=[0, 9, 4])
    assert (finding.kind, finding.block) == ("out of bounds", (9, 0, 0))


@pytest.mark.parametrize("blocks", [0, -1, [], [10], [3, -1]])
def test_blocks_that_the_grid_does_not_have(blocks):
    with pytest.raises(ValueError, match="choose at least one, from blocks 0 to 9 of the grid"):
        body("g[t] = n;").check(10, 1, (ints(1), np.int32(0)), blocks=blocks)


def test_a_time_limit_names_the_block():
    kernel = body("if (blockIdx.x + blockIdx.y == 3) while (*(volatile int*)g == 0) ;")
    (finding,) = kernel.check((2, 3), 32, (ints(1), np.int32(0)), timeout=0.2)
    assert (finding.tool, finding.block) == ("timeout", (1, 2, 0))
