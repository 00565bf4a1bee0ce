"""PyTorch's operators through the backend "passkit": a sample of OpInfos, and single importers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from benchmarks import torch_operators

from passkit.frontends.torch import passkit_backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
ENTRIES = (
    "__getitem__",
    "abs",
    "add",
    "addmm",
    "amax",
    "any",
    "argmax",
    "as_strided",
    "as_strided_scatter",
    "baddbmm",
    "bucketize",
    "cat",
    "cdist",
    "clamp",
    "complex",
    "cummax",
    "cumsum",
    "diagonal_scatter",
    "div.floor_rounding",
    "einsum",
    "fft.irfft",
    "flip",
    "frexp",
    "gather",
    "histc",
    "index_put",
    "index_reduce.mean",
    "kthvalue",
    "linalg.det",
    "linalg.inv",
    "linalg.solve_triangular",
    "linalg.vector_norm",
    "logsumexp",
    "masked.sum",
    "masked_scatter",
    "matmul",
    "median",
    "mode",
    "nn.functional.adaptive_avg_pool3d",
    "nn.functional.adaptive_max_pool2d",
    "nn.functional.avg_pool2d",
    "nn.functional.batch_norm",
    "nn.functional.conv2d",
    "nn.functional.conv_transpose2d",
    "nn.functional.dropout",
    "nn.functional.embedding",
    "nn.functional.gelu",
    "nn.functional.grid_sample",
    "nn.functional.interpolate.bilinear",
    "nn.functional.layer_norm",
    "nn.functional.max_pool2d",
    "nn.functional.pad.reflect",
    "nn.functional.scaled_dot_product_attention",
    "nn.functional.unfold",
    "pow",
    "round.decimals_3",
    "scatter_reduce.amax",
    "searchsorted",
    "softmax",
    "sort",
    "special.chebyshev_polynomial_u",
    "special.erfcx",
    "topk",
    "unfold_copy",
    "var_mean",
    "where",
)
"""The names of the OpInfos of the sample."""
DIFFERENTIATED = (
    "nn.functional.avg_pool2d",
    "nn.functional.conv_transpose2d",
    "nn.functional.layer_norm",
    "nn.functional.max_pool2d",
    "softmax",
)
"""Those whose gradients are compared."""


def outcome(name: str, dtype: str, is_backward: bool = False) -> torch_operators.Outcome:
    """Return the outcome of two samples of an entry."""
    names = [torch_operators.entry_name(info) for info in torch_operators.op_db]
    trial = torch_operators.Trial(
        position=names.index(name),
        dtype=dtype,
        samples=2,
        options={"target": "interpret"},
        mode="backward" if is_backward else "forward",
    )
    result = torch_operators.check(trial)
    assert result is not None
    return result


def through_passkit(function: Callable[..., Any], *args: Any, fallback: str = "error") -> Any:
    """Return what a function computes through the backend; with "error" without PyTorch."""
    torch._dynamo.reset()
    options = {"target": "interpret", "fallback": fallback}
    return torch.compile(function, backend=passkit_backend, options=options)(*args)


def assert_same(function: Callable[..., Any], *args: Any, fallback: str = "error") -> None:
    """Assert that a function computes the same through passkit as in PyTorch."""
    expected = function(*args)
    actual = through_passkit(function, *args, fallback=fallback)
    torch.testing.assert_close(actual, expected, equal_nan=True)


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_agrees_with_pytorch(name: str) -> None:
    """The samples of an OpInfo give the results of PyTorch."""
    result = outcome(name, "float32")
    assert result.problem == ""
    assert result.samples > 0


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients_of_an_entry_agree_with_pytorch(name: str) -> None:
    """The gradients of the samples of an OpInfo are those of PyTorch."""
    assert outcome(name, "float32", is_backward=True).problem == ""


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "bfloat16", "float64"])
def test_sums_agree_in_all_dtypes(dtype: str) -> None:
    """Sums have PyTorch's dtypes and values for each dtype of the operand."""
    assert outcome("sum", dtype).problem == ""


def test_max_pool_gives_positions_in_the_input() -> None:
    """The positions of a max pool with padding, dilation and ceil_mode count in the input."""
    x = torch.randn(2, 3, 9, 8)

    def pool(x: Any) -> Any:
        return torch.nn.functional.max_pool2d(
            x, (3, 2), 2, 1, (2, 1), ceil_mode=True, return_indices=True
        )

    assert_same(pool, x)


def test_average_pool_counts_elements_under_windows() -> None:
    """Means in ceil_mode divide by the elements under a window, with or without padding."""
    x = torch.randn(3, 7, 6)
    for includes_padding in (True, False):

        def pool(x: Any, includes: bool = includes_padding) -> Any:
            return torch.nn.functional.avg_pool2d(x, 3, 2, 1, True, includes)

        assert_same(pool, x)


