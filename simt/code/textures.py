"""Emit fetches from textures, and the addresses of accesses to surfaces.

A handle is looked up in the launch's table, once for all lanes that have the same. Fetches follow the CUDA
C++ Programming Guide ("Texture Fetching"): a fraction between two texels has 8 bits, and so has a weight.
There are no mipmaps, so a level of detail and gradients change nothing. Each geometry has one function in a
module, which is made only where a kernel uses it.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from simt.analysis.lanes import VARYING
from simt.code import abi
from simt.code.abi import I32, I64, POINTER, Launch, Texture, Value, field, load_field
from simt.code.checked_access import LANES_64, counted_loop, defined_once, each_distinct, entry_slot, report
from simt.code.instructions import Kind, constant, half, intrinsic
from simt.code.vectors import broadcast, lanes_of, mask_of
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Instruction, Operand, Vector, unknown
from simt.texture import (
    FORMATS,
    GEOMETRIES,
    SURFACE,
    cudaAddressModeBorder,
    cudaAddressModeClamp,
    cudaAddressModeMirror,
    cudaAddressModeWrap,
)

LANES = ir.VectorType(I32, WARP)
FLOATS = ir.VectorType(ir.FloatType(), WARP)
DOUBLES = ir.VectorType(ir.DoubleType(), WARP)
CHANNELS = 4
FRACTION_BITS = 8
STEPS = 1 << FRACTION_BITS
ONE = 0x3F800000  # the bits of 1.0f
OUTSIDE = -1  # the index of a texel beyond the border
AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 2, "acube": 2}
SIZES = ("width", "height", "depth")
CORNERS_OF_GATHER = ((0, 1), (1, 1), (1, 0), (0, 0))  # x and y of the four texels, in the order of the result


def fetch(w: Warp, instruction: Instruction) -> None:
    """Emit `tex.2d.v4.f32.f32 {r, g, b, a}, texture, {x, y}`, or `tld4`, which gathers four texels."""
    parts = instruction.parts
    geometry = next((part for part in parts if part in AXES), None)
    component = "rgba".find(parts[1]) if parts[0] == "tld4" else None
    if geometry is None or len(instruction.operands) < 3 or (component is not None and geometry != "2d"):
        raise unknown(instruction)
    function = _fetch_function(w.function.module, geometry, parts[-1] == "f32", component)
    slot = _slot(w.b, ir.ArrayType(LANES, CHANNELS))
    _call(w, instruction, function, slot)
    for channel, register in enumerate(instruction.results):
        w.write(register, _read(w.b, slot, channel), VARYING, w.guard(instruction))


def locate(w: Warp, instruction: Instruction) -> None:
    """Emit `suaddr.2d.trap.4 {address, inside}, surface, {x, y}`: see lowering/surfaces.py."""
    _, geometry, mode, size = instruction.parts
    if geometry not in AXES:
        raise unknown(instruction)
    function = _locate_function(w.function.module, geometry, mode, int(size))
    slot = _slot(w.b, LANES_64)
    inside = _call(w, instruction, function, slot)
    address, predicate = instruction.results
    w.write(address, w.b.load(slot, typ=LANES_64), VARYING, w.guard(instruction))
    w.write(predicate, lanes_of(w.b, inside), VARYING, w.guard(instruction))


def _call(w: Warp, instruction: Instruction, function: ir.Function, result: Value) -> Value:
    """Call a function with the handles and coordinates of the lanes."""
    b, (_, handle, coordinates, *_) = w.b, instruction.operands
    slot = _slot(b, ir.ArrayType(LANES, CHANNELS))
    items: Sequence[Operand] = coordinates.items if isinstance(coordinates, Vector) else (coordinates,)
    for i, item in enumerate(items):
        b.store(w.value(item, Kind("b32"), WARP), _place(b, slot, i))
    handles, mask, site = w.value(handle, Kind("b64"), WARP), w.active(instruction), w.site(instruction)
    return b.call(function, [w.launch, w.frame, handles, slot, result, mask, site])


ARGUMENTS = [POINTER, POINTER, LANES_64, POINTER, POINTER, I32, I32]


def _fetch_function(module: ir.Module, geometry: str, is_real: bool, component: int | None) -> ir.Function:
    """Define void fetch(launch, frame, handles, ptr coordinates, ptr texel, i32 mask, i32 site)."""
    gathers = "" if component is None else f"_gather_{component}"
    name = f"texture_{geometry}{'' if is_real else '_integer'}{gathers}"

    def emit(function: ir.Function) -> None:
        launch, frame, handles, coordinates, texel, mask, site = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        numbers = [b.load(_place(b, coordinates, i), typ=LANES) for i in range(CHANNELS)]
        kinds = [GEOMETRIES.index(geometry)]
        if geometry == "1d" and not is_real:
            kinds.append(GEOMETRIES.index("linear"))
        with each_distinct(b, handles, mask) as handle:
            same = _same(b, handles, handle, mask)
            record = b.call(_find_function(module), [launch, frame, handle, _bits(kinds), same, site])
            with b.if_then(b.icmp_unsigned("!=", record, ir.Constant(I64, 0))):
                unit = _Unit(b, b.inttoptr(record, POINTER))
                values = unit.read(geometry, numbers, is_real, component)
                for channel, value in enumerate(values):
                    old = b.load(_place(b, texel, channel), typ=LANES)
                    b.store(b.select(lanes_of(b, same), value, old), _place(b, texel, channel))
        b.ret_void()

    return defined_once(module, name, ir.FunctionType(ir.VoidType(), ARGUMENTS), emit)


def _locate_function(module: ir.Module, geometry: str, mode: str, size: int) -> ir.Function:
    """Define i32 locate(launch, frame, handles, ptr coordinates, ptr addresses, i32 mask, i32 site).

    It returns the lanes whose `size` bytes lie within the surface.
    """
    kinds = [SURFACE + GEOMETRIES.index(geometry)]
    if geometry == "a2d":  # so are the faces of cubemaps
        kinds += [SURFACE + GEOMETRIES.index(name) for name in ("cube", "acube")]

    def emit(function: ir.Function) -> None:
        launch, frame, handles, coordinates, addresses, mask, site = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        numbers = [b.load(_place(b, coordinates, i), typ=LANES) for i in range(CHANNELS)]
        if geometry[0] == "a":
            numbers = [
                *numbers[1 : 1 + AXES[geometry]],
                *[constant(numbers[0], 0)] * (2 - AXES[geometry]),
                numbers[0],
            ]
        else:
            numbers = [*numbers[: AXES[geometry]], *[constant(numbers[0], 0)] * (3 - AXES[geometry])]
        found = entry_slot(b, I32)
        b.store(abi.ZERO, found)
        with each_distinct(b, handles, mask) as handle:
            same = _same(b, handles, handle, mask)
            number = b.call(_find_function(module), [launch, frame, handle, _bits(kinds), same, site])
            with b.if_then(b.icmp_unsigned("!=", number, ir.Constant(I64, 0))):
                record = b.inttoptr(number, POINTER)
                width, texel, *others = (
                    load_field(b, Texture, record, name)
                    for name in ("width", "texel_bytes", "height", "depth")
                )
                ends = [
                    b.sub(b.mul(width, texel), ir.Constant(I32, size)),
                    *(_less_one(b, n) for n in others),
                ]
                last = [broadcast(b, end, WARP) for end in ends]
                zero = constant(numbers[0], 0)
                clamped = [
                    intrinsic(b, "smax", LANES, intrinsic(b, "smin", LANES, x, end), zero)
                    for x, end in zip(numbers, last, strict=True)
                ]
                aligned = b.and_(clamped[0], constant(zero, -size))
                fits = b.icmp_unsigned("==", b.and_(numbers[0], constant(zero, size - 1)), zero)
                inside = mask_of(b, fits)
                if mode != "clamp":
                    for x, kept in zip(numbers, clamped, strict=True):
                        inside = b.and_(inside, mask_of(b, b.icmp_unsigned("==", x, kept)))
                wrong = b.and_(same, b.not_(mask_of(b, fits) if mode != "trap" else inside))
                with b.if_then(b.icmp_unsigned("!=", wrong, abi.ZERO), likely=False):
                    lane = intrinsic(b, "cttz", I32, wrong, ir.Constant(abi.I1, 1))
                    x, y, z = (b.zext(b.extract_element(n, lane), I64) for n in numbers)
                    place = b.or_(x, b.shl(y, ir.Constant(I64, 32)))
                    others_ = {"error_other": b.trunc(handle, I32), "error_depth": z}
                    report(b, launch, frame, abi.BAD_SURFACE_PLACE, site, wrong, place, **others_)
                address = _address(b, record, [aligned, *clamped[1:]], ir.Constant(I32, 1))
                old = b.load(addresses, typ=LANES_64)
                b.store(b.select(lanes_of(b, same), address, old), addresses)
                b.store(b.or_(b.load(found, typ=I32), b.and_(inside, same)), found)
        b.ret(b.load(found, typ=I32))

    return defined_once(module, f"surface_{geometry}_{mode}_{size}", ir.FunctionType(I32, ARGUMENTS), emit)


def _find_function(module: ir.Module) -> ir.Function:
    """Define i64 find(launch, frame, i64 handle, i32 kinds, i32 lanes, i32 site).

    It returns the address of the handle's record, if it is of one of the `kinds`. Otherwise that is reported,
    which ends the launch, and it returns 0.
    """

    def emit(function: ir.Function) -> None:
        launch, frame, handle, kinds, lanes, site = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        with b.if_then(b.icmp_unsigned("<", handle, load_field(b, Launch, launch, "texture_count"))):
            table = load_field(b, Launch, launch, "textures")
            record = b.load(b.gep(table, [handle], source_etype=I64), typ=I64)
            with b.if_then(b.icmp_unsigned("!=", record, ir.Constant(I64, 0))):
                kind = load_field(b, Texture, b.inttoptr(record, POINTER), "kind")
                bit = b.and_(b.lshr(kinds, kind), ir.Constant(I32, 1))
                with b.if_then(b.icmp_unsigned("!=", bit, abi.ZERO)):
                    b.ret(record)
        report(b, launch, frame, abi.BAD_TEXTURE, site, lanes, handle)
        b.ret(ir.Constant(I64, 0))

    type_ = ir.FunctionType(I64, [POINTER, POINTER, I64, I32, I32, I32])
    return defined_once(module, "texture_find", type_, emit, is_cold=True)


@dataclass(frozen=True)
class _Axis:
    """Two neighbouring texels along an axis, and how far, in 256ths, it is from the first to the place."""

    indices: Sequence[Value]
    fraction: Value


class _Unit:
    """The texture unit, for one texture and the coordinates of all lanes."""

    def __init__(self, b: ir.IRBuilder, record: Value) -> None:
        self.b, self.record, self.module = b, record, b.module

    def read(
        self, geometry: str, numbers: Sequence[Value], is_real: bool, component: int | None
    ) -> list[Value]:
        """Return the bits of four channels: of a texel, of a mixture, or of four texels (`component`)."""
        b, layer, count = self.b, None, AXES[geometry]
        if geometry[0] == "a":
            layer, numbers = numbers[0], numbers[1:]
        if not is_real:
            modes = [self._field(f"mode_{axis}") for axis in range(count)]
            indices = [self._inside(x, axis, modes[axis]) for axis, x in enumerate(numbers[:count])]
            return self._texel(self._with_layer(indices, layer, None))
        reals = [b.fpext(b.bitcast(x, FLOATS), DOUBLES) for x in numbers]
        face = None
        if geometry in ("cube", "acube"):
            face, reals = self._face(reals)
        positions = [self._position(x, axis) for axis, x in enumerate(reals[:count])]
        if component is not None:
            axes = [self._between(u, axis) for axis, u in enumerate(positions)]
            corners = [[axes[i].indices[place[i]] for i in (0, 1)] for place in CORNERS_OF_GATHER]
            return [self._texel(self._with_layer(at, layer, face))[component] for at in corners]
        slots = [entry_slot(b, LANES) for _ in range(CHANNELS)]
        is_linear = b.icmp_unsigned("!=", self._field("is_linear"), abi.ZERO)
        with b.if_else(is_linear) as (linear, nearest):
            with linear:
                if count == 1:  # it is read at y = 0: half of a row above it, which may be the border
                    positions = [*positions, constant(positions[0], 0.0)]
                axes = [self._between(u, axis) for axis, u in enumerate(positions)]
                self._store(slots, self._mixture(axes, layer, face))
            with nearest:
                indices = [self._nearest(u, axis) for axis, u in enumerate(positions[:count])]
                self._store(slots, self._texel(self._with_layer(indices, layer, face)))
        return [b.load(slot, typ=LANES) for slot in slots]

    def _store(self, slots: Sequence[Value], values: Sequence[Value]) -> None:
        for slot, value in zip(slots, values, strict=True):
            self.b.store(value, slot)

    def _field(self, name: str) -> Value:
        return load_field(self.b, Texture, self.record, name)

    def _size(self, axis: int) -> Value:
        return self._field(SIZES[axis])

    def _position(self, x: Value, axis: int) -> Value:
        """Return a coordinate in texels; one that repeats is brought near 0 to size, where it is exact."""
        b, mode = self.b, self._field(f"mode_{axis}")
        periods = b.fsub(x, intrinsic(b, "floor", DOUBLES, x))
        half_x = b.fmul(x, constant(x, 0.5))
        pairs = b.fmul(b.fsub(half_x, intrinsic(b, "floor", DOUBLES, half_x)), constant(x, 2.0))
        repeated = x
        for value, which in ((periods, cudaAddressModeWrap), (pairs, cudaAddressModeMirror)):
            repeated = b.select(b.icmp_unsigned("==", mode, ir.Constant(I32, which)), value, repeated)
        size = broadcast(b, b.sitofp(self._size(axis), ir.DoubleType()), WARP)
        is_normalized = b.icmp_unsigned("!=", self._field("is_normalized"), abi.ZERO)
        return b.select(is_normalized, b.fmul(repeated, size), x)

    def _nearest(self, u: Value, axis: int) -> Value:
        index = _integer(self.b, intrinsic(self.b, "floor", DOUBLES, u))
        return self._inside(index, axis, self._field(f"mode_{axis}"))

    def _between(self, u: Value, axis: int) -> _Axis:
        """Return the two texels whose centres are on either side, with a fraction of 8 bits."""
        b, mode = self.b, self._field(f"mode_{axis}")
        # The centre of texel i is at i + 0.5.
        fixed = b.fadd(b.fmul(u, constant(u, float(STEPS))), constant(u, 0.5 - STEPS / 2))
        fixed = _integer(b, intrinsic(b, "floor", DOUBLES, fixed))
        first = b.ashr(fixed, constant(fixed, FRACTION_BITS))
        fraction = b.sitofp(b.and_(fixed, constant(fixed, STEPS - 1)), DOUBLES)
        both = (first, b.add(first, constant(first, 1)))
        # where the two texels are one, all of the weight is the first's
        last = broadcast(b, _less_one(b, self._size(axis)), WARP)
        is_one = b.icmp_unsigned(">=", first, last)
        is_clamped = b.icmp_unsigned("==", mode, ir.Constant(I32, cudaAddressModeClamp))
        is_one = b.and_(is_one, broadcast(b, is_clamped, WARP))
        fraction = b.select(is_one, constant(fraction, 0.0), fraction)
        return _Axis([self._inside(index, axis, mode) for index in both], fraction)

    def _inside(self, index: Value, axis: int, mode: Value) -> Value:
        return self.b.call(_address_function(self.module), [index, self._size(axis), mode])

    def _with_layer(self, indices: Sequence[Value], layer: Value | None, face: Value | None) -> list[Value]:
        """Return x, y and z of a texel; a layer beyond the last is the last."""
        b = self.b
        zero = constant(indices[0], 0)
        plane = zero if face is None else face
        if layer is not None:
            faces = ir.Constant(I32, 1 if face is None else 6)
            last = _less_one(b, b.sdiv(self._field("depth"), faces))
            kept = intrinsic(b, "umin", LANES, layer, broadcast(b, last, WARP))  # so is one below 0
            plane = b.add(plane, b.mul(kept, broadcast(b, faces, WARP)))
        if len(indices) == 3:
            return list(indices)
        return [*indices, *[zero] * (2 - len(indices)), plane]

    def _texel(self, indices: Sequence[Value]) -> list[Value]:
        """Return the bits of a texel's four channels."""
        b = self.b
        slot = _slot(b, ir.ArrayType(LANES, CHANNELS))
        b.call(_texel_function(self.module), [self.record, *indices, slot])
        return [_read(b, slot, channel) for channel in range(CHANNELS)]

    def _mixture(self, axes: Sequence[_Axis], layer: Value | None, face: Value | None) -> list[Value]:
        """Return the weighted sum of the texels around, rounded once."""
        b, sums = self.b, [ir.Constant(DOUBLES, None)] * CHANNELS
        for sides, weight in self._weights([axis.fraction for axis in axes]).items():
            indices = [axis.indices[side] for axis, side in zip(axes, sides, strict=True)]
            for channel, bits in enumerate(self._texel(self._with_layer(indices, layer, face))):
                value = b.fpext(b.bitcast(bits, FLOATS), DOUBLES)
                sums[channel] = b.fadd(sums[channel], b.fmul(weight, value))
        step = constant(sums[0], 1 / STEPS)
        return [b.bitcast(b.fptrunc(b.fmul(total, step), FLOATS), LANES) for total in sums]

    def _weights(self, fractions: Sequence[Value]) -> dict[tuple[int, ...], Value]:
        """Return the weights of the texels around, in 256ths, by their sides along x, y and z.

        They are those of an H200, measured with textures of a single 1: whole 256ths that add up to 1.
        """
        b, x, last = self.b, fractions[0], fractions[-1]  # a plane's y, or z
        one = constant(x, float(STEPS))
        both = self._part(x, last)
        only_x = b.fsub(x, both) if len(fractions) == 2 else self._part(x, b.fsub(one, last))
        only_last = b.fsub(last, both)
        neither = b.fsub(b.fsub(b.fsub(one, only_x), only_last), both)
        plane = (((0, 0), neither), ((1, 0), only_x), ((0, 1), only_last), ((1, 1), both))
        weights: dict[tuple[int, ...], Value] = dict(plane)
        if len(fractions) == 2:
            return weights
        y, weights = fractions[1], {}
        for (at_x, at_z), weight in plane:
            part = self._part(weight, y if at_x else b.fsub(one, y))
            weights[at_x, at_x, at_z] = part
            weights[at_x, 1 - at_x, at_z] = b.fsub(weight, part)
        return weights

    def _part(self, weight: Value, fraction: Value) -> Value:
        """Return a product of 256ths, rounded to 256ths."""
        b = self.b
        product = b.fmul(b.fmul(weight, fraction), constant(weight, 1 / STEPS))
        return intrinsic(b, "floor", DOUBLES, b.fadd(product, constant(product, 0.5)))

    def _face(self, direction: Sequence[Value]) -> tuple[Value, list[Value]]:
        """Return the face of a cubemap that a direction meets, and where: two numbers from 0 to 1.

        Reference: CUDA C++ Programming Guide, "Cubemap Textures".
        """
        b, (x, y, z) = self.b, direction[:3]
        sizes = [intrinsic(b, "fabs", DOUBLES, each) for each in (x, y, z)]
        zero, one = constant(x, 0.0), ir.Constant(LANES, [ir.Constant(I32, 1)] * WARP)
        ax, ay, az = sizes

        def at_least(p: Value, q: Value) -> Value:
            return b.fcmp_ordered(">=", p, q)

        on_z = b.and_(at_least(az, ax), at_least(az, ay))  # wins where two are equal; then y
        on_x = b.and_(b.not_(on_z), b.not_(at_least(ay, ax)))

        def choose(first: Value, second: Value, third: Value) -> Value:
            return b.select(on_z, third, b.select(on_x, first, second))

        major, length = choose(x, y, z), choose(ax, ay, az)
        length = intrinsic(b, "maxnum", DOUBLES, length, constant(length, sys.float_info.min))  # of (0, 0, 0)
        is_behind = b.fcmp_ordered("<", major, zero)
        minus_x, minus_y, minus_z = (b.fsub(constant(x, -0.0), each) for each in (x, y, z))
        across = choose(b.select(is_behind, z, minus_z), x, b.select(is_behind, minus_x, x))
        down = choose(minus_y, b.select(is_behind, minus_z, z), minus_y)
        number = choose(*(b.shl(one, constant(one, shift)) for shift in (0, 1, 2)))
        number = b.and_(number, constant(number, 6))  # 0, 2 or 4
        face = b.add(number, b.zext(is_behind, LANES))
        half_ = constant(x, 0.5)
        return face, [b.fadd(b.fmul(b.fdiv(each, length), half_), half_) for each in (across, down)]


