"""The option ``freezing``: parameters and buffers as constants, which follow their changes."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch._dynamo.exc import BackendCompilerFailed  # noqa: E402

from passkit.frontends.torch import passkit_backend  # noqa: E402
from passkit.frontends.torch.reports import GraphRecord, recording  # noqa: E402


def convolutions() -> Any:
    """Return a network with two convolutions and statistics that are not those of its start."""
    norm = torch.nn.BatchNorm2d(8)
    norm.running_mean.normal_()
    first, last = torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 16, 3)
    return torch.nn.Sequential(first, norm, torch.nn.ReLU(), last).eval()


def frozen(model: Any, **options: Any) -> Any:
    """Return a compiled model whose parameters are constants."""
    return torch.compile(model, backend=passkit_backend, options={"freezing": True, **options})


def inputs_of(record: GraphRecord) -> list[str]:
    """Return the names of the inputs of a compiled graph."""
    assert record.program is not None and record.program.executable is not None
    return [x.name for x in record.program.executable.inputs]


def assert_same(actual: Any, expected: Any) -> None:
    """Check that two tensors are almost equal."""
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_only_data_are_inputs() -> None:
    """Parameters and buffers are no inputs, and less is launched."""
    model, x = convolutions(), torch.randn(2, 3, 10, 10)
    launches = []
    for freezing in (False, True):
        torch._dynamo.reset()
        with recording() as records, torch.no_grad():
            assert_same(frozen(model, freezing=freezing)(x), model(x))
        assert len(inputs_of(records[0])) == (1 if freezing else 9)
        assert records[0].program is not None and records[0].program.executable is not None
        launches.append(records[0].program.executable.stats["launches"])
    assert launches[1] < launches[0]


def change_parameter(model: Any) -> None:
    """Change a filter in place."""
    with torch.no_grad():
        model[0].weight.mul_(2)


def change_buffer(model: Any) -> None:
    """Change a statistic in place."""
    model[1].running_var.mul_(3)


def change_element(model: Any) -> None:
    """Change an element by a view."""
    with torch.no_grad():
        model[3].bias[1:2] += 1


def take_step(model: Any) -> None:
    """Let an optimizer change all parameters."""
    model(torch.ones(1, 3, 10, 10)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.01).step()


def load_state(model: Any) -> None:
    """Load other parameters and buffers."""
    model.load_state_dict(convolutions().state_dict())


def replace_parameter(model: Any) -> None:
    """Replace a filter by another tensor."""
    model[0].weight = torch.nn.Parameter(torch.randn(8, 3, 3, 3))


def replace_data(model: Any) -> None:
    """Let a parameter have other memory."""
    model[0].weight.data = torch.randn(8, 3, 3, 3)


@pytest.mark.parametrize(
    "change",
    [
        change_parameter,
        change_buffer,
        change_element,
        take_step,
        load_state,
        replace_parameter,
        replace_data,
    ],
    ids=lambda change: change.__name__,
)
def test_changes_are_seen(change: Any) -> None:
    """A call after a change computes with the new values, and so does one after that."""
    model, x = convolutions(), torch.randn(2, 3, 10, 10)
    fast = frozen(model)
    with torch.no_grad():
        before = fast(x)
        assert_same(fast(x), before)
    change(model)
    with torch.no_grad():
        expected = model(x)
        assert (expected - before).abs().max() > 1e-3
        for _ in range(2):
            assert_same(fast(x), expected)


def test_two_models_of_one_graph_have_their_own_values() -> None:
    """Models that share a compiled function do not share constants."""
    models, x = [convolutions(), convolutions()], torch.randn(2, 3, 10, 10)
    fast = frozen(lambda model, x: model(x))
    with torch.no_grad():
        for model in (*models, *models):
            assert_same(fast(model, x), model(x))


def test_gradients_are_not_frozen() -> None:
    """A graph that needs gradients has parameters as inputs, and the gradients are right."""
    model, x = convolutions(), torch.randn(2, 3, 10, 10)
    with recording() as records:
        frozen(model)(x).square().sum().backward()
    assert min(len(inputs_of(x)) for x in records) > 1
    actual = [p.grad for p in model.parameters()]
    model.zero_grad(set_to_none=True)
    model(x).square().sum().backward()
    for one, parameter in zip(actual, model.parameters(), strict=True):
        torch.testing.assert_close(one, parameter.grad, rtol=1e-3, atol=1e-2)


def test_tensors_of_inference_mode_stay_inputs() -> None:
    """Changes of them are not counted, and are seen nevertheless."""
    with torch.inference_mode():
        model, x = convolutions(), torch.randn(2, 3, 10, 10)
        fast = frozen(model)
        with recording() as records:
            assert_same(fast(x), model(x))
        assert len(inputs_of(records[0])) > 1
        model[0].weight.mul_(2)
        assert_same(fast(x), model(x))


def test_other_batch_sizes_use_the_same_constants() -> None:
    """Sizes are symbols beside constants."""
    model = convolutions()
    fast = torch.compile(model, backend=passkit_backend, dynamic=True, options={"freezing": True})
    with torch.no_grad(), recording() as records:
        for batch in (2, 3, 5):
            x = torch.randn(batch, 3, 10, 10)
            assert_same(fast(x), model(x))
    assert len(records) == 1


def test_parameters_of_symbolic_sizes_stay_inputs() -> None:
    """One compilation serves layers of several sizes, whose weights are no constants."""
    fast = torch.compile(
        lambda layer, x: layer(x), backend=passkit_backend, dynamic=True, options={"freezing": True}
    )
    with (
        torch._dynamo.config.patch(
            force_parameter_static_shapes=False, force_nn_module_property_static_shapes=False
        ),
        torch.no_grad(),
        recording() as records,
    ):
        for size in (4, 6):
            layer, x = torch.nn.PReLU(size), torch.randn(3, size)
            assert_same(fast(layer, x), layer(x))
    assert len(inputs_of(records[0])) == 2


def test_stored_graphs_are_frozen_again() -> None:
    """A graph from PyTorch's cache takes the values of the model that it is called with."""
    x = torch.randn(2, 3, 10, 10)
    for _ in range(2):
        torch._dynamo.reset()
        model = convolutions()
        with torch.no_grad(), recording() as records:
            assert_same(frozen(model)(x), model(x))
        assert len(inputs_of(records[0])) == 1


def test_records_have_the_frozen_program() -> None:
    """The arguments of a recorded call are arrays that the program computes the results of."""
    model, x = convolutions(), torch.randn(2, 3, 10, 10)
    with torch.no_grad(), recording() as records:
        expected = frozen(model)(x)
    program = records[0].program
    assert program is not None and program.executable is not None
    (actual,) = program.executable(program.feeds_of(records[0].calls[0]))
    assert_same(torch.from_numpy(actual).reshape(expected.shape), expected)


def test_the_option_is_a_truth_value() -> None:
    """Another value is refused."""
    with pytest.raises(BackendCompilerFailed, match=r"freezing must be True or False, got 'yes'"):
        frozen(lambda x: x + 1, freezing="yes")(torch.ones(3))