def test_pools_take_symbolic_sizes() -> None:
    """Pools of symbolic sizes need no call of PyTorch."""
    torch._dynamo.reset()

    def pools(x: Any) -> Any:
        mean = torch.nn.functional.avg_pool2d(x, 2, 2, 1)
        return mean, torch.nn.functional.max_pool2d(x, 3, 2, 1)

    options = {"target": "interpret", "fallback": "error"}
    compiled = torch.compile(pools, backend=passkit_backend, options=options, dynamic=True)
    for size in (8, 11):
        x = torch.randn(2, 3, size, size + 2)
        torch.testing.assert_close(compiled(x), pools(x))


def test_indices_on_distant_axes_stand_in_front() -> None:
    """Indices on axes that are no neighbours give a result with their axes in front."""
    x = torch.randn(3, 4, 5)
    rows, columns = torch.tensor([0, -1]), torch.tensor([[1], [-2]])
    assert_same(lambda x: x[rows, :, columns], x)


def test_values_are_put_at_indices_of_a_middle_axis() -> None:
    """Values are added at indices of an axis that is not the first."""
    x, values = torch.zeros(3, 4, 2), torch.randn(3, 3, 2)
    index = torch.tensor([1, 1, -1])
    assert_same(lambda x, v: torch.ops.aten.index_put(x, [None, index], v, True), x, values)


def test_values_are_put_in_order_at_a_mask() -> None:
    """Several values are put, in order, where a mask is true; a single one everywhere."""
    x = torch.randn(2, 3)
    mask = torch.tensor([[True, False, True], [False, False, True]])
    assert_same(lambda x, m, v: x.index_put((m,), v), x, mask, torch.tensor([1.0, 2.0, 3.0]))
    assert_same(lambda x, m, v: x.index_put((m,), v), x, mask, torch.tensor(5.0))


def test_median_takes_the_first_nan_or_skips_it() -> None:
    """A median is NaN at the first NaN; nanmedian is the lower of the middle numbers."""
    x = torch.tensor([[3.0, float("nan"), 1.0, 2.0], [4.0, 1.0, 3.0, 2.0]])
    assert_same(lambda x: (torch.median(x, 1), torch.nanmedian(x, 1)), x)


def test_mode_is_the_smallest_of_the_most_frequent() -> None:
    """Where several elements occur equally often, the mode is the smallest of them."""
    x = torch.tensor([[3, 1, 3, 1, 2], [2, 2, 5, 4, 4]])
    assert_same(lambda x: torch.mode(x, 1).values, x)


def test_strides_of_overlapping_windows_are_gathered() -> None:
    """A view by strides whose elements overlap is a gather."""
    assert_same(lambda x: torch.as_strided(x, (3, 4), (2, 1), 1).clone(), torch.randn(10))


def test_expanded_results_have_their_strides() -> None:
    """A result that is an expanded tensor has strides of 0."""
    result = through_passkit(lambda x: torch.exp(x).expand(3, 4), torch.randn(4))
    assert result.shape == (3, 4)
    assert result.stride() == (0, 1)


def test_transforms_of_complex_numbers_are_computed_by_numpy() -> None:
    """Fourier transforms, products and parts of complex numbers need no call of PyTorch."""
    x = torch.randn(3, 8)
    assert_same(lambda x: torch.fft.ifft(torch.fft.fft(x) * (2 + 1j), norm="ortho").real, x)


def test_a_conjugate_is_computed() -> None:
    """The conjugate of a complex product has the opposite imaginary part."""
    x = torch.randn(4, 4, dtype=torch.complex64)
    assert_same(lambda x: (x @ x).conj() + 1, x)


def test_a_singular_matrix_raises_the_error_of_pytorch() -> None:
    """The inverse of a singular matrix raises PyTorch's error, which names the matrix."""
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        through_passkit(torch.linalg.inv, torch.zeros(2, 2))


def test_an_indefinite_matrix_has_an_error_code() -> None:
    """cholesky_ex gives an error code instead of an error."""
    matrices = torch.stack([torch.eye(2), -torch.eye(2)])
    _, info = through_passkit(lambda x: torch.linalg.cholesky_ex(x), matrices)
    assert (info != 0).tolist() == [False, True]


def test_random_operators_draw_the_numbers_of_pytorch() -> None:
    """Dropout and random tensors are those of PyTorch for the same seed, call after call."""

    def draw(x: Any) -> Any:
        return torch.nn.functional.dropout(x), torch.bernoulli(x / 2), torch.rand_like(x)

    x = torch.ones(40)
    torch.manual_seed(3)
    expected = [draw(x), draw(x)]
    compiled = torch.compile(draw, backend=passkit_backend, options={"target": "interpret"})
    torch.manual_seed(3)
    torch.testing.assert_close([compiled(x), compiled(x)], expected)


def test_operators_without_importers_are_named() -> None:
    """With the fallback "error" an operator that passkit does not have is named."""
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="aten::linalg_eig"):
        through_passkit(torch.linalg.eigvals, torch.eye(3))