def _address_function(module: ir.Module) -> ir.Function:
    """Define <32 x i32> address(<32 x i32> index, i32 size, i32 mode): the texel that an index stands for.

    One that repeats is at most one period away from the texture.
    """

    def emit(function: ir.Function) -> None:
        index, size, mode = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        sizes, zero = broadcast(b, size, WARP), constant(index, 0)
        last = b.sub(sizes, constant(index, 1))
        is_below, is_above = b.icmp_signed("<", index, zero), b.icmp_signed(">", index, last)
        clamped = intrinsic(b, "smax", LANES, intrinsic(b, "smin", LANES, index, last), zero)
        wrapped = b.select(is_above, b.sub(index, sizes), b.select(is_below, b.add(index, sizes), index))
        mirrored = b.select(is_above, b.sub(b.add(last, sizes), index), index)
        mirrored = intrinsic(b, "smax", LANES, mirrored, zero)
        bordered = b.select(b.or_(is_below, is_above), constant(index, OUTSIDE), index)
        result = clamped
        for value, which in (
            (wrapped, cudaAddressModeWrap),
            (mirrored, cudaAddressModeMirror),
            (bordered, cudaAddressModeBorder),
        ):
            result = b.select(b.icmp_unsigned("==", mode, ir.Constant(I32, which)), value, result)
        b.ret(result)

    return defined_once(module, "texture_address", ir.FunctionType(LANES, [LANES, I32, I32]), emit)


