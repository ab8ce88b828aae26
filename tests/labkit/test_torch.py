"""Kernels as operators of PyTorch, against PyTorch's own: on the CPU in the simulator, and on a GPU."""

import re
from pathlib import Path

import numpy as np
import pytest

import labkit
from simt.common.errors import LaunchError

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install labkit[torch]")

import labkit.torch  # noqa: E402

ROOT = Path(labkit.__file__).parents[1]
SOFTMAX = r"""
extern "C" __global__ void softmax(const float* x, float* out, int columns)
{
    // One warp per row.
    const float* row = x + blockIdx.x * columns;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += 32)
        most = fmaxf(most, row[i]);
    for (int step = 16; step; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    for (int i = threadIdx.x; i < columns; i += 32)
        sum += expf(row[i] - most);
    for (int step = 16; step; step /= 2)
        sum += __shfl_xor_sync(~0u, sum, step);
    for (int i = threadIdx.x; i < columns; i += 32)
        out[blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}"""
ADD_ONE = 'extern "C" __global__ void add_one(TYPE* x) { x[threadIdx.x] = x[threadIdx.x] + TYPE(1); }'
HEADERS = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def on(request, monkeypatch):
    """The device of the tensors, which is also labkit's."""
    if request.param == "cuda":
        request.getfixturevalue("gpu")
        if not torch.cuda.is_available():
            pytest.skip("PyTorch finds no GPU")
        monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    else:
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
    return request.param


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)
    torch._dynamo.reset()


def numbers(*shape, on="cpu", grad=False):
    return (2 * torch.rand(shape) - 1).to(on).requires_grad_(grad)


def add_one(type_="float"):
    return labkit.RawKernel(HEADERS + ADD_ONE.replace("TYPE", type_), "add_one")


@pytest.fixture
def softmax(on):
    """A student's kernel as an operator, with a gradient in PyTorch's operations."""

    def launch_of(out, x):
        return x.shape[0], 32, (x, out, np.int32(x.shape[1]))

    def gradient(ctx, of_out):
        (out,) = ctx.saved_tensors
        return out * (of_out - (of_out * out).sum(1, keepdim=True))

    @labkit.torch.operator("tests::softmax", labkit.RawKernel(SOFTMAX, "softmax"), launch_of)
    def operator(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    operator.register_autograd(
        gradient, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output)
    )
    return operator


