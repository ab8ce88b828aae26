"""Textures and surfaces against a model in exact fractions.

Reference: CUDA C++ Programming Guide, "Texture Fetching" and "Surface Functions".
"""

import gc
from fractions import Fraction
from itertools import product
from math import floor, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt
from simt import texture
from simt.texture import (
    ChannelFormatDescriptor,
    CUDAarray,
    ResourceDescriptor,
    SurfaceObject,
    TextureDescriptor,
    TextureObject,
)

WRAP, CLAMP, MIRROR, BORDER = (
    getattr(texture, f"cudaAddressMode{m}") for m in ("Wrap", "Clamp", "Mirror", "Border")
)
KINDS = {
    "i": texture.cudaChannelFormatKindSigned,
    "u": texture.cudaChannelFormatKindUnsigned,
    "f": texture.cudaChannelFormatKindFloat,
}
FETCHES = "".join(
    f"""
extern "C" __global__ void {name}_{short}(
    cudaTextureObject_t t, const float4* at, const int* layer, {type_}4* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 p = at[i];
    int l = layer[i];
    out[i] = {call.replace("T", type_ + "4")};
}}"""
    for name, call in {
        "tex1D": "tex1D<T>(t, p.x)",
        "tex2D": "tex2D<T>(t, p.x, p.y)",
        "tex3D": "tex3D<T>(t, p.x, p.y, p.z)",
        "tex1DLayered": "tex1DLayered<T>(t, p.x, l)",
        "tex2DLayered": "tex2DLayered<T>(t, p.x, p.y, l)",
        "texCubemap": "texCubemap<T>(t, p.x, p.y, p.z)",
        "texCubemapLayered": "texCubemapLayered<T>(t, p.x, p.y, p.z, l)",
        "tex1Dfetch": "tex1Dfetch<T>(t, l)",
        "tex2DLod": "tex2DLod<T>(t, p.x, p.y, 0)",
        "tex2DGrad": "tex2DGrad<T>(t, p.x, p.y, make_float2(0, 0), make_float2(0, 0))",
        "gather0": "tex2Dgather<T>(t, p.x, p.y, 0)",
        "gather1": "tex2Dgather<T>(t, p.x, p.y, 1)",
    }.items()
    for short, type_ in {"f": "float", "i": "int", "u": "uint"}.items()
)


@pytest.fixture(scope="module")
def fetches():
    return simt.RawModule(code=FETCHES)


def described(dtype, channels=1):
    dtype = np.dtype(dtype)
    bits = [8 * dtype.itemsize * (channel < channels) for channel in range(4)]
    return ChannelFormatDescriptor(*bits, KINDS[dtype.kind])