def _texel_function(module: ir.Module) -> ir.Function:
    """Define void texel(record, <32 x i32> x, y, z, ptr channels): the bits of four channels per lane."""

    def emit(function: ir.Function) -> None:
        record, x, y, z, slot = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        none = constant(x, OUTSIDE)
        outside = b.or_(
            b.or_(b.icmp_unsigned("==", x, none), b.icmp_unsigned("==", y, none)),
            b.icmp_unsigned("==", z, none),
        )
        zero = constant(x, 0)
        address = _address(b, record, [b.select(outside, zero, i) for i in (x, y, z)], None)
        channels = load_field(b, Texture, record, "channels")
        size = b.sdiv(load_field(b, Texture, record, "texel_bytes"), channels)
        for channel in range(CHANNELS):
            b.store(zero, _place(b, slot, channel))
        with counted_loop(b, channels) as channel:
            offset = b.zext(b.mul(channel, size), I64)
            value = b.call(_channel_function(module), [record, b.add(address, broadcast(b, offset, WARP))])
            border = b.gep(field(b, Texture, record, "border_0"), [channel], source_etype=I32)
            value = b.select(outside, broadcast(b, b.load(border, typ=I32), WARP), value)
            b.store(value, b.gep(slot, [channel], source_etype=LANES))
        b.ret_void()

    return defined_once(
        module, "texture_texel", ir.FunctionType(ir.VoidType(), [POINTER, LANES, LANES, LANES, POINTER]), emit
    )


