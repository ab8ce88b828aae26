"""Products of warpgroups: every type and layout of wgmma, against NumPy in float64.

Matrices are laid out here number by number, as the canonical layouts of the PTX ISA (9.7.15.5.1) have them.
An H200 gives the same results, bit for bit: `pytest -m gpu tests/simt/test_wgmma.py`.
"""

import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt
from simt.compiler.nvrtc import assemble
from simt.lowering.wgmma import misaligned, misfit, shared_bytes

MODES = {0: 0, 128: 1, 64: 2, 32: 3}  # of swizzling, by the bytes of a row of the pattern
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}


@dataclass(frozen=True)
class Layout:
    """Where a matrix lies: the width of a row of the swizzle pattern, and distances, in bytes."""

    swizzle: int
    is_k_major: bool
    leading: int
    stride: int
    start: int = 0

    def descriptor(self) -> int:
        fields = self.start >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32
        return fields | MODES[self.swizzle] << 62

    def place(self, row: int, k: int, size: float) -> int:
        """Return the byte of the number at (row, k): T is how many fill 16 bytes."""
        per = int(16 / size)
        if self.is_k_major and not self.swizzle:
            units = row % 8 * per * size + row // 8 * self.stride + k % per * size + k // per * self.leading
        elif self.is_k_major:
            units = row % 8 * self.swizzle + row // 8 * self.stride + k * size
        elif not self.swizzle:
            units = row % per * size + row // per * self.stride + k % 8 * 16 + k // 8 * self.leading
        else:
            wide = self.swizzle // 2  # 16-bit numbers in a row of the pattern
            units = row % wide * size + row // wide * self.leading
            units += k % 8 * self.swizzle + k // 8 * self.stride
        byte = self.start + int(units)
        if self.swizzle:  # bits 4 to 6 are combined with bits 7 to 9; the narrower modes take fewer
            bits = {128: 0b111, 64: 0b11, 32: 0b1}[self.swizzle]
            byte ^= (byte >> 7 & bits) << 4
        return byte


def layouts(swizzle: int, is_k_major: bool, groups: int, start: int = 0, pad: int = 0) -> Layout:
    """Return a layout without overlap for `groups` groups of 8 rows; `pad` more bytes between neighbours."""
    if is_k_major and swizzle:
        return Layout(swizzle, True, 16, 8 * swizzle + pad, start)
    if swizzle:  # first along K, then along M or N
        return Layout(swizzle, False, 16 * swizzle + 2 * pad, 8 * swizzle + pad, start)
    if is_k_major:
        return Layout(0, True, (128 + pad) * groups, 128 + pad, start)
    return Layout(0, False, 128 + pad, (128 + pad) * 2, start)


def number_bytes(values: np.ndarray, type_: str) -> np.ndarray:
    """Return the bytes of each number, in a last dimension; b1 as whole bytes along K."""
    if type_ == "b1":
        return np.packbits(values.astype(bool), axis=1, bitorder="little")[..., None]
    if type_ == "f16":
        bits = values.astype(np.float16)
    elif type_ in ("bf16", "tf32"):
        bits = values.astype(np.float32).view(np.uint32)
        bits = (bits >> 16).astype(np.uint16) if type_ == "bf16" else bits | 0x1FFF  # which tf32 ignores
    elif type_ in ("s8", "u8"):
        bits = values.astype(np.int8 if type_ == "s8" else np.uint8)
    else:
        codes = {float(value): code for code, value in reversed(list(enumerate(fp8(type_))))}
        bits = np.vectorize(codes.__getitem__)(values.astype(float)).astype(np.uint8)
    return bits[..., None].view(np.uint8)


@cache
def fp8(type_: str) -> tuple[float, ...]:
    """Return the value of each byte (OCP 8-bit floating point specification, 5.1)."""
    exponent_bits, bias = (4, 7) if type_ == "e4m3" else (5, 15)
    fraction_bits = 7 - exponent_bits
    values = []
    for code in range(256):
        sign = -1.0 if code & 0x80 else 1.0
        exponent, fraction = (code & 0x7F) >> fraction_bits, code & ((1 << fraction_bits) - 1)
        if type_ == "e4m3" and code & 0x7F == 0x7F:
            values.append(float("nan"))
        elif type_ == "e5m2" and exponent == 31:
            values.append(float("nan") if fraction else sign * float("inf"))
        elif exponent:
            values.append(sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias))
        else:
            values.append(sign * fraction / 2**fraction_bits * 2.0 ** (1 - bias))
    return tuple(values)