class TestProduct:
    @pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (33, 45, 70), (64, 64, 500)])
    def test_equals_pytorch(self, on, m, n, k):
        a, b = numbers(m, k, on=on), numbers(k, n, on=on)
        found = labkit.torch.matmul(a, b)
        assert (found.device.type, found.dtype) == (on, torch.float32)
        torch.testing.assert_close(found.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
    def test_of_empty_matrices_is_zero_as_in_pytorch(self, on, m, n, k):
        a, b = numbers(m, k, on=on), numbers(k, n, on=on)
        torch.testing.assert_close(labkit.torch.matmul(a, b), a @ b)

    def test_has_the_gradients_of_pytorchs(self, on):
        a, b, weights = numbers(9, 8, on=on, grad=True), numbers(8, 7, on=on, grad=True), numbers(9, 7, on=on)
        found = torch.autograd.grad((labkit.torch.matmul(a, b) * weights).sum(), (a, b))
        torch.testing.assert_close(found, torch.autograd.grad(((a @ b) * weights).sum(), (a, b)))

    def test_takes_the_gradient_of_a_sum_which_has_no_memory_of_its_own(self, on):
        a, b = numbers(5, 6, on=on, grad=True), numbers(6, 4, on=on)
        (found,) = torch.autograd.grad(labkit.torch.matmul(a, b).sum(), a)
        torch.testing.assert_close(found, torch.autograd.grad((a @ b).sum(), a)[0])

    def test_has_second_gradients(self, on):
        a, b = numbers(5, 6, on=on, grad=True), numbers(6, 4, on=on, grad=True)

        def second(product):
            (first,) = torch.autograd.grad(product(a, b).square().sum(), a, create_graph=True)
            return torch.autograd.grad(first.square().sum(), (a, b))

        torch.testing.assert_close(second(labkit.torch.matmul), second(torch.matmul), rtol=1e-4, atol=1e-4)

    def test_passes_pytorchs_checks_of_operators(self, on):
        a, b = numbers(9, 8, on=on, grad=True), numbers(8, 7, on=on, grad=True)
        found = torch.library.opcheck(torch.ops.labkit.matmul.default, (a, b))
        assert set(found.values()) == {"SUCCESS"}

    def test_can_be_compiled_with_its_gradient(self, on):
        a, b = numbers(9, 8, on=on, grad=True), numbers(8, 7, on=on, grad=True)

        def loss(product):
            return (product(a.relu(), b) + 1).square().sum()

        compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
        found = compiled(labkit.torch.matmul)
        torch.testing.assert_close(found, loss(torch.matmul))
        torch.testing.assert_close(
            torch.autograd.grad(found, (a, b)), torch.autograd.grad(loss(torch.matmul), (a, b))
        )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"a": torch.ones(2, 3, 4)}, r"a has the shape \(2, 3, 4\); a matrix has two dimensions"),
            ({"a": torch.ones(3, 4).double()}, r"a is a tensor of torch.float64. Pass a.float\(\)"),
            ({"b": torch.ones(5, 4).t()}, r"b with .* strides \(1, 4\) is not contiguous. Pass b.contiguous"),
            ({"b": torch.ones(5, 4)}, r"a \(3, 4\) has 4 columns and b \(5, 4\) has 5 rows"),
            ({"b": torch.ones(4, 5, device="meta")}, r"a is on cpu and b on meta"),
        ],
    )
    def test_tells_what_does_not_fit(self, change, message):
        given = {"a": torch.ones(3, 4), "b": torch.ones(4, 5)} | change
        with pytest.raises(ValueError, match=message):
            labkit.torch.matmul(**given)