def _channel_function(module: ir.Module) -> ir.Function:
    """Define <32 x i32> channel(record, <32 x i64> addresses): the bits of one channel per lane."""

    def emit(function: ir.Function) -> None:
        record, addresses = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        largest = load_field(b, Texture, record, "largest")
        other = function.append_basic_block("other")
        switch = b.switch(load_field(b, Texture, record, "format"), other)
        for number, dtype in enumerate(FORMATS):
            block = function.append_basic_block(dtype.name)
            switch.add_case(ir.Constant(I32, number), block)
            b.position_at_end(block)
            bits = _gather(b, addresses, ir.IntType(8 * dtype.itemsize))
            if dtype.kind == "f" and dtype.itemsize == 2:
                bits = b.bitcast(half.widened(b, "f16", bits), LANES)
            elif dtype.itemsize < 4:
                bits = _small(b, bits, dtype.kind == "i", largest)
            b.ret(bits)
        b.position_at_end(other)
        b.unreachable()

    return defined_once(module, "texture_channel", ir.FunctionType(LANES, [POINTER, LANES_64]), emit)


def _small(b: ir.IRBuilder, bits: Value, is_signed: bool, largest: Value) -> Value:
    """Return integers of 8 or 16 bits as 32 bits, or as fractions of the largest."""
    widen, convert = (b.sext, b.sitofp) if is_signed else (b.zext, b.uitofp)
    wide = widen(bits, LANES)
    divisor = broadcast(b, b.sitofp(largest, ir.FloatType()), WARP)
    fraction = b.fdiv(convert(wide, FLOATS), divisor)
    least = constant(fraction, -1.0)
    fraction = b.select(b.fcmp_ordered("<", fraction, least), least, fraction)
    is_fraction = b.icmp_unsigned("!=", largest, abi.ZERO)
    return b.select(is_fraction, b.bitcast(fraction, LANES), wide)


