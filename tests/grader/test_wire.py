"""What crosses the border of a sandbox: values arrive as they were sent, and hostile bytes are an error."""

import socket
import struct
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt
from grader.sandbox.wire import MOST_BYTES, MOST_TEXT, BorderError, Callback, Channel, Opaque
from simt.common.occupancy import gpu
from simt.launch.unwritten import is_empty

DTYPES = ("float32", "float64", "int32", "uint8", "bool", "complex64", "int64")


def sent(value):
    """The value as the other side gets it."""
    left, right = socket.socketpair()
    with left, right, ThreadPoolExecutor() as pool:
        pool.submit(Channel(left).send, value)
        return Channel(right).receive(5)


def framed(text, numbers=b""):
    """A message of this text and these numbers of arrays."""
    return struct.pack(">IQ", len(text), len(numbers)) + text + numbers


def received(data):
    """What is made of these bytes."""
    left, right = socket.socketpair()

    def send():
        with left, suppress(BrokenPipeError, ConnectionResetError):
            left.sendall(data)

    with right, ThreadPoolExecutor() as pool:
        pool.submit(send)
        return Channel(right).receive(5)


numbers = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False))
plain = st.recursive(
    st.one_of(numbers, st.text(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(), inner, max_size=4),
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(plain)
def test_plain_values_arrive_as_they_are(value):
    assert sent(value) == value


@settings(deadline=None)
@given(
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 5), max_size=3).map(tuple),
    st.integers(0, 2**32 - 1),
)
def test_arrays_arrive_with_every_bit_and_can_be_written_to(dtype, shape, seed):
    bits = np.random.default_rng(seed).integers(0, 2, (*shape, np.dtype(dtype).itemsize), np.uint8)
    array = bits.view(dtype).reshape(shape)
    got = sent(array)
    assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, shape, array.tobytes())
    got[...] = 0


def test_a_scalar_keeps_its_type():
    got = sent(np.float32(1 / 3))
    assert type(got) is np.float32
    assert got == np.float32(1 / 3)


def test_memory_that_nobody_has_written_stays_that():
    assert is_empty(sent(simt.empty((3, 5), np.int32)))


def test_memory_that_somebody_has_written_does_not():
    array = simt.empty((3, 5))
    array[1] = 2
    got = sent(array)
    assert not is_empty(got)
    assert got.tobytes() == array.tobytes()


def test_a_gpu_arrives_by_its_name_and_a_function_by_its_number():
    assert sent([gpu("H200"), Callback(3)]) == [gpu("H200"), Callback(3)]


class Sly:
    """Pretends to be whatever it is compared with."""

    def __eq__(self, other):
        return True

    def __float__(self):
        return 42.0

    def __repr__(self):
        raise RuntimeError("nobody sees me")


class Number(float):
    """A float that pretends to be any other."""

    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize("value", [Sly(), object(), {1, 2}, lambda: 0, np.array([Sly()], object)])
def test_an_object_arrives_as_its_text_alone(value):
    got = sent(value)
    assert isinstance(got, Opaque)
    assert got != 42
    with pytest.raises(TypeError):
        float(got)


@pytest.mark.parametrize(
    ("value", "plain"), [(Number(3), 3.0), (Fraction(1, 4), 0.25), (Decimal("2.5"), 2.5)]
)
def test_a_number_of_another_class_arrives_as_a_plain_one(value, plain):
    got = sent(value)
    assert type(got) is float
    assert got == plain


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_an_error_of_the_border(data):
    for sent in (data, framed(data), framed(data[:20], data[20:])):
        with suppress(BorderError):
            received(sent)


@settings(deadline=None)
@given(st.integers(-128, 127), plain, st.binary(max_size=20))
def test_forged_extensions_are_values_or_an_error_of_the_border(code, value, numbers):
    packed = msgpack.packb(value, default=lambda tuple_: list(tuple_), unicode_errors="replace")
    with suppress(BorderError):
        received(framed(msgpack.packb(msgpack.ExtType(code & 127, packed)), numbers))


def array_of(dtype, *shape, code=1):
    return msgpack.packb(msgpack.ExtType(code, msgpack.packb([dtype, list(shape)])))


@pytest.mark.parametrize("dtype", ["O", "|O8", "V8", "U4", "f4,f4", "M8[s]", "(2,)f4", None, ["f4"]])
def test_an_array_of_anything_but_numbers_is_refused(dtype):
    with pytest.raises(BorderError):
        received(framed(array_of(dtype, 1), bytes(8)))


@pytest.mark.parametrize("shape", [(3,), (-1,), (-1, -2), (2**40, 2**40), (0, 2**62), (1,) * 100])
def test_an_array_of_a_shape_that_its_numbers_do_not_have_is_refused(shape):
    with pytest.raises(BorderError):
        received(framed(array_of("<f4", *shape), bytes(8)))