def lay_out(memory: np.ndarray, values: np.ndarray, type_: str, layout: Layout) -> None:
    """Write a matrix (rows or columns, k) into shared memory's image."""
    numbers = number_bytes(values, type_)
    size = numbers.shape[-1]
    for row, k in np.ndindex(*numbers.shape[:2]):
        place = layout.place(row, k, size)
        memory[place : place + size] = numbers[row, k]


def source(n: int, types: str, in_registers: bool = False, tail: str = "") -> str:
    """Return a kernel that copies `image` to shared memory, multiplies once and stores D's registers."""
    k = 256 // BITS[types.split(".")[2]]
    count = n // 4 if types.startswith(".f16") else n // 2
    d = ", ".join(f"%{i}" for i in range(count))
    results = ", ".join(f'"+r"(d[{i}])' for i in range(count))
    a = f"{{%{count}, %{count + 1}, %{count + 2}, %{count + 3}}}" if in_registers else f"%{count}"
    inputs = ", ".join(f'"r"(a[{i} * 128 + t])' for i in range(4)) if in_registers else '"l"(da + start)'
    b = count + (4 if in_registers else 1)
    return f"""
    extern "C" __global__ void f(const unsigned* image, int words, const unsigned* a, unsigned long long da,
                                 unsigned long long db, const unsigned* c, unsigned* out, int scale) {{
        extern __shared__ __align__(1024) unsigned shared[];
        int t = threadIdx.x, start = __cvta_generic_to_shared(shared) >> 4;
        for (int i = t; i < words; i += 128) shared[i] = image[i];
        unsigned d[{count}];
        for (int i = 0; i < {count}; i++) d[i] = c[i * 128 + t];
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{b + 1}, 0;\\n"
            "wgmma.mma_async.sync.aligned.m64n{n}k{k}{types} {{{d}}}, {a}, %{b}, p{tail};\\n}}"
            : {results} : {inputs}, "l"(db + start), "r"(scale));
        asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
        for (int i = 0; i < {count}; i++) out[i * 128 + t] = d[i];
    }}"""


@cache
def kernel(*how):
    made = simt.RawModule(code=source(*how)).get_function("f")
    made.max_dynamic_shared_size_bytes = 200 << 10
    return made