def in_array(values, channels=1, flags=0):
    """A CUDA array that holds an array of 1, 2 or 3 dimensions; the last has all channels of a texel."""
    sizes = [*values.shape[::-1], 0, 0][:3]
    if flags & texture.cudaArrayLayered and values.ndim == 2:
        sizes = [sizes[0], 0, sizes[1]]
    array = CUDAarray(described(values.dtype, channels), sizes[0] // channels, *sizes[1:], flags)
    array.copy_from(values)
    return array


def texture_of(array, modes=(CLAMP,) * 3, linear=False, fraction=False, normalized=False, border=()):
    resource = array if isinstance(array, ResourceDescriptor) else resource_of(array)
    how = TextureDescriptor(
        modes,
        texture.cudaFilterModeLinear if linear else texture.cudaFilterModePoint,
        texture.cudaReadModeNormalizedFloat if fraction else texture.cudaReadModeElementType,
        borderColors=border,
        normalizedCoords=normalized,
    )
    return TextureObject(resource, how)


def resource_of(array):
    return ResourceDescriptor(texture.cudaResourceTypeArray, cuArr=array)


def fetched(module, name, object_, places=(), layers=(), dtype=np.float32):
    """The four channels that each thread gets, at a place of up to three coordinates, or in a layer."""
    n = max(len(places), len(layers))
    at, layer = np.zeros((n, 4), np.float32), np.zeros(n, np.int32)
    if len(places):
        at[:, : np.shape(places)[1]] = places
    if len(layers):
        layer[:] = layers
    out = np.full((n, 4), 77, dtype)
    kernel = module.get_function(f"{name}_{np.dtype(dtype).kind}")
    kernel(-(-n // 32), 32, (object_, at, layer, out, np.int32(n)))
    return out


def index(i, size, mode):
    """The texel that an index stands for; None beyond a border."""
    if mode == WRAP:
        return i % size
    if mode == MIRROR:
        return min(i % (2 * size), 2 * size - 1 - i % (2 * size))
    if mode == BORDER:
        return i if 0 <= i < size else None
    return min(max(i, 0), size - 1)


def sampled(values, place, modes, linear, normalized, border=0.0):
    """One sample of an array whose first axis is the last coordinate, as an exact fraction."""
    if linear and values.ndim == 1:  # hardware reads it at y = 0, half of which is above the only row
        values, place, normalized = values[None], (*place, 0.0), (normalized, False)
    else:
        normalized = (normalized,) * values.ndim
    axes, parts = [], []
    for size, x, mode, is_share in zip(values.shape[::-1], place, modes, normalized, strict=False):
        u = Fraction(float(x)) * (size if is_share else 1)
        mode = mode if normalized[0] or mode in (CLAMP, BORDER) else CLAMP
        if linear:
            u = min(max(u, Fraction(1, 2)), size - Fraction(1, 2)) if mode == CLAMP else u
            fixed = floor((u - Fraction(1, 2)) * 256 + Fraction(1, 2))
            axes.append((index(fixed // 256, size, mode), index(fixed // 256 + 1, size, mode)))
            parts.append(fixed % 256)
        else:
            axes.append((index(floor(u), size, mode),))
    total = Fraction(0)
    for sides in product(*(range(len(axis)) for axis in axes)):
        at = tuple(axis[side] for axis, side in zip(axes, sides, strict=True))[::-1]
        weight = weights(parts)[sides] if linear else 256
        total += weight * Fraction(float(border if None in at else values[at])) / 256
    return total


def weights(parts):
    """Weights in 256ths by the sides along x, y and z, as an H200 has them (test_weights_are_the_gpus)."""

    def rounded(weight, part):
        return (weight * part + 128) // 256

    x, last = parts[0], parts[-1]
    both = rounded(x, last)
    across = x - both if len(parts) == 2 else rounded(x, 256 - last)
    plane = {(1, 1): both, (1, 0): across, (0, 1): last - both}
    plane[0, 0] = 256 - sum(plane.values())
    if len(parts) == 2:
        return plane
    solid = {}
    for (i, k), weight in plane.items():
        side = rounded(weight, parts[1] if i else 256 - parts[1])
        solid |= {(i, i, k): side, (i, 1 - i, k): weight - side}
    return solid


@settings(deadline=None, max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_filters_and_address_modes(fetches, axes, data):
    """Small whole numbers, so that every mixture is exact in a float."""
    linear, normalized = data.draw(st.booleans()), data.draw(st.booleans())
    modes = data.draw(st.tuples(*[st.sampled_from([WRAP, CLAMP, MIRROR, BORDER])] * 3))
    shape = data.draw(st.tuples(*[st.integers(1, 7)] * axes))
    values = np.random.default_rng(7).integers(-9, 10, shape).astype(np.float32)
    first, end = (-2.5, 3.5) if normalized else (-9, 16)
    one = st.integers(int(first * 2**16), int(end * 2**16)).map(lambda number: number / 2**16)
    places = data.draw(st.lists(st.tuples(*[one] * axes), min_size=1, max_size=40))
    object_ = texture_of(in_array(values), modes, linear, normalized=normalized, border=(5.0,))
    want = [sampled(values, place, modes, linear, normalized, border=5.0) for place in places]
    got = fetched(fetches, f"tex{axes}D", object_, places)[:, 0]
    np.testing.assert_array_equal(got, np.array([float(w) for w in want], np.float32))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "normalized"),
    [*product(["tex1D", "tex2D", "tex3D", "tex2DLayered"], [False, True]), ("texCubemap", True)],
)
def test_samples_are_the_gpus(gpu, fetches, name, normalized, monkeypatch):
    """The same objects, made with CuPy, on a GPU. Whole numbers: every mixture is exact in a float."""
    flags = {"tex2DLayered": texture.cudaArrayLayered, "texCubemap": texture.cudaArrayCubemap}.get(name, 0)
    shape = {"tex1D": (8,), "tex2D": (4, 8), "tex3D": (2, 4, 8), "texCubemap": (6, 4, 4)}.get(name, (3, 4, 8))
    rng = np.random.default_rng(0)
    values = rng.integers(-9, 10, shape).astype(np.float32)
    places = np.round(rng.uniform(-3, 3, (500, 3)) * 512) / 512 * (1 if normalized else 4)
    layers = rng.integers(-1, 4, 500)
    modes = (WRAP, CLAMP, MIRROR, BORDER)
    cases = [((mode, other, mode), linear) for mode in modes for other in modes for linear in (False, True)]
    objects = [
        texture_of(in_array(values, flags=flags), modes, linear, False, normalized, (5.0,))
        for modes, linear in cases
    ]
    ours = [fetched(fetches, name, each, places, layers) for each in objects]
    for each in ("CUDAarray", "ChannelFormatDescriptor", "ResourceDescriptor", "TextureDescriptor"):
        monkeypatch.setitem(globals(), each, getattr(gpu.cuda.texture, each))
    monkeypatch.setitem(globals(), "TextureObject", gpu.cuda.texture.TextureObject)
    kernel = gpu.RawModule(code=FETCHES).get_function(f"{name}_f")
    at, layer = gpu.zeros((500, 4), np.float32), gpu.asarray(layers, np.int32)
    at[:, :3] = gpu.asarray(places)
    for (modes, linear), mine in zip(cases, ours, strict=True):
        out = gpu.zeros((500, 4), np.float32)
        theirs = texture_of(in_array(values, flags=flags), modes, linear, False, normalized, (5.0,))
        kernel((16,), (32,), (theirs, at, layer, out, np.int32(500)))
        np.testing.assert_array_equal(mine, out.get(), err_msg=f"{modes}, linear: {linear}")


@pytest.mark.gpu
@pytest.mark.parametrize("axes", [2, 3])
def test_weights_are_the_gpus(gpu, axes):
    """Textures with a single 1 give the weight of its texel."""
    theirs = gpu.cuda.texture
    parts = np.random.default_rng(1).integers(0, 256, (2000, axes))
    at = gpu.zeros((2000, 4), np.float32)
    at[:, :axes] = gpu.asarray(parts / 256 + 0.5)
    kernel = gpu.RawModule(code=FETCHES).get_function(f"tex{axes}D_f")
    wanted = [weights([int(part) for part in row]) for row in parts]
    floats = theirs.ChannelFormatDescriptor(32, 0, 0, 0, KINDS["f"])
    for sides in product((0, 1), repeat=axes):
        values = np.zeros((2,) * axes, np.float32)
        values[sides[::-1]] = 1
        array, out = theirs.CUDAarray(floats, *values.shape), gpu.zeros((2000, 4), np.float32)
        array.copy_from(values)
        how = theirs.TextureDescriptor((CLAMP,) * 3, texture.cudaFilterModeLinear)
        resource = theirs.ResourceDescriptor(texture.cudaResourceTypeArray, cuArr=array)
        args = theirs.TextureObject(resource, how), at, gpu.zeros(2000, np.int32), out, np.int32(2000)
        kernel((63,), (32,), args)
        np.testing.assert_array_equal(256 * out.get()[:, 0], [weight[sides] for weight in wanted])


FORMATS = ["u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4"]


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("format_", FORMATS)
def test_formats_and_channels(fetches, format_, channels):
    dtype = np.dtype(format_)
    rng = np.random.default_rng(1)
    if dtype.kind == "f":
        values = rng.normal(size=(5, 6 * channels)).astype(dtype)
    else:
        values = rng.integers(
            *(np.iinfo(dtype).min, np.iinfo(dtype).max), (5, 6 * channels), dtype, endpoint=True
        )
        values[0, 0], values[0, -1] = np.iinfo(dtype).min, np.iinfo(dtype).max
    y, x = np.mgrid[:5, :6]
    places = np.stack([x.ravel(), y.ravel()], 1) + 0.5
    want = values.reshape(-1, channels)
    object_ = texture_of(in_array(values, channels))
    out = {"f": np.float32, "i": np.int32, "u": np.uint32}[dtype.kind]
    np.testing.assert_array_equal(fetched(fetches, "tex2D", object_, places, dtype=out)[:, :channels], want)
    if dtype.kind in "iu" and dtype.itemsize < 4:
        object_ = texture_of(in_array(values, channels), fraction=True)
        as_float = np.maximum(np.float32(want) / np.float32(np.iinfo(dtype).max), np.float32(-1))
        np.testing.assert_array_equal(fetched(fetches, "tex2D", object_, places)[:, :channels], as_float)


def test_layers_are_clamped_and_not_mixed(fetches):
    values = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
    planes = texture_of(in_array(values, flags=texture.cudaArrayLayered), linear=True)
    layers = [0, 1, 2, 3, -1, 2**30, -(2**30)]
    got = fetched(fetches, "tex2DLayered", planes, [(2.0, 1.5)] * 7, layers)[:, 0]
    np.testing.assert_array_equal(got, [values[min(i % 2**32, 2), 1, 1:3].mean() for i in layers])
    rows = texture_of(in_array(values[:, 0], flags=texture.cudaArrayLayered))
    got = fetched(fetches, "tex1DLayered", rows, [(2.5,)] * 7, layers)[:, 0]
    np.testing.assert_array_equal(got, [values[min(i % 2**32, 2), 0, 2] for i in layers])


# The table of the guide's "Cubemap Textures": face, major axis, and what s and t are of (x, y, z).
FACES = [
    (lambda x, y, z: (-z, -y), 0, 1),
    (lambda x, y, z: (z, -y), 0, -1),
    (lambda x, y, z: (x, z), 1, 1),
    (lambda x, y, z: (x, -z), 1, -1),
    (lambda x, y, z: (x, -y), 2, 1),
    (lambda x, y, z: (-x, -y), 2, -1),
]


@pytest.mark.parametrize("layers", [0, 2])
def test_cubemaps(fetches, layers):
    size, cube = 4, texture.cudaArrayCubemap | (texture.cudaArrayLayered if layers else 0)
    values = np.arange(6 * max(layers, 1) * size * size, dtype=np.float32).reshape(-1, size, size)
    directions = np.random.default_rng(3).normal(size=(200, 3)).astype(np.float32)
    chosen = np.arange(200) % 2 if layers else np.zeros(200, int)
    want = []
    for direction, layer in zip(directions.astype(float), chosen, strict=True):
        axis = int(np.argmax(np.abs(direction)))
        face = next(i for i, (_, a, sign) in enumerate(FACES) if a == axis and sign * direction[axis] > 0)
        s, t = FACES[face][0](*direction)
        column, row = (int((c / abs(direction[axis]) + 1) / 2 * size) for c in (s, t))
        want.append(values[6 * layer + face, row, column])
    object_ = texture_of(in_array(values, flags=cube), normalized=True)
    name = "texCubemapLayered" if layers else "texCubemap"
    np.testing.assert_array_equal(fetched(fetches, name, object_, directions, chosen)[:, 0], want)


@pytest.mark.parametrize(
    ("dtype", "fraction", "colour", "want"),
    # An H200's answers; 8 and 16 bits get the low bits of the float.
    [
        (np.float16, False, 7.1, 7.09765625),
        (np.float32, False, 7.1, np.float32(7.1)),
        (np.uint8, True, 7.0, 1),
        (np.uint8, False, 7.0, 0),
        (np.int16, False, 7.0, 0),
        (np.int32, False, 7.0, 0x40E00000),
    ],
)
def test_colours_of_borders(fetches, dtype, fraction, colour, want):
    array = in_array(np.ones(4, dtype))
    object_ = texture_of(array, (BORDER,) * 3, fraction=fraction, border=(colour,))
    kind = np.dtype(dtype).kind
    as_type = np.float32 if fraction or kind == "f" else {"i": np.int32, "u": np.uint32}[kind]
    assert fetched(fetches, "tex1D", object_, [(9.5,)], dtype=as_type)[0, 0] == want


def test_directions_between_faces_of_a_cubemap(fetches):
    """An H200's answers: z wins, then y."""
    values = np.arange(6 * 16, dtype=np.float32).reshape(6, 4, 4)
    object_ = texture_of(in_array(values, flags=texture.cudaArrayCubemap), normalized=True)
    between = {
        (1, 1, 1): 67,
        (1, 1, 0.5): 47,
        (1, -1, 1): 79,
        (-1, 1, 1): 64,
        (-1, -1, -1): 95,
        (1, 0, 1): 75,
        (0, 0, 0): 74,
        (0, -1, -1): 94,
    }
    np.testing.assert_array_equal(
        fetched(fetches, "texCubemap", object_, list(between))[:, 0], [*between.values()]
    )


def test_a_level_and_gradients_change_nothing_without_mipmaps(fetches):
    values = np.random.default_rng(2).integers(0, 99, (6, 5)).astype(np.float32)
    object_, places = (
        texture_of(in_array(values), linear=True),
        np.random.default_rng(4).uniform(0, 6, (50, 2)),
    )
    plain = fetched(fetches, "tex2D", object_, places)
    for name in ("tex2DLod", "tex2DGrad"):
        np.testing.assert_array_equal(fetched(fetches, name, object_, places), plain)


def test_gather_returns_a_channel_of_the_four_texels_around(fetches):
    values = np.arange(2 * 5 * 6, dtype=np.float32).reshape(5, 12)
    object_ = texture_of(in_array(values, 2, texture.cudaArrayTextureGather))
    places = np.random.default_rng(5).uniform(-1, 8, (60, 2)).astype(np.float32)
    texels = values.reshape(5, 6, 2)
    for channel in (0, 1):
        got = fetched(fetches, f"gather{channel}", object_, places)
        for (x, y), four in zip(places, got, strict=True):
            i, j = (
                floor((Fraction(float(c)) - Fraction(1, 2)) * 256 + Fraction(1, 2)) // 256 for c in (x, y)
            )
            around = [(j + 1, i), (j + 1, i + 1), (j, i + 1), (j, i)]
            want = [texels[index(r, 5, CLAMP), index(c, 6, CLAMP), channel] for r, c in around]
            np.testing.assert_array_equal(four, want)


def test_linear_memory_is_read_by_index_and_is_zero_outside(fetches):
    values = np.arange(1, 41, dtype=np.int32)
    linear = ResourceDescriptor(
        texture.cudaResourceTypeLinear, arr=values, chDesc=described(np.int32, 2), sizeInBytes=80
    )
    object_ = texture_of(linear)
    got = fetched(fetches, "tex1Dfetch", object_, layers=[0, 3, 9, 10, -1, 2**27], dtype=np.int32)[:, :2]
    np.testing.assert_array_equal(got, [[1, 2], [7, 8], [19, 20], [0, 0], [0, 0], [0, 0]])
    values[6] = 99  # the texture is the array's own memory
    assert fetched(fetches, "tex1Dfetch", object_, layers=[3], dtype=np.int32)[0, 0] == 99


def test_pitched_memory(fetches):
    values = np.random.default_rng(6).integers(0, 99, (7, 16)).astype(np.float32)
    pitched = ResourceDescriptor(
        texture.cudaResourceTypePitch2D,
        arr=values,
        chDesc=described(np.float32),
        width=11,
        height=6,
        pitchInBytes=64,
    )
    places = np.random.default_rng(4).uniform(-2, 13, (60, 2)).astype(np.float32)
    for linear in (False, True):
        want = [float(sampled(values[:6, :11], place, (CLAMP, BORDER), linear, False)) for place in places]
        got = fetched(fetches, "tex2D", texture_of(pitched, (CLAMP, BORDER), linear), places)[:, 0]
        np.testing.assert_array_equal(got, np.float32(want))


SURFACES = "".join(
    f"""
extern "C" __global__ void surf{name}_{mode}(cudaSurfaceObject_t s, const int4* at, float* read, int n) {{
    int i = threadIdx.x;
    int4 p = at[i < n ? i : 0];
    if (i < n) surf{name}read(read + i, s, {place}, cudaBoundaryMode{mode});
    __syncthreads();
    if (i < n) surf{name}write(100.f + i, s, {place}, cudaBoundaryMode{mode});
}}"""
    for name, place in {
        "1D": "p.x",
        "2D": "p.x, p.y",
        "3D": "p.x, p.y, p.z",
        "1DLayered": "p.x, p.z",
        "2DLayered": "p.x, p.y, p.z",
        "Cubemap": "p.x, p.y, p.z",
    }.items()
    for mode in ("Trap", "Clamp", "Zero")
)
SURFACES += """
extern "C" __global__ void wide(cudaSurfaceObject_t s, int w) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x >= w) return;
    uchar4 c = surf2Dread<uchar4>(s, x * 4, y);
    surf2Dwrite(make_uchar4(c.w, c.z, c.y, c.x + 1), s, x * 4, y);
}
extern "C" __global__ void shift(cudaSurfaceObject_t s, int w) {  // a neighbour writes what this reads
    int x = threadIdx.x;
    float v = surf2Dread<float>(s, (x + 1) % w * 4, 0);
    surf2Dwrite(v, s, x * 4, 0);
}
extern "C" __global__ void by_index(const cudaTextureObject_t* all, float* out) {
    out[threadIdx.x] = tex2D<float>(all[threadIdx.x % 3], 0.5f, 0.5f);
}
"""


@pytest.fixture(scope="module")
def surfaces():
    return simt.RawModule(code=SURFACES)


@pytest.mark.parametrize("name", ["1D", "2D", "3D", "1DLayered", "2DLayered", "Cubemap"])
def test_surfaces_beyond_their_edges(surfaces, name):
    """Reads clamp or are zero; writes clamp or are dropped; a trap is an error that names the place."""
    shape = {"1D": (6,), "2D": (4, 6), "1DLayered": (3, 6), "Cubemap": (6, 4, 4)}.get(name, (3, 4, 6))
    flags = texture.cudaArraySurfaceLoadStore
    flags |= texture.cudaArrayLayered * ("Layered" in name) | texture.cudaArrayCubemap * (name == "Cubemap")
    axes = {"1D": "x", "2D": "xy", "1DLayered": "xz"}.get(name, "xyz")
    sizes = dict(zip(axes, shape[::-1], strict=True))
    values = np.arange(1, 1 + prod(shape), dtype=np.float32).reshape(shape)
    places = [dict.fromkeys(axes, at) for at in (0, 2)]
    places += [
        {**dict.fromkeys(axes, 1), axis: at} for axis in axes for at in (-1, sizes[axis], sizes[axis] + 7)
    ]
    at = np.array([[4 * p["x"], p.get("y", 0), p.get("z", 0), 0] for p in places], np.int32)
    for mode in ("Clamp", "Zero"):
        array = in_array(values, flags=flags)
        read, n = np.zeros(len(places), np.float32), np.int32(len(places))
        surfaces.get_function(f"surf{name}_{mode}")(1, 32, (SurfaceObject(resource_of(array)), at, read, n))
        want_read, want = [], values.copy()
        for i, place in enumerate(places):
            inside = all(0 <= place[axis] < sizes[axis] for axis in axes)
            near = tuple(index(place[axis], sizes[axis], CLAMP) for axis in axes)[::-1]
            want_read.append(values[near] if inside or mode == "Clamp" else 0)
            if inside or mode == "Clamp":
                want[near] = 100 + i
        got = np.empty_like(values)
        array.copy_to(got)
        np.testing.assert_array_equal(read, want_read)
        np.testing.assert_array_equal(got, want)
    kernel, array = surfaces.get_function(f"surf{name}_Trap"), in_array(values, flags=flags)
    for i in range(2, len(places)):
        args = SurfaceObject(resource_of(array)), at[i : i + 1].copy(), np.zeros(1, np.float32), np.int32(1)
        with pytest.raises(simt.InvalidAccess, match="invalid surface access of 4 bytes at x = "):
            kernel(1, 32, args)
    assert [f.kind for f in kernel.check(1, 32, args)] == ["out of bounds"]


def test_channels_of_a_surface(surfaces):
    values = np.random.default_rng(1).integers(0, 200, (3, 20), np.uint8)
    array = in_array(values, 4, texture.cudaArraySurfaceLoadStore)
    args = SurfaceObject(resource_of(array)), np.int32(5)
    surfaces.get_function("wide")(3, 32, args)
    got, want = np.empty_like(values), values.reshape(3, 5, 4)[..., ::-1].copy()
    want[..., 3] += 1
    array.copy_to(got)
    np.testing.assert_array_equal(got, want.reshape(3, 20))
    assert surfaces.get_function("wide").check(3, 32, args) == []


def test_checks_of_surfaces(surfaces):
    """Races between threads, and elements that nobody has written."""
    array = in_array(np.arange(64, dtype=np.float32).reshape(1, 64), flags=texture.cudaArraySurfaceLoadStore)
    findings = surfaces.get_function("shift").check(1, 64, (SurfaceObject(resource_of(array)), np.int32(64)))
    assert {f.tool for f in findings} == {"racecheck"}
    unfilled = CUDAarray(described(np.uint8, 4), 5, 3, flags=texture.cudaArraySurfaceLoadStore)
    findings = surfaces.get_function("wide").check(3, 32, (SurfaceObject(resource_of(unfilled)), np.int32(5)))
    assert [(f.tool, f.line) for f in findings] == [("initcheck", findings[0].line)]
    assert "nobody has written yet" in str(findings[0])
    assert "a CUDA array (uint8, shape (3, 20))" in str(findings[0])


def test_handles_may_lie_in_memory_and_differ_between_threads(surfaces):
    made = [texture_of(in_array(np.full((2, 2), value, np.float32))) for value in (3, 5, 7)]
    out = np.zeros(40, np.float32)
    args = np.array([each.ptr for each in made], np.uint64), out
    surfaces.get_function("by_index")(1, 40, args)
    np.testing.assert_array_equal(out, np.array([3, 5, 7])[np.arange(40) % 3])


def test_wrong_handles_are_errors_with_a_line(fetches, surfaces):
    values = np.ones((4, 4), np.float32)
    array = in_array(values, flags=texture.cudaArraySurfaceLoadStore)
    flat, surface = texture_of(in_array(values[0])), SurfaceObject(resource_of(array))
    gone = texture_of(array).ptr
    gc.collect()
    cases = {
        np.uint64(0): "not the handle of a texture or surface",
        np.uint64(2**60 + 1): "not the handle of a texture or surface",
        np.uint64(gone): "no longer exists",
        flat: "tex2D gets a texture of 4 texels .float32., made for tex1D",
        surface: "tex2D gets a surface of 4 x 4 texels .float32.",
    }
    at, layer, out = np.zeros((1, 4), np.float32), np.zeros(1, np.int32), np.zeros((1, 4), np.float32)
    kernel = fetches.get_function("tex2D_f")
    for given_, words in cases.items():
        args = given_, at, layer, out, np.int32(1)
        with pytest.raises(simt.SimtError, match=words) as error:
            kernel(1, 32, args)
        assert error.value.finding.kind == "wrong texture"
        assert [f.line for f in kernel.check(1, 32, args)] == [error.value.finding.line]
    with pytest.raises(simt.SimtError, match="surf2Dread or -write gets a texture of 4 x 4 texels"):
        args = texture_of(array), np.zeros((1, 4), np.int32), np.zeros(1, np.float32), np.int32(1)
        surfaces.get_function("surf2D_Trap")(1, 32, args)
    with pytest.raises(simt.LaunchError, match="argument 4 is a texture of 4 x 4 texels"):
        kernel(1, 32, (flat, at, layer, out, texture_of(array)))


def test_counts_are_requests_and_no_sectors(fetches):
    """Two warps fetch, the second with 8 threads; sectors are not known, and not added to global memory's."""
    object_ = texture_of(in_array(np.ones((4, 4), np.float32)))
    at, layer, out = np.zeros((40, 4), np.float32), np.zeros(40, np.int32), np.zeros((40, 4), np.float32)
    profile = fetches.get_function("tex2D_f").profile(2, 32, (object_, at, layer, out, np.int32(40)))
    (row,) = profile.lines[profile.lines.space == "texture"].itertuples()
    assert (row.op, row.requests, row.threads) == ("ld", 2, 40)
    assert np.isnan([row.sectors, row.useful_bytes, row.sectors_per_request]).all()
    assert profile.metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 2


REFUSED = {
    "linear filter of integers": lambda: texture_of(in_array(np.zeros(4, np.int32)), linear=True),
    "fractions of 32 bits": lambda: texture_of(in_array(np.zeros(4, np.int32)), fraction=True),
    "three channels": lambda: CUDAarray(ChannelFormatDescriptor(32, 32, 32, 0, KINDS["f"]), 4),
    "64 bits": lambda: CUDAarray(ChannelFormatDescriptor(64, 0, 0, 0, KINDS["i"]), 4),
    "no width": lambda: CUDAarray(described(np.float32), 0),
    "another shape": lambda: CUDAarray(described(np.float32), 4).copy_from(np.zeros(5, np.float32)),
    "another type": lambda: CUDAarray(described(np.float32), 4).copy_from(np.zeros(4, np.int32)),
    "surface without its flag": lambda: SurfaceObject(resource_of(in_array(np.zeros(4, np.float32)))),
    "more than the array": lambda: ResourceDescriptor(
        texture.cudaResourceTypeLinear,
        arr=np.zeros(4, np.float32),
        chDesc=described(np.float32),
        sizeInBytes=20,
    ),
    "rows closer than 32 bytes": lambda: ResourceDescriptor(
        texture.cudaResourceTypePitch2D,
        arr=np.zeros((4, 5), np.float32),
        chDesc=described(np.float32),
        width=5,
        height=4,
        pitchInBytes=20,
    ),
    "a cubemap without directions": lambda: texture_of(
        in_array(np.zeros((6, 4, 4), np.float32), flags=texture.cudaArrayCubemap)
    ),
    "faces that are not square": lambda: CUDAarray(described(np.float32), 4, 3, 6, texture.cudaArrayCubemap),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cuda_refuses_is_a_value_error(what):
    with pytest.raises(ValueError, match=r"\w+ "):
        REFUSED[what]()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("bool r; o[0] = tex2D<float>(t, 0, 0, &r);", "sparse textures"),
        ('asm("txq.width.b32 %0, [%1];" : "=r"(*(int*)o) : "l"(t));', "txq"),
    ],
)
def test_what_is_not_there_is_refused_by_name(code, words):
    source = f'extern "C" __global__ void f(cudaTextureObject_t t, float* o) {{ {code} }}'
    with pytest.raises(simt.SimtError, match=words):
        simt.RawModule(code=source)