class TestStudentsKernel:
    def test_equals_pytorch(self, softmax, on):
        x = numbers(5, 70, on=on)
        torch.testing.assert_close(softmax(x), x.softmax(1))

    def test_has_the_gradient_that_was_registered(self, softmax, on):
        x, weights = numbers(3, 40, on=on, grad=True), numbers(3, 40, on=on)
        (found,) = torch.autograd.grad((softmax(x) * weights).sum(), x)
        torch.testing.assert_close(found, torch.autograd.grad((x.softmax(1) * weights).sum(), x)[0])

    def test_passes_pytorchs_checks_of_operators(self, softmax, on):
        found = torch.library.opcheck(softmax, (numbers(3, 40, on=on, grad=True),))
        assert set(found.values()) == {"SUCCESS"}

    def test_can_be_compiled(self, softmax, on):
        x = numbers(5, 70, on=on)
        compiled = torch.compile(lambda x: softmax(x * 2) + 1, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), (x * 2).softmax(1) + 1)

    def test_of_no_rows_is_not_launched(self, softmax, on):
        assert softmax(numbers(0, 40, on=on)).shape == (0, 40)

    def test_may_have_several_outputs(self, on):
        source = """extern "C" __global__ void halves(const float* x, float* low, float* high) {
            low[threadIdx.x] = x[threadIdx.x];
            high[threadIdx.x] = x[threadIdx.x + blockDim.x];
        }"""

        def launch_of(low, high, x):
            return 1, low.numel(), (x, low, high)

        @labkit.torch.operator("tests::halves", labkit.RawKernel(source, "halves"), launch_of)
        def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.new_empty(x.numel() // 2), x.new_empty(x.numel() // 2)

        x = numbers(12, on=on)
        torch.testing.assert_close(halves(x), (x[:6], x[6:]))

    def test_without_a_gradient_says_how_to_give_one(self, on):
        @labkit.torch.operator("tests::same", add_one(), lambda out, x: (1, out.numel(), (out,)))
        def same(x: torch.Tensor) -> torch.Tensor:
            return torch.empty_like(x)

        with pytest.raises(RuntimeError, match="use register_autograd"):
            same(numbers(4, on=on, grad=True)).sum().backward()


class TestLaunch:
    def test_writes_into_the_tensor(self, on):
        x = torch.arange(12, device=on, dtype=torch.float32)
        labkit.torch.launch(add_one(), 1, 4, (x[8:],))
        assert x.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12]

    @pytest.mark.parametrize(
        ("type_", "dtype"),
        [("double", "float64"), ("int", "int32"), ("__half", "float16"), ("__nv_bfloat16", "bfloat16")],
    )
    def test_takes_every_type_of_the_course(self, on, type_, dtype):
        x = torch.tensor([1, 2], device=on, dtype=getattr(torch, dtype))
        labkit.torch.launch(add_one(type_), 1, 2, (x,))
        assert x.tolist() == [2, 3]

    @pytest.mark.parametrize(
        ("tensor", "message"),
        [
            (torch.ones(4, 4).t(), r"argument 0 of `add_one` .* is not contiguous. Pass .contiguous\(\)"),
            (torch.ones(4).double(), r"tensor of torch.float64, and the kernel declares `float \*`"),
            (torch.ones(4).bfloat16(), r"tensor of torch.bfloat16, and the kernel declares `float \*`"),
            (torch.ones(4, requires_grad=True), r"requires a gradient, .* Pass .detach\(\)"),
            (torch.ones(4, device="meta"), r"runs on no device meta. Pass tensors of the CPU"),
            (3.0, "are on no device: there are none"),
        ],
    )
    def test_tells_what_does_not_fit(self, monkeypatch, tensor, message):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        with pytest.raises(LaunchError, match=message):
            labkit.torch.launch(add_one(), 1, 4, (tensor,))

    def test_refuses_tensors_of_several_devices(self, monkeypatch):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        with pytest.raises(LaunchError, match=r"are on cpu and meta\. Pass tensors of one device"):
            labkit.torch.launch(add_one(), 1, 4, (torch.ones(4), torch.ones(4, device="meta")))

    def test_of_a_tensor_that_needs_a_gradient_works_where_none_is_asked_for(self, on):
        x = torch.ones(4, device=on, requires_grad=True)
        with torch.no_grad():
            labkit.torch.launch(add_one(), 1, 4, (x,))
        assert x.tolist() == [2] * 4

    def test_says_that_a_tensor_on_a_gpu_does_not_fit_the_simulator(self, monkeypatch):
        from torch._subclasses import FakeTensorMode

        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        with FakeTensorMode():  # there need not be a GPU
            x = torch.empty(4, device="cuda")
        with pytest.raises(LaunchError, match=r"are on cuda:0, and .* for the simulator. Pass .*\.cpu\(\)"):
            labkit.torch.launch(add_one(), 1, 4, (x,))

    @pytest.mark.gpu
    def test_goes_into_the_current_stream_of_pytorch(self, gpu):
        """In another one, the kernel would not wait for the multiplications before it."""
        stream, kernel = torch.cuda.Stream(), add_one()
        x = torch.zeros(4, device="cuda")
        labkit.torch.launch(kernel, 1, 4, (x,))  # the first launch waits for the GPU
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            x.fill_(5)
            labkit.torch.launch(kernel, 1, 4, (x,))
            x.mul_(2)
        stream.synchronize()
        assert x.tolist() == [12] * 4

    @pytest.mark.gpu
    def test_of_tensors_on_the_cpu_is_simulated_beside_a_gpu(self, gpu):
        x = torch.ones(4)
        labkit.torch.launch(add_one(), 1, 4, (x,))
        assert x.tolist() == [2] * 4
        torch.testing.assert_close(labkit.torch.matmul(x[None], x[:, None]), torch.tensor([[16.0]]))


