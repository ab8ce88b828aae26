"""Kernels as operators of PyTorch, for tensors on a GPU and on a CPU.

`operator` makes an operator of a kernel, and `launch` runs a kernel on tensors. `matmul` is `labkit.matmul`
as the operator `labkit::matmul`, with its gradient. `torch.compile` takes operators.

Tensors on a GPU reach CuPy through DLPack, and the kernel is put into PyTorch's current stream. Tensors on a
CPU run in the simulator, also where there is a GPU. Neither is copied: a kernel writes into the tensor.

PyTorch is the extra `torch`. `import labkit` does not import this module; `import labkit.torch` does.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, cast

import ml_dtypes  # also gives NumPy the names of bfloat16 and fp8
import numpy as np

from labkit import mend
from labkit.devices import select
from labkit.kernels.matmul import product
from simt import AnyKernel
from simt import Kernel as SimulatedKernel
from simt.common.errors import LaunchError
from simt.kernel import PATIENCE_SECONDS, SECONDS, Size
from simt.sanitizer.element_types import mismatch

try:
    import torch
except ImportError as missing:
    raise ImportError(
        f"labkit.torch needs PyTorch, which cannot be imported here ({missing}). Run: {mend.install('torch')}"
    ) from missing

__all__ = ["launch", "matmul", "operator"]

Outputs: TypeAlias = torch.Tensor | tuple[torch.Tensor, ...]
Launch = tuple[Size, Size, Sequence[object]]  # grid, block, and the kernel's arguments


def operator(
    name: str,
    kernel: AnyKernel,
    launch_of: Callable[..., Launch],
    shared_mem: int = 0,
    timeout: float = SECONDS,
) -> Callable[[Callable[..., Outputs]], torch.library.CustomOpDef]:
    """Make the operator `name` of a kernel, such as "lab::scale": a decorator.

    It decorates a function that takes the operator's inputs and returns its outputs without values, such as
    `torch.empty_like(x)`. From its type hints PyTorch reads what the operator takes, and by running it the
    shapes, where `torch.compile` needs them. `launch_of(*outputs, *inputs)` returns grid, block and the
    kernel's arguments, as for `launch`; it is not called where all outputs are empty.

    The result is a `torch.library.CustomOpDef`. It has no gradient until its `register_autograd` gives it
    one.
    """

    def decorate(empty: Callable[..., Outputs]) -> torch.library.CustomOpDef:
        def run(*inputs: Any) -> Outputs:
            made = empty(*inputs)
            outputs = (made,) if isinstance(made, torch.Tensor) else tuple(made)
            if any(output.numel() for output in outputs):
                launch(kernel, *launch_of(*outputs, *inputs), shared_mem=shared_mem, timeout=timeout)
            return made

        schema = torch.library.infer_schema(empty, mutates_args=())
        made = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
        made.register_fake(empty)
        return made

    return decorate


def launch(
    kernel: AnyKernel,
    grid: Size,
    block: Size,
    args: Sequence[object],
    shared_mem: int = 0,
    timeout: float = SECONDS,
) -> None:
    """Launch a kernel whose arrays are tensors: `kernel(grid, block, args)` for PyTorch.

    Tensors on a CPU run in the simulator, within `timeout` seconds. Tensors on a GPU run there, in PyTorch's
    current stream, and the call returns before the result is there.

    Raises LaunchError, before anything runs, for tensors on several devices or on another one than the
    kernel, that are not contiguous, require a gradient or do not have the kernel's types, and whatever the
    kernel raises.
    """
    where = _device_of(kernel, args)
    simulated = cast(SimulatedKernel, kernel.simulated)
    types = simulated.parameter_types or [""] * len(args)
    for position, (arg, declared) in enumerate(zip(args, types, strict=False)):
        if isinstance(arg, torch.Tensor):
            _check(f"argument {position} of `{kernel.name}`", arg, declared)
    if where.type == "cpu":
        simulated(grid, block, [_converted(arg, _on_cpu) for arg in args], shared_mem, timeout)
        return
    with _current_stream(where) as cupy:
        on_gpu = [_converted(arg, partial(_on_gpu, cupy)) for arg in args]
        kernel(grid, block, on_gpu, shared_mem, timeout)


def _device_of(kernel: AnyKernel, args: Sequence[object]) -> torch.device:
    """Return the one device of the tensors among the arguments. Raises LaunchError."""
    devices = {arg.device for arg in args if isinstance(arg, torch.Tensor)}
    if len(devices) != 1:
        found = " and ".join(sorted(map(str, devices))) or "no device: there are none"
        raise LaunchError(f"the tensors of `{kernel.name}` are on {found}. Pass tensors of one device.")
    (device,) = devices
    if device.type not in ("cpu", "cuda"):
        raise LaunchError(f"`{kernel.name}` runs on no device {device}. Pass tensors of the CPU: .cpu()")
    if device.type == "cuda":
        _check_gpu(kernel, device)
    return device


def _check_gpu(kernel: AnyKernel, device: torch.device) -> None:
    """Refuse tensors on a GPU for a kernel that is not on this GPU. Raises LaunchError."""
    here = select.device()
    if here.kind != "gpu" or select.array_module(kernel) is np:
        raise LaunchError(
            f"the tensors of `{kernel.name}` are on {device}, and the kernel is compiled for the simulator. "
            "Pass tensors of the CPU: .cpu(), or compile the kernel where LABKIT_DEVICE is unset or gpu."
        )
    if here.index != device.index:
        raise LaunchError(
            f"the tensors of `{kernel.name}` are on {device}, and labkit works on {here}. Set "
            f"LABKIT_DEVICE=gpu:{device.index} before the kernel is compiled."
        )


def _check(name: str, tensor: torch.Tensor, declared: str) -> None:
    """Refuse a tensor that a kernel cannot take as a parameter of the declared type. Raises LaunchError."""
    if tensor.requires_grad and torch.is_grad_enabled():
        raise LaunchError(
            f"{name} requires a gradient, which a launch does not give. Pass .detach(), or make an operator "
            "with labkit.torch.operator and register_autograd."
        )
    if not tensor.is_contiguous():
        raise LaunchError(f"{name} {_layout(tensor)} is not contiguous. Pass .contiguous()")
    if reason := mismatch(_dtype(tensor), declared):
        raise LaunchError(f"{name} is a tensor of {tensor.dtype}, and {reason.partition('. Pass')[0]}.")


def _layout(tensor: torch.Tensor) -> str:
    return f"with the shape {tuple(tensor.shape)} and the strides {tensor.stride()}"


def _dtype(tensor: torch.Tensor) -> np.dtype:
    """Return NumPy's type of a tensor's elements; bfloat16 and fp8 are those of ml_dtypes."""
    return np.dtype(str(tensor.dtype).removeprefix("torch."))


def _converted(arg: object, convert: Callable[[torch.Tensor], Any]) -> object:
    return convert(_bits(arg)) if isinstance(arg, torch.Tensor) else arg


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor's memory: as integers where neither NumPy nor CuPy has its type."""
    if _dtype(tensor).type.__module__ != ml_dtypes.__name__:
        return tensor.detach()
    return tensor.detach().view({1: torch.uint8, 2: torch.int16}[tensor.itemsize])