def test_numbers_are_handed_out_once():
    array = array_of("<f4", 2)
    assert len(received(framed(msgpack.packb([1]), bytes(8)))) == 1
    with pytest.raises(BorderError):
        received(framed(b"\x92" + array + array, bytes(8)))


@pytest.mark.parametrize("count", [1, 100])
def test_arrays_that_are_huge_and_unwritten_are_refused(count):
    forged = array_of("|u1", 2**29 // count, code=3)
    with pytest.raises(BorderError):
        received(framed(b"\xdc" + struct.pack(">H", count) + count * forged))


@pytest.mark.parametrize("levels", [50, 500, 100_000])
def test_a_message_that_nests_deep_is_refused(levels):
    with pytest.raises(BorderError):
        received(framed(b"\x91" * levels + b"\xc0"))


ARRAY, EMPTY, TUPLE = 1, 3, 6  # numbers of extensions
SIDES = [*(2**63 for _ in range(100_000))]


def extension(code, value):
    return msgpack.ExtType(code, msgpack.packb(value))


def within(levels):
    """Extensions in one another."""
    text = b"\xc0"
    heads = [struct.pack(">BIb", 0xC9, 1 + 6 * level, TUPLE) for level in range(levels)]
    return b"".join(reversed(heads)) + text


@pytest.mark.parametrize(
    "text",
    [
        within(MOST_TEXT // 6 - 1),
        msgpack.packb(extension(ARRAY, ["<f4", SIDES])),
        msgpack.packb([extension(EMPTY, ["<f4", [0]])] * (MOST_TEXT // 11)),
        msgpack.packb(extension(ARRAY, ["f4," * (MOST_TEXT // 4), [1]])),
        msgpack.packb(extension(ARRAY, ["(" + "1," * (MOST_TEXT // 4) + ")f4", [1]])),
        msgpack.packb(extension(ARRAY, [[["a", "<f4"]] * 10, [1]])),
        msgpack.packb(extension(ARRAY, {})),
    ],
    ids=["levels", "sides", "arrays", "types", "subarrays", "record", "no array"],
)
def test_a_message_takes_little_time_and_no_stack_whatever_it_says(text):
    """The first would end the judge's process, the second and third keep it for a minute."""
    with pytest.raises(BorderError, match="what arrived") as raised:
        received(framed(text))
    assert len(str(raised.value)) < 400


def test_a_message_takes_little_memory_whatever_it_says():
    count = MOST_TEXT // 8
    lists = b"\xdd" + struct.pack(">I", count) + b"\x90" * count  # each byte becomes a list
    tracemalloc.start()
    try:
        assert len(received(framed(lists))) == count
        assert tracemalloc.get_traced_memory()[1] < 100 * count
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("lengths", [(MOST_TEXT + 1, 0), (10, MOST_BYTES + 1), (2**32 - 1, 2**64 - 1)])
def test_a_message_above_the_limit_is_refused_before_it_is_taken(lengths):
    with pytest.raises(BorderError, match="too long"):
        received(struct.pack(">IQ", *lengths) + bytes(1000))


@pytest.mark.parametrize("value", [bytes(MOST_TEXT + 1), np.broadcast_to(np.int8(1), MOST_BYTES + 1)])
def test_a_message_above_the_limit_is_not_sent(value):
    left, right = socket.socketpair()
    with left, right, pytest.raises(BorderError, match="too long"):
        Channel(left).send(value)


def test_a_message_that_does_not_end_is_late():
    left, right = socket.socketpair()
    with left, right:
        left.sendall(framed(msgpack.packb(bytes(1000)))[:-1])
        with pytest.raises(BorderError, match="in time"):
            Channel(right).receive(0.2)


def test_a_message_that_comes_byte_by_byte_is_late():
    left, right = socket.socketpair()
    with right, left, ThreadPoolExecutor() as pool:

        def trickle():
            """A whole message, if each byte began a new time limit."""
            for _ in range(12):
                left.sendall(b"\0")
                time.sleep(0.05)

        sending = pool.submit(trickle)
        with pytest.raises(BorderError, match="in time"):
            Channel(right).receive(0.2)
        sending.result()


def test_who_does_not_listen_is_not_waited_for():
    left, right = socket.socketpair()
    with left, right, pytest.raises(BorderError, match="not taken"):
        Channel(left).send(np.zeros(2**24, np.int8), seconds=0.2)


def test_the_other_side_that_has_died_is_not_waited_for():
    left, right = socket.socketpair()
    with left, right, pytest.raises(BorderError, match="has ended"):
        Channel(right).receive(60, is_alive=lambda: False)