class Block(torch.nn.Module):
    """A layer of a transformer; `product` multiplies all its matrices."""

    def __init__(self, width, heads, product):
        super().__init__()
        self.heads, self.product = heads, product
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        shapes = {"qkv": (width, 3 * width), "out": (width, width)}
        shapes |= {"up": (width, 4 * width), "down": (4 * width, width)}
        self.weights = torch.nn.ParameterDict(
            {name: numbers(*shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
        )

    def forward(self, x):
        x = x + self.product(self.attended(self.norms[0](x)), self.weights["out"])
        hidden = torch.nn.functional.gelu(self.product(self.norms[1](x), self.weights["up"]))
        return x + self.product(hidden, self.weights["down"])

    def attended(self, x):
        split = self.product(x, self.weights["qkv"]).unflatten(1, (3, self.heads, -1))
        mask = torch.ones(len(x), len(x), device=x.device).triu(1).bool()
        found = []
        for q, k, v in split.permute(2, 1, 0, 3).contiguous():  # of each head
            scores = self.product(q, k.t().contiguous()) / q.shape[1] ** 0.5
            found.append(self.product(scores.masked_fill(mask, -torch.inf).softmax(1), v))
        return torch.cat(found, 1)


class Transformer(torch.nn.Module):
    """2 layers with 2 heads and a width of 32; logits of 50 words."""

    def __init__(self, product):
        super().__init__()
        torch.manual_seed(1)
        self.product = product
        self.words, self.places = numbers(50, 32), numbers(16, 32)
        self.blocks = torch.nn.Sequential(*(Block(32, 2, product) for _ in range(2)))
        self.head = torch.nn.Parameter(numbers(32, 50) / 32**0.5)

    def forward(self, words):
        x = self.words.to(words.device)[words] + self.places.to(words.device)
        return self.product(self.blocks(x), self.head)


@pytest.fixture
def own_product(on):
    """A product of the course's simplest rung, as a student would make it an operator."""
    kernel = labkit.kernels.load("matmul/1_naive")

    def launch_of(out, a, b):
        (m, k), n = a.shape, b.shape[1]
        problem = labkit.problem("matmul", m, n, k)
        grid, block = labkit.kernels.launch("matmul/1_naive", problem)
        return grid, block, (a, b, out, *problem.scalars())

    @labkit.torch.operator("tests::product", kernel, launch_of)
    def operator(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.new_empty(a.shape[0], b.shape[1])

    return operator


class TestTransformer:
    @pytest.mark.parametrize("whose", ["labkit", "student"])
    def test_has_the_logits_of_pytorch(self, on, own_product, whose):
        product = labkit.torch.matmul if whose == "labkit" else own_product
        words = torch.randint(50, (16,)).to(on)
        with torch.no_grad():
            found, wanted = (Transformer(each).to(on)(words) for each in (product, torch.matmul))
        assert wanted.shape == (16, 50) and wanted.std() > 0.1
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)

    def test_learns_as_pytorchs(self, on):
        words = torch.randint(50, (16,)).to(on)
        gradients = []
        for product in (labkit.torch.matmul, torch.matmul):
            model = Transformer(product).to(on)
            torch.nn.functional.cross_entropy(model(words), words.roll(-1)).backward()
            gradients.append([each.grad for each in model.parameters()])
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)

    def test_can_be_compiled(self, on):
        model, words = Transformer(labkit.torch.matmul).to(on), torch.randint(50, (16,)).to(on)
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(
            compiled(words), Transformer(torch.matmul).to(on)(words), rtol=0, atol=1e-5
        )


def test_the_examples_of_the_page_run(on):
    names: dict = {}
    for example in re.findall(r"```python\n(.*?)```", (ROOT / "docs/torch.md").read_text("utf-8"), re.DOTALL):
        exec(example, names)
    assert names["doubled"].tolist() == [3] * 1000
    x = torch.ones(4, requires_grad=True)
    names["scale"](x, 3.0).sum().backward()
    assert x.grad.tolist() == [3] * 4