def in_fragments(values: np.ndarray, dtype: type) -> np.ndarray:
    """Return D (64, n) as words [register][thread]: register pairs have columns 2 t, 2 t + 1 of 8."""
    thread = np.arange(128)
    row = thread // 32 * 16 + thread % 32 // 4
    numbers = [
        values[row + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (thread % 4) + i % 2]
        for i in range(values.shape[1] // 2)
    ]
    stacked = np.stack(numbers).astype(dtype)
    if dtype is np.float16:
        stacked = np.ascontiguousarray(stacked.reshape(-1, 2, 128).transpose(0, 2, 1))
        return stacked.view(np.uint32)[..., 0]
    return stacked.view(np.uint32)


def a_in_registers(numbers: np.ndarray) -> np.ndarray:
    """Return A's bytes as words [register][thread]: 0 and 1 have the first 16 bytes of rows g and g + 8."""
    words = np.ascontiguousarray(numbers).reshape(64, 32).view(np.uint32)
    thread = np.arange(128)
    row = thread // 32 * 16 + thread % 32 // 4
    return np.stack([words[row + 8 * (i % 2), thread % 4 + 4 * (i // 2)] for i in range(4)])


def multiply(n, types, a, b, c, a_layout, b_layout, tail="", scale=1, b_start=0):
    """Return D's words for A (64, k), B (n, k) and C (64, n); `a_layout` None: A in registers."""
    _, d_type, a_type, b_type, *_ = types.split(".")
    memory = np.random.default_rng(1).integers(0, 256, 200 << 10).astype(np.uint8)
    if a_layout:
        lay_out(memory, a, a_type, a_layout)
    lay_out(memory, b, b_type, b_layout)
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[d_type]
    given = in_fragments(c, dtype)
    out = np.full_like(given, 0x7FC00000)
    fragments = np.zeros((4, 128), np.uint32) if a_layout else a_in_registers(number_bytes(a, a_type))
    words = memory.view(np.uint32)
    descriptors = [np.uint64(layout.descriptor() if layout else 0) for layout in (a_layout, b_layout)]
    args = (words, np.int32(words.size), fragments, *descriptors, given, out, np.int32(scale))
    kernel(n, types, a_layout is None, tail)(1, 128, args, shared_mem=memory.size)
    return out, dtype


def drawn(rng, shape, type_):
    low, high = {"b1": (0, 2), "u8": (0, 256), "s8": (-128, 128)}.get(type_, (-4, 5))
    return rng.integers(low, high, shape)


def check_product(n, types, a_layout, b_layout, tail="", sign=1, scale=1, seed=0):
    a_type, b_type = types.split(".")[2:4]
    rng, k = np.random.default_rng(seed), 256 // BITS[a_type]
    a, b = drawn(rng, (64, k), a_type), drawn(rng, (n, k), b_type)
    c = rng.integers(-50, 50, (64, n))
    out, dtype = multiply(n, types, a, b, c, a_layout, b_layout, tail, scale)
    exact = sign * (a.astype(float) @ b.astype(float).T) + (c if scale else 0)
    np.testing.assert_array_equal(out, in_fragments(exact, dtype))


FLOATS = (".f32.f16.f16", ".f16.f16.f16", ".f32.bf16.bf16")
OTHERS = (".f32.tf32.tf32", ".f32.e4m3.e5m2", ".f16.e5m2.e4m3")
INTEGERS = (".s32.s8.s8", ".s32.s8.u8", ".s32.u8.u8", ".s32.b1.b1.and.popc")
B_START = 96 << 10


@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize("types", [*FLOATS, *OTHERS, *INTEGERS])
def test_every_type(types, in_registers):
    tail = "" if types in INTEGERS else ", 1, 1" + (", 0" * (2 - in_registers) if types in FLOATS else "")
    a_layout = None if in_registers else layouts(64, True, 8)
    check_product(32, types, a_layout, layouts(128, True, 4, B_START), tail)


@pytest.mark.parametrize("n", [8, 16, 24, 40, 64, 96, 128, 192, 248, 256])
def test_every_width(n):
    check_product(n, ".f32.f16.f16", layouts(0, True, 8), layouts(32, True, n // 8, B_START), ", 1, 1, 0, 0")


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([0, 32, 64, 128]),
    st.sampled_from([0, 32, 64, 128]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from([40, 136]),
)
def test_every_layout_of_half_precision(a_swizzle, b_swizzle, a_k_major, b_k_major, part, pad, n):
    """Starts within a row of the swizzle pattern are those of later steps along K."""
    a_start, b_start = (
        32 * (part % max(1, swizzle // 32)) if k_major else 0
        for swizzle, k_major in ((a_swizzle, a_k_major), (b_swizzle, b_k_major))
    )
    a = layouts(a_swizzle, a_k_major, 8, a_start, pad * max(16, 8 * a_swizzle))
    b = layouts(b_swizzle, b_k_major, n // 8, B_START + b_start, pad * max(16, 8 * b_swizzle))
    tail = f", 1, 1, {int(not a_k_major)}, {int(not b_k_major)}"
    check_product(n, ".f32.f16.f16", a, b, tail, seed=part)


@pytest.mark.parametrize("tail, sign", [(", -1, 1, 0, 1", -1), (", 1, -1, 0, 1", -1), (", -1, -1, 0, 1", 1)])
@pytest.mark.parametrize("scale", [0, 1])
def test_signs_and_a_sum_that_begins_at_zero(tail, sign, scale):
    a, b = layouts(128, True, 8), layouts(64, False, 3, B_START)
    check_product(24, ".f32.bf16.bf16", a, b, tail, sign, scale)


def test_integers_saturate_where_they_are_told_to():
    a, b = np.full((64, 32), 127), np.full((8, 32), 127)
    c = np.full((64, 8), 2**31 - 5)
    where = layouts(32, True, 8), layouts(32, True, 1, B_START)
    for types, right in (
        (".s32.s8.s8", 2**31 - 5 + 32 * 127**2 - 2**32),
        (".s32.s8.s8.satfinite", 2**31 - 1),
    ):
        out, _ = multiply(8, types, a, b, c, *where)
        assert (out.view(np.int32) == right).all()


@pytest.mark.parametrize("type_", ["e4m3", "e5m2"])
@pytest.mark.parametrize("first", [0, 64, 128, 192])
def test_every_number_of_fp8(type_, first):
    """Each sum is one number of A, NaN and infinity among them."""
    numbers, one = np.zeros((64, 32, 1), np.uint8), np.zeros((8, 32))
    numbers[:, 5, 0], one[:, 5] = np.arange(first, first + 64), 1
    memory, layout = np.zeros(4096, np.uint8), layouts(0, True, 1)
    lay_out(memory, one, "e4m3", layout)
    out, nothing = np.full((4, 128), 7, np.float32), np.zeros((4, 128), np.uint32)
    args = memory, np.int32(1024), a_in_registers(numbers), np.uint64(0), np.uint64(layout.descriptor())
    kernel(8, f".f32.{type_}.e4m3", True, ", 1, 1")(
        1, 128, (*args, nothing, out, np.int32(1)), shared_mem=4096
    )
    right = np.repeat(np.array(fp8(type_)[first : first + 64])[:, None], 8, 1) + 0.0
    right = in_fragments(right, np.float32)
    right[np.isnan(right.view(np.float32))] = 0x7FFFFFFF  # as on an H200
    np.testing.assert_array_equal(out.view(np.uint32), right)


@pytest.mark.parametrize("types, unit", [(".f32.f16.f16", 2.0**-24), (".f16.f16.f16", 2.0**-11)])
def test_rounding_is_that_of_float32_sums(types, unit):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(64, 16)).astype(np.float16), rng.normal(size=(64, 16)).astype(np.float16)
    where = layouts(128, True, 8), layouts(128, True, 8, B_START)
    out, dtype = multiply(64, types, a, b, np.zeros((64, 64)), *where, ", 1, 1, 0, 0")
    exact, size = (x.astype(float) @ y.astype(float).T for x, y in ((a, b), (abs(a), abs(b))))
    # 16 roundings of partial sums, each half a step of the largest; then to half precision
    bound = 16 * 2.0**-24 * size + unit * abs(exact)
    assert (abs(out.view(dtype) - in_fragments_of(exact, dtype)) <= in_fragments_of(bound, dtype)).all()


def in_fragments_of(values: np.ndarray, dtype: type) -> np.ndarray:
    """Return float64 numbers in the places that `out.view(dtype)` has them."""
    index = in_fragments(np.arange(values.size).reshape(values.shape) % 2048, dtype).view(dtype).astype(int)
    upper = in_fragments(np.arange(values.size).reshape(values.shape) // 2048, dtype).view(dtype).astype(int)
    return values.reshape(-1)[index + 2048 * upper]


# ------------------------------------------------------------------------------------------------- the GPU's


@pytest.fixture
def on_gpu(gpu, monkeypatch, tmp_path):
    """Have the kernels run on the GPU."""

    def kernel(*how):
        path = tmp_path / "kernel.cubin"
        path.write_bytes(assemble(source(*how), (), (), "sm_90")[0])
        made = gpu.RawModule(path=str(path)).get_function("f")
        made.max_dynamic_shared_size_bytes = 200 << 10

        def launch(grid, block, args, shared_mem):
            there = [gpu.asarray(each) if isinstance(each, np.ndarray) else each for each in args]
            made((grid,), (block,), tuple(there), shared_mem=shared_mem)
            args[-2][...] = there[-2].get()

        return launch

    monkeypatch.setitem(globals(), "kernel", kernel)


@pytest.mark.gpu
@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize("types", [*FLOATS, *OTHERS, *INTEGERS])
def test_the_gpu_has_these_types(types, in_registers):
    test_every_type(types, in_registers)


@pytest.mark.gpu
@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize("is_k_major", [False, True])
@pytest.mark.parametrize("swizzle", MODES)
def test_the_gpu_has_these_layouts(swizzle, is_k_major):
    tail = f", 1, 1, 0, {int(not is_k_major)}"
    for part in range(max(1, swizzle // 32 * is_k_major)):
        b = layouts(swizzle, is_k_major, 17, B_START + 32 * part, pad=max(16, 8 * swizzle))
        check_product(136, ".f32.f16.f16", layouts(128, True, 8), b, tail)


@pytest.mark.gpu
@pytest.mark.parametrize("base", [0, 1, 3, 7])
@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_the_gpu_counts_rows_of_the_pattern_from_the_base_offset(on_gpu, swizzle, base):
    """Any numbers do: the products are those of the same bytes, wherever the pattern has them."""
    tail, layout = ", 1, 1, 0", Layout(swizzle, True, 16, 8 * swizzle, 1024 + swizzle)
    memory = np.random.default_rng(5).integers(-4, 5, 8192).astype(np.float16)
    a = np.random.default_rng(9).integers(-4, 5, (64, 16))
    descriptor = np.uint64(layout.descriptor() | base << 49)
    pieces = shared_bytes(instruction_of(40, ".f32.f16.f16", tail), "b", int(descriptor))
    numbers = pieces.reshape(5, 8, 2, 1) // 2 + np.arange(8)
    out, nothing = np.zeros((20, 128), np.float32), np.zeros((20, 128), np.uint32)
    args = memory, np.int32(4096), a_in_registers(number_bytes(a, "f16")), np.uint64(0), descriptor
    kernel(40, ".f32.f16.f16", True, tail)(1, 128, (*args, nothing, out, np.int32(1)), shared_mem=16384)
    exact = a.astype(float) @ memory[numbers].reshape(40, 16).astype(float).T
    np.testing.assert_array_equal(out, in_fragments(exact, np.float32).view(np.float32))


# ------------------------------------------------------------------------------------------------- mistakes


def wrong(b_layout, size=4096, scale=1):
    out = np.zeros((4, 128), np.uint32)
    nothing = np.zeros((4, 128), np.uint32)
    words = np.zeros(size // 4, np.uint32)
    args = words, np.int32(words.size), nothing, np.uint64(0), np.uint64(b_layout.descriptor())
    return kernel(8, ".f32.f16.f16", True, ", 1, 1, 0"), (*args, nothing, out, np.int32(scale)), size


@pytest.mark.parametrize("start", [4096 - 128, 8192])
def test_a_descriptor_beyond_shared_memory_is_an_error_with_its_line(start):
    f, args, size = wrong(Layout(0, True, 128, 256, start))
    line = 1 + next(i for i, text in enumerate(f.module.lines) if "setp" in text)  # where the asm begins
    message = (
        rf"line {line}: wgmma: the descriptor 0x\w+ of matrix B covers bytes {start} to {start + 255} of"
    )
    with pytest.raises(simt.SimtError, match=message):
        f(1, 128, args, shared_mem=size)
    (finding,) = f.check(1, 128, args, shared_mem=size)
    assert (finding.tool, finding.kind, finding.line) == ("memcheck", "descriptor", line)


def instruction_of(n, types, tail, in_registers=True):
    code = simt.RawModule(code=source(n, types, in_registers, tail)).get_function("f").parsed.code
    return next(each for each in code if each.parts[:2] == ("wgmma", "mma_async"))


@pytest.mark.parametrize(
    "layout, tail, message",
    [
        (Layout(128, True, 0, 1024, 1024 + 32), ", 1, 1, 0", ""),
        (Layout(128, True, 0, 0, 0), ", 1, 1, 0", "stride byte offset 0"),
        (Layout(0, True, 0, 256, 0), ", 1, 1, 0", "leading byte offset 0"),
        (Layout(128, False, 0, 1024, 0), ", 1, 1, 1", ""),  # 16 columns fit into one pattern
        (Layout(16 + 16, False, 0, 256, 0), ", 1, 1, 1", ""),
        (Layout(0, False, 128, 0, 0), ", 1, 1, 1", "stride byte offset 0"),
        (Layout(128, True, 0, 1024, 63 << 10), ", 1, 1, 0", "bytes 64512 to 66559 .* the block has 65536"),
    ],
)
def test_what_is_wrong_with_a_descriptor(layout, tail, message):
    instruction = instruction_of(16, ".f32.f16.f16", tail)
    found = misfit(instruction, "b", layout.descriptor(), 64 << 10)
    assert re.search(message, found) if message else found == ""


@pytest.mark.parametrize(
    "layout, message",
    [
        (Layout(128, True, 0, 1024, 1024 + 32), ""),
        (Layout(128, True, 0, 1024, 1024 + 128), "in row 1 of its swizzle pattern .* to 1024 bytes"),
        (Layout(32, True, 0, 256, 128), "in row 4 of its swizzle pattern .* to 256 bytes"),
        (Layout(0, True, 0, 256, 128), ""),
    ],
)
def test_where_a_swizzle_pattern_begins(layout, message):
    found = misaligned("b", layout.descriptor())
    assert re.search(message, found) if message else found == ""


def test_bits_without_a_meaning_in_a_descriptor():
    instruction = instruction_of(16, ".f32.f16.f16", ", 1, 1, 0")
    descriptor = Layout(128, True, 0, 1024).descriptor() | 1 << 15
    assert "sets the bits 0x8000, which mean nothing" in misfit(instruction, "b", descriptor, 64 << 10)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(list(MODES)), st.booleans(), st.integers(0, 3))
def test_which_bytes_a_descriptor_covers(swizzle, is_k_major, part):
    start = 1024 + 32 * (part % max(1, swizzle // 32)) * is_k_major
    layout = layouts(swizzle, is_k_major, 8, start)
    instruction = instruction_of(16, ".f32.f16.f16", f", 1, 1, {int(not is_k_major)}, 0", in_registers=False)
    pieces = shared_bytes(instruction, "a", layout.descriptor())
    assert pieces.shape == (8, 16)
    for warp in range(4):
        found = (pieces[2 * warp : 2 * warp + 2].reshape(-1, 1) + np.arange(16)).reshape(-1)
        numbers = {layout.place(row, k, 2) for row in range(16 * warp, 16 * warp + 16) for k in range(16)}
        assert set(found.tolist()) == {number + i for number in numbers for i in range(2)}


def test_d_may_be_unset_where_the_sum_begins_at_zero():
    text = source(8, ".f32.f16.f16", True, ", 1, 1, 0").replace("d[i] = c[i * 128 + t];", ";")
    f = simt.RawModule(code=text).get_function("f")
    for scale, findings in ((0, 0), (1, 1)):
        _, args, size = wrong(Layout(0, True, 128, 256), scale=scale)
        found = f.check(1, 128, args, shared_mem=size)
        assert {each.kind for each in found} == {"unset variable"} if findings else not found


# ------------------------------------------------------------------------------------------------ compiling


def test_sources_that_name_it_are_compiled_for_hopper_alone():
    f = kernel(64, ".f32.f16.f16", False, ", 1, 1, 0, 0")
    assert ".target sm_90a" in f.module.ptx
    assert f.num_regs >= 32 and f.resources_for("sm_90").registers == f.num_regs
    opcodes = [each.opcode for each in f.sass("H200").instructions]
    assert sum(each.startswith("HGMMA.64x64x16.F32") for each in opcodes) == 1
    plain = simt.RawModule(code='extern "C" __global__ void f(float* x) { x[0] = 1; }')
    assert re.search(r"\.target sm_90\s", plain.ptx)


def test_a_profile_of_a_warpgroup():
    f, args, size = wrong(Layout(0, True, 128, 256))
    profile = f.profile(1, 128, args, shared_mem=size)
    assert profile.metrics["launch__block_size"] == 128


@pytest.mark.parametrize(
    "opcode",
    [
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %0, %0, %0}, {%1, %1}, "
        "{%1, %1}, {%0, %0, %0, %0}, %1, 0x0",
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0, %0, %0, %0}, %2, %2, %1, 0, 1, 1, 1, 0, 0",
    ],
)
def test_sparse_products_are_refused_by_name(opcode):
    text = f"""extern "C" __global__ void f(float* x, unsigned y, unsigned long long z) {{
        asm volatile("{opcode};" : "+f"(x[0]) : "r"(y), "l"(z));
    }}"""
    with pytest.raises(simt.SimtError, match=r"^line 2: the simulator has no products of sparse matrices"):
        simt.RawModule(code=text)