def assert_same_gradients(function: Callable[..., Any], *args: Any) -> None:
    """Assert that the gradients by all arguments are those of PyTorch, without a call of it."""
    torch._dynamo.reset()
    options = {"target": "interpret", "fallback": "error"}
    compiled = torch.compile(function, backend=passkit_backend, options=options)
    grads = []
    for run in (compiled, function):
        own = [x.clone().requires_grad_() for x in args]
        run(*own).square().sum().backward()
        grads.append([x.grad for x in own])
    torch.testing.assert_close(grads[0], grads[1])


def test_transposed_convolutions_with_padded_results_have_gradients() -> None:
    """The gradients of a transposed convolution with output_padding reach the added rows."""

    def convolve(x: Any, filters: Any, bias: Any) -> Any:
        return torch.nn.functional.conv_transpose2d(x, filters, bias, 3, 1, (2, 1), 2)

    assert_same_gradients(
        convolve, torch.randn(2, 4, 3, 5), torch.randn(4, 3, 3, 2), torch.randn(6)
    )


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
def test_distances_have_gradients(p: float) -> None:
    """The gradients of distances of each order are those of PyTorch; equal vectors have none."""
    a = torch.randn(4, 3)
    b = torch.cat([a[:1], torch.randn(2, 3)])
    assert_same_gradients(lambda a, b: torch.cdist(a, b, p)[1:], a, b)


def test_attention_has_gradients() -> None:
    """The gradients of attention under a causal mask are those of PyTorch."""
    args = [torch.randn(2, 3, 5, 4) for _ in range(3)]

    def attend(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    assert_same_gradients(attend, *args)


def test_elements_put_at_a_mask_have_gradients() -> None:
    """The gradient of a masked scatter reaches the elements of the source that are used."""
    mask = torch.tensor([[True, False, True], [False, True, False]])
    assert_same_gradients(
        lambda x, source: x.masked_scatter(mask, source), torch.randn(2, 3), torch.randn(5)
    )


def test_special_functions_at_their_limits() -> None:
    """Special functions are exact at poles, at the ends of intervals and far outside."""
    x = torch.tensor([-1.0, 0.0, 0.3, 1.0, 5.0, 30.0], dtype=torch.float64)
    n = torch.tensor([3.0, 2.0, 5.0, 4.0, -1.0, 3.0], dtype=torch.float64)

    def functions(x: Any, n: Any) -> Any:
        special = torch.special
        return (
            special.erfcx(x),
            special.spherical_bessel_j0(x),
            special.polygamma(2, x),
            special.polygamma(3, x),
            special.chebyshev_polynomial_t(x, n),
            special.chebyshev_polynomial_u(x, n),
            special.chebyshev_polynomial_v(x, n),
            special.chebyshev_polynomial_w(x, n),
            torch.frexp(x),
        )

    assert_same(functions, x, n)


def test_truth_values_are_compared_as_numbers() -> None:
    """The maximum, minimum and sign of bools are bools."""
    x, y = torch.tensor([True, False, True]), torch.tensor([False, False, True])
    assert_same(lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), torch.sign(x)), x, y)


def test_histograms_count_the_end_of_the_last_interval() -> None:
    """The last interval of a histogram has both ends, elements outside are not counted."""
    x = torch.tensor([0.0, 1.0, 2.5, 4.0, 5.0, -1.0])
    assert_same(lambda x: (torch.histc(x, 4, 0, 4), torch.histc(x, 3)), x)


def test_rows_have_their_own_boundaries() -> None:
    """Elements are searched in the sorted row of the same number."""
    boundaries = torch.tensor([[1.0, 2.0, 3.0], [0.0, 2.0, 2.0]])
    x = torch.tensor([[2.0, 0.5], [2.0, 9.0]])
    assert_same(lambda b, x: torch.searchsorted(b, x, right=True), boundaries, x)
    assert_same(lambda b, x: torch.searchsorted(b, x), boundaries, x)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_embeddings_may_be_empty_or_padded(mode: str) -> None:
    """Bags without rows are 0; rows of the padding index do not count."""
    weight, indices = torch.randn(6, 3), torch.tensor([1, 2, 5, 5, 0, 2])
    offsets = torch.tensor([0, 3, 3, 4])

    def bags(weight: Any, indices: Any, offsets: Any) -> Any:
        return torch.nn.functional.embedding_bag(indices, weight, offsets, mode=mode, padding_idx=5)

    assert_same(bags, weight, indices, offsets)


def test_rows_of_embeddings_are_scaled_to_a_largest_norm() -> None:
    """Only the rows that are read are scaled, and only those whose norm is larger."""
    weight = 3 * torch.randn(5, 4)

    def rows(weight: Any, indices: Any) -> Any:
        return torch.ops.aten.embedding_renorm(weight, indices, 2.0, 2.0)

    assert_same(rows, weight, torch.tensor([0, 3, 3]))
