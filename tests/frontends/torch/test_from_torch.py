"""PyTorch modules as graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk

torch: Any = pytest.importorskip("torch")

from passkit.frontends.torch import from_torch  # noqa: E402  (after the skip)


class Scaled(torch.nn.Module):
    """A linear layer, scaled by a second input."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(16, 8)

    def forward(self, x: Any, scale: Any) -> Any:
        """Return the layer's result times a scale, and its sums."""
        y = torch.tanh(self.linear(x)) * scale
        return y, y.sum(-1)


def test_a_module_becomes_a_graph_with_named_inputs() -> None:
    """Parameters are constants; inputs have the names of forward's parameters."""
    module, x, scale = Scaled(), torch.randn(4, 16), torch.randn(8)
    graph = from_torch(module, (x, scale))
    assert {n.name for n in graph.inputs} == {"x", "scale"}
    assert {"p_linear_weight", "p_linear_bias"} <= {n.name for n in graph.nodes}
    actual = pk.compile(graph)(x=x.numpy(), scale=scale.numpy())
    for a, b in zip(actual, module(x, scale), strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_symbolic_extents_are_sizes_of_the_graph() -> None:
    """An extent that is dynamic in the export may be any number in a call."""
    module, x, scale = Scaled(), torch.randn(4, 16), torch.randn(8)
    graph = from_torch(module, (x, scale), dynamic_shapes=({0: torch.export.Dim("rows")}, None))
    run = pk.compile(graph)
    for rows in (2, 7):
        x = torch.randn(rows, 16)
        (y, _) = run(x=x.numpy(), scale=scale.numpy())
        np.testing.assert_allclose(y, module(x, scale)[0].detach().numpy(), rtol=1e-5, atol=1e-6)


class ScaledByName(Scaled):
    """The same layer with a scale that is passed by name."""

    def forward(self, x: Any, *, scale: Any) -> Any:
        """Return the layer's result times a scale, and its sums."""
        return super().forward(x, scale)


def test_parameters_may_be_passed_by_name() -> None:
    """A parameter that forward takes by name only is an input of that name."""
    module, x, scale = ScaledByName(), torch.randn(4, 16), torch.randn(8)
    graph = from_torch(module, (x,), example_kwargs={"scale": scale})
    actual = pk.compile(graph)(x=x.numpy(), scale=scale.numpy())
    for a, b in zip(actual, module(x, scale=scale), strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_an_exported_program_becomes_a_graph() -> None:
    """The result of torch.export is taken as it is."""
    module, x = torch.nn.Softmax(-1), torch.randn(3, 5)
    graph = from_torch(torch.export.export(module, (x,)))
    (y,) = pk.compile(graph)(input=x.numpy())
    np.testing.assert_allclose(y, module(x).numpy(), rtol=1e-6)


class Results(torch.nn.Module):
    """A module that returns a given function of its input and parameter."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.function = function

    def forward(self, x: Any) -> Any:
        """Return the function of the input and the parameter."""
        return self.function(x, self.weight)


def test_inputs_and_parameters_may_be_results() -> None:
    """An input that a module returns, such as of a dropout in evaluation, is an output."""
    x = torch.randn(2, 3)
    graph = from_torch(Results(lambda x, w: (x, w, x * w)), (x,))
    for a, b in zip(pk.compile(graph)(x=x.numpy()), (x, torch.ones(3), x), strict=True):
        np.testing.assert_array_equal(a, b.numpy())
    (y,) = pk.compile(from_torch(torch.nn.Dropout().eval(), (x,)))(input=x.numpy())
    np.testing.assert_array_equal(y, x.numpy())


def test_modules_without_tensors_to_compute_are_refused() -> None:
    """A result that is no tensor, and dtypes that passkit does not have, are named."""
    x = torch.ones(2, 3)
    with pytest.raises(pk.PasskitError, match=r"and result 1 of the module is 2; leave it out"):
        from_torch(Results(lambda x, w: (x * w, x.shape[0])), (x,))
    rows = {0: torch.export.Dim("rows")}
    with pytest.raises(pk.PasskitError, match=r"result 1 of the module is rows|result 1 .* is s\d"):
        from_torch(Results(lambda x, w: (x * w, x.shape[0])), (x,), dynamic_shapes=(rows,))
    with pytest.raises(pk.PasskitError, match=r"the module returns no tensor"):
        from_torch(Results(lambda x, w: ()), (x,))
    with pytest.raises(pk.PasskitError, match=r"passkit has no dtype for torch\.float8_e4m3fn"):
        from_torch(torch.nn.Identity(), (torch.ones(2).to(torch.float8_e4m3fn),))


def test_a_module_that_changes_buffers_is_refused() -> None:
    """A batch norm in training changes its statistics; eval() is the way out."""
    module = torch.nn.BatchNorm1d(4)
    with pytest.raises(pk.PasskitError, match=r"changes .*running_mean; call eval\(\)"):
        from_torch(module, (torch.randn(3, 4),))
    graph = from_torch(module.eval(), (torch.randn(3, 4),))
    assert pk.compile(graph)(input=np.ones((3, 4), "float32"))[0].shape == (3, 4)
