"""Inline PTX that leaves its state space: each access is a mistake there, whatever lies at the address."""

import numpy as np
import pytest

import simt
from simt.common.errors import InvalidAccess

MEMORY = """
__constant__ float constants[32] = {1, 2, 3};
__device__ float variable[32];
extern "C" __global__ void f(float* array, float* out) {
    __shared__ float shared[32];
    float local[32];
    int t = threadIdx.x;
    for (int i = 0; i < 32; ++i) local[i] = out[i];
    shared[t] = local[(t * 5) % 32];
    float value = 0;
    STATEMENT
    out[t] = value + shared[t] + local[(t * 3) % 32];
}"""
# Addresses, and the space that an instruction must name for them. Loads may name global memory for constants.
ADDRESSES = {
    "array": ("array + t", "global"),
    "variable": ("variable + t", "global"),
    "constants": ("constants + t", "const"),
    "shared": ("shared + t", "shared"),
    "local": ("local + t % 7", "local"),
}
LOAD = 'asm volatile("ld.{}.f32 %0, [%1];" : "=f"(value) : "l"({}) : "memory");'
STORE = 'asm volatile("st.{}.f32 [%0], %1;" :: "l"({}), "f"(value) : "memory");'
ADD = 'asm volatile("red.{}.add.f32 [%0], %1;" :: "l"({}), "f"(value) : "memory");'


def launch(statement):
    """Make the kernel and its arguments."""
    kernel = simt.RawModule(code=MEMORY.replace("STATEMENT", statement)).get_function("f")
    return kernel, (np.ones(32, np.float32), np.zeros(32, np.float32))


def memcheck(statement):
    kernel, args = launch(statement)
    return kernel.check(1, 32, args, tools=("memcheck",))


@pytest.mark.parametrize("address", ["array", "variable"])
def test_a_constant_load_of_global_memory(address):
    statement = LOAD.format("const", ADDRESSES[address][0])
    (finding,) = memcheck(statement)
    assert finding.line == 11
    assert "invalid constant read of 4 bytes: " in str(finding) and "is not in constant memory" in str(
        finding
    )
    kernel, args = launch(statement)
    for run in (kernel, kernel.profile):
        with pytest.raises(InvalidAccess, match="is not in constant memory"):
            run(1, 32, args)


@pytest.mark.parametrize("write", [STORE, ADD], ids=["store", "add"])
@pytest.mark.parametrize("space", ["global", "generic"])
def test_a_write_to_constant_memory(write, space):
    statement = write.format(space, "constants + t").replace(".generic", "")
    (finding,) = memcheck(statement)
    assert finding.line == 11 and "is in constant memory, which a kernel can only read" in str(finding)
    kernel, args = launch(statement)
    with pytest.raises(InvalidAccess, match="can only read"):
        kernel(1, 32, args)


@pytest.mark.parametrize(
    ("access", "pointer", "space"),
    [
        pytest.param(access, pointer, space, id=f"{access[14:16]}.{space} of {address}")
        for access in (LOAD, STORE)
        for address, (pointer, own) in ADDRESSES.items()
        for space in ("global", "shared", "const")
        if space != own
        and (space, access) != ("const", STORE)
        and (address, space) != ("constants", "global")
    ],
)
def test_an_access_through_another_space(access, pointer, space):
    findings = memcheck(access.format(space, pointer))
    assert [finding.line for finding in findings] == [11]


@pytest.mark.parametrize("address", ["array", "variable", "constants", "shared", "local"])
def test_a_generic_load_reads_any_space(address):
    assert memcheck(LOAD.format("generic", ADDRESSES[address][0]).replace(".generic", "")) == []


def test_constants_are_read_by_pointers_to_either_memory():
    kernel = simt.RawModule(
        code="""
        __constant__ float constants[32] = {1, 2, 3};
        __device__ float variable[32];
        extern "C" __global__ void f(float* out, int is_constant) {
            const float* from = is_constant ? constants : variable;
            variable[threadIdx.x] = 2;
            out[threadIdx.x] = from[threadIdx.x] + constants[threadIdx.x % 3] + constants[1];
        }"""
    ).get_function("f")
    for is_constant, expected in ((1, [4, 6, 8, 3]), (0, [5, 6, 7, 5])):
        args = (np.zeros(32, np.float32), np.int32(is_constant))
        assert kernel.check(1, 32, args) == []
        kernel(1, 32, args)
        np.testing.assert_array_equal(args[0][:4], expected)