def _on_cpu(tensor: torch.Tensor) -> np.ndarray:
    return tensor.numpy()


def _on_gpu(cupy: Any, tensor: torch.Tensor) -> Any:
    return cupy.from_dlpack(tensor)


@contextmanager
def _current_stream(device: torch.device) -> Iterator[Any]:
    """Make PyTorch's current stream that of CuPy, and give CuPy."""
    import cupy

    stream = torch.cuda.current_stream(device)
    with cupy.cuda.ExternalStream(stream.cuda_stream, device.index):
        yield cupy


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product of contiguous float32 matrices a (M,K) and b (K,N), by `labkit.matmul`'s kernels.

    The gradient is two such products. Those of several CUDA streams must not run at the same time: their
    blocks would share one workspace. Raises ValueError for tensors that do not fit.
    """
    return _matmul(a, b)


@torch.library.custom_op("labkit::matmul", mutates_args=())
def _matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = _product_of(a, b)
    (m, k), n = a.shape, b.shape[1]
    if 0 in (m, n, k):
        return out.zero_()
    plan = product.plan(m, n, k)
    launch(plan.kernel, plan.grid, plan.block, (a, b, out, *plan.numbers), timeout=PATIENCE_SECONDS)
    return out


@_matmul.register_fake
def _product_of(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product without values. Raises ValueError for tensors that do not fit."""
    for name, tensor in (("a", a), ("b", b)):
        if tensor.ndim != 2:
            raise ValueError(f"{name} has the shape {tuple(tensor.shape)}; a matrix has two dimensions.")
        if tensor.dtype != torch.float32:
            raise ValueError(f"{name} is a tensor of {tensor.dtype}. Pass {name}.float()")
        if not tensor.is_contiguous():
            raise ValueError(f"{name} {_layout(tensor)} is not contiguous. Pass {name}.contiguous()")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"a {tuple(a.shape)} has {a.shape[1]} columns and b {tuple(b.shape)} has {b.shape[0]} rows; "
            "these numbers must be equal."
        )
    if a.device != b.device:
        raise ValueError(f"a is on {a.device} and b on {b.device}. Pass tensors of one device.")
    return a.new_empty((a.shape[0], b.shape[1]))


def _keep(ctx: Any, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradients(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return the gradients of a, G bᵀ, and of b, aᵀ G; None where it is not asked for."""
    a, b = ctx.saved_tensors
    of_a, of_b = ctx.needs_input_grad
    gradient = gradient.contiguous()
    return (
        matmul(gradient, b.t().contiguous()) if of_a else None,
        matmul(a.t().contiguous(), gradient) if of_b else None,
    )


_matmul.register_autograd(_gradients, setup_context=_keep)