def _gather(b: ir.IRBuilder, addresses: Value, kind: ir.Type) -> Value:
    """Load from each lane's address, which is valid whether the lane is active or not."""
    vector, pointers = ir.VectorType(kind, WARP), b.inttoptr(addresses, ir.VectorType(POINTER, WARP))
    everyone = lanes_of(b, ir.Constant(I32, -1))
    arguments = [pointers, ir.Constant(I32, 1), everyone, ir.Constant(vector, None)]
    return intrinsic(b, "masked.gather", vector, *arguments, overloads=(vector, pointers.type))


def _address(b: ir.IRBuilder, record: Value, indices: Sequence[Value], texel: Value | None) -> Value:
    """Return where a texel lies in memory; `texel`: the bytes between neighbours, if not those of a texel."""
    x, y, z = (b.sext(index, LANES_64) for index in indices)
    step = load_field(b, Texture, record, "texel_bytes") if texel is None else texel
    steps = [b.zext(step, I64), *(load_field(b, Texture, record, name) for name in ("pitch", "slice"))]
    address = broadcast(b, load_field(b, Texture, record, "data"), WARP)
    for index, stride in zip((x, y, z), steps, strict=True):
        address = b.add(address, b.mul(index, broadcast(b, stride, WARP)))
    return address


def _integer(b: ir.IRBuilder, x: Value) -> Value:
    """Convert to the nearest integer that there is; NaN becomes 0."""
    return intrinsic(b, "fptosi.sat", LANES, x, overloads=(LANES, DOUBLES))


def _same(b: ir.IRBuilder, handles: Value, handle: Value, mask: Value) -> Value:
    return b.and_(mask, mask_of(b, b.icmp_unsigned("==", handles, broadcast(b, handle, WARP))))


def _bits(numbers: Sequence[int]) -> Value:
    return ir.Constant(I32, sum(1 << number for number in numbers))


def _less_one(b: ir.IRBuilder, value: Value) -> Value:
    return b.sub(value, ir.Constant(I32, 1))


def _slot(b: ir.IRBuilder, type_: ir.Type) -> Value:
    """Allocate memory on the stack, as a pointer without a type."""
    return b.inttoptr(b.ptrtoint(entry_slot(b, type_), I64), POINTER)


def _place(b: ir.IRBuilder, slot: Value, channel: int) -> Value:
    """Return the address of one of the vectors in a slot."""
    return b.gep(slot, [ir.Constant(I32, channel)], source_etype=LANES)


def _read(b: ir.IRBuilder, slot: Value, channel: int) -> Value:
    return b.load(_place(b, slot, channel), typ=LANES)
