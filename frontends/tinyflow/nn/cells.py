"""Recurrent cells: one step of a network, from an input and a state to an output and a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow import arrays, clipping, creation, elementwise, linear_algebra
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    require_float,
    require_function,
    require_int,
)
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.initializers import constant_initializer, zeros_initializer
from passkit.frontends.tinyflow.nest import map_tuples
from passkit.frontends.tinyflow.nn.sampling import dropout
from passkit.frontends.tinyflow.scopes import get_variable, variable_scope
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor

LSTMStateTuple = namedtuple("LSTMStateTuple", ("c", "h"))
sigmoid = elementwise.FUNCTIONS["sigmoid"]
tanh = elementwise.FUNCTIONS["tanh"]


class RNNCell(ABC):
    """Base class of recurrent cells.

    A cell is called with the input and the state of one step, and returns the output and the next
    state. `zero_state` creates the first state.
    """

    @property
    @abstractmethod
    def state_size(self) -> Any:
        """The length of the state, or of each of its parts in nested tuples."""

    @property
    @abstractmethod
    def output_size(self) -> int:
        """The length of the output."""

    @abstractmethod
    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Tensor, Any]:
        """Compute one step.

        Args:
            inputs: A tensor of shape (examples, length).
            state: Tensors of shape (examples, size), in the structure of ``state_size``.
            scope: The variable scope of the first call; by default that of the cell.

        Returns:
            The output, of shape (examples, output_size), and the next state, in the structure of
            ``state``.
        """

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return a state of zeros.

        Args:
            batch_size: The number of examples, an int or a size that a run determines.
            dtype: The dtype of the state.

        Returns:
            Tensors of shape (batch_size, size), in the structure of ``state_size``.

        Raises:
            ShapeError: If ``batch_size`` is no int or size, or negative.
            DTypeError: If ``dtype`` is no element type.
        """
        return map_tuples(lambda n: creation.zeros([batch_size, n], dtype), self.state_size)


class LayerCell(RNNCell):
    """Base class of cells with variables, which the first call creates and later calls reuse.

    A new cell overrides `step`, `state_size` and `output_size`.

    Args:
        reuse: Whether the first call reuses variables, too; by default as the variable scope.
        name: The variable scope; None for the class attribute ``default``.
        dtype: The dtype of the variables; None for that of the inputs.
    """

    default = "rnn_cell"

    def __init__(self, reuse: bool | None, name: str | None, dtype: Any) -> None:
        self.reuse, self.name = reuse, name or self.default
        self.dtype = None if dtype is None else as_dtype(dtype)
        self._scope: Any = None

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Tensor, Any]:
        """Compute one step; see `RNNCell`.

        Args:
            inputs: A tensor of shape (examples, length).
            state: Tensors of shape (examples, size), in the structure of ``state_size``.
            scope: The variable scope of the first call; by default that of the cell.

        Returns:
            The output, and the next state in the structure of ``state``.

        Raises:
            ShapeError: If the inputs are no matrix of known width or of another than in the first
                call, or the state has another structure or other sizes.
            GraphError: If the variables of the first call exist and are not to be reused, or the
                other way round.
            DTypeError: If ``inputs`` holds no floats, or ``state`` has another dtype.
            ArgumentError: For a value that is neither a tensor nor numbers.
            SettingError: If an initializer of the cell is neither None nor a function.
        """
        x = convert_to_tensor(inputs)
        sizes = require_shape(x.entry, self.name)
        if len(sizes) != 2 or not isinstance(sizes[1], int):
            raise ShapeError(
                f"{self.name} needs inputs (examples, length) of known length, got {x!r}"
            )
        if not _matches_sizes(state, self.state_size):
            raise ShapeError(
                f"{self.name} needs a state of the structure {self.state_size!r}, got {state!r}; "
                f"cell.zero_state(batch_size, dtype) creates the first"
            )
        is_reused = self._scope is not None
        scope_or_name = self._scope if is_reused else (scope or self.name)
        with variable_scope(scope_or_name, reuse=True if is_reused else self.reuse) as inner_scope:
            self._scope = inner_scope
            return self.step(x, state)

    @abstractmethod
    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Compute one step inside the variable scope of the cell.

        Args:
            x: Input of shape (examples, length).
            state: State in the structure of ``state_size``: tensors of shape (examples, size).

        Returns:
            The output, of shape (examples, output_size), and the next state, in the structure of
            ``state_size``.

        Raises:
            ShapeError: If the shapes do not fit each other or those of reused variables.
            GraphError: If the variables exist and the scope does not reuse variables, or the other
                way round.
            DTypeError: If ``x`` holds no floats, or ``state`` or the cell has another dtype.
            SettingError: If an initializer of the cell is neither None nor a function.
        """

    def weights(
        self, name: str, shape: Sequence[int], dtype: Any, initializer: Any = None
    ) -> Tensor:
        """Create or reuse a variable of the cell.

        Args:
            name: Name in the cell's scope.
            shape: Shape of the variable.
            dtype: Dtype of the variable if the cell has none.
            initializer: Creates the initial value; None for the initializer of the scope.

        Returns:
            The variable.

        Raises:
            GraphError: If it exists and the scope does not reuse variables, or the other way round.
            ShapeError: If a reused variable has another shape.
            SettingError: If the initializer is neither None nor a function.
            ArgumentError: If it returns neither a tensor nor numbers.
            DTypeError: If the initializer returns a tensor of another dtype.
        """
        return get_variable(name, shape, self.dtype or dtype, initializer)


def _matches_sizes(state: Any, sizes: Any) -> bool:
    """Return whether a state has the structure of a cell's ``state_size``.

    Args:
        state: A tensor or numbers, or these in nested tuples or lists; None never matches.
        sizes: The state size: an int for one tensor, which is no tuple, or a nested tuple for
            tuples or lists of its length. The extents are not compared.
    """
    if not isinstance(sizes, tuple):
        return state is not None and not isinstance(state, tuple)
    parts = isinstance(state, (tuple, list)) and len(state) == len(sizes)
    return parts and all(map(_matches_sizes, state, sizes))


def _nonlinearity(cell: Any, activation: Any) -> Callable[[Tensor], Tensor]:
    """Return the activation of a cell, or tanh for None.

    Raises:
        SettingError: If it is no function.
    """
    if activation is None:
        return tanh
    return require_function(type(cell).__name__, "activation", activation)


class BasicRNNCell(LayerCell):
    """A simple recurrent cell: h' = activation([x, h] @ kernel + bias).

    Source: Elman, Finding Structure in Time.

    Args:
        num_units: The length of the output and of the state, an int.
        activation: The nonlinearity, a function of a tensor; tanh by default.
        reuse: Whether the first call reuses variables, too; by default as the variable scope.
        name: The variable scope; "basic_rnn_cell" by default.
        dtype: The dtype of the variables; by default that of the inputs.

    Raises:
        SettingError: If ``num_units`` is no int, or ``activation`` no function.
        DTypeError: If ``dtype`` is no element type.
        ShapeError: If ``num_units`` is a `Dimension` that is unknown.
    """

    default = "basic_rnn_cell"

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(reuse, name, dtype)
        self.units = require_int(type(self).__name__, "num_units", num_units)
        self.activation = _nonlinearity(self, activation)

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self.units

    output_size = state_size

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Compute one step inside the variable scope of the cell.

        Args:
            x: The input, of shape (examples, length).
            state: The last h, of shape (examples, num_units).

        Returns:
            The next h, of shape (examples, num_units), twice: as output and as state.

        Raises:
            ShapeError: If the shapes do not fit each other or those of reused variables.
            GraphError: If the variables exist and the scope does not reuse variables, or the other
                way round.
            DTypeError: If ``x`` holds no floats, or ``state`` or the cell has another dtype.
        """
        width = int(x.shape[1]) + self.units
        kernel = self.weights("kernel", [width, self.units], x.dtype)
        bias = self.weights("bias", [self.units], x.dtype, zeros_initializer())
        h = self.activation(linear_algebra.matmul(arrays.concat([x, state], 1), kernel) + bias)
        return h, h


class BasicLSTMCell(LayerCell):
    """A long short-term memory cell.

    It computes c' = c * sigmoid(f + forget_bias) + sigmoid(i) * tanh(j) and h' = tanh(c') *
    sigmoid(o), where i, j, f and o are the parts of [x, h] @ kernel + bias. Source: Zaremba and
    others, Recurrent Neural Network Regularization.

    Args:
        num_units: The length of the output and of the state, an int.
        forget_bias: A number that is added to the forget gate; 1 by default.
        state_is_tuple: Whether the state is an `LSTMStateTuple` (default), not one tensor of c and
            h side by side.
        activation: The nonlinearity, a function of a tensor; tanh by default.
        reuse: Whether the first call reuses variables, too; by default as the variable scope.
        name: The variable scope; "basic_lstm_cell" by default.
        dtype: The dtype of the variables; by default that of the inputs.

    Raises:
        SettingError: If ``num_units`` is no int, ``forget_bias`` no number, or ``activation`` no
            function.
        DTypeError: If ``dtype`` is no element type.
        ShapeError: If ``num_units`` is a `Dimension` that is unknown.
    """

    default = "basic_lstm_cell"

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(reuse, name, dtype)
        self.units = require_int(type(self).__name__, "num_units", num_units)
        self.forget_bias = require_float(type(self).__name__, "forget_bias", forget_bias)
        self.tuples, self.activation = state_is_tuple, _nonlinearity(self, activation)

    @property
    def state_size(self) -> Any:
        """The lengths of c and h; their sum without ``state_is_tuple``."""
        return LSTMStateTuple(self.units, self.units) if self.tuples else 2 * self.units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self.units

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Compute one step inside the variable scope of the cell.

        Args:
            x: The input, of shape (examples, length).
            state: The last c and h: an `LSTMStateTuple`, or one tensor with both side by side
                without ``state_is_tuple``.

        Returns:
            The output h', and the next state of c' and h', in the form of ``state``.

        Raises:
            ShapeError: If the shapes do not fit each other or those of reused variables.
            GraphError: If the variables exist and the scope does not reuse variables, or the other
                way round.
            DTypeError: If ``x`` holds no floats, or ``state`` or the cell has another dtype.
        """
        c, h = state if self.tuples else arrays.split(state, 2, 1)
        width = int(x.shape[1]) + self.units
        kernel = self.weights("kernel", [width, 4 * self.units], x.dtype)
        bias = self.weights("bias", [4 * self.units], x.dtype, zeros_initializer())
        z = linear_algebra.matmul(arrays.concat([x, h], 1), kernel) + bias
        i, j, f, o = arrays.split(z, 4, 1)
        forget_gate = f + self.forget_bias if self.forget_bias else f
        new_c = c * sigmoid(forget_gate) + sigmoid(i) * self.activation(j)
        new_h = self.activation(new_c) * sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h) if self.tuples else arrays.concat(
            [new_c, new_h], 1
        )


class LSTMCell(LayerCell):
    """A `BasicLSTMCell` with optional peepholes, projection and clipping.

    Source: Sak and others, Long Short-Term Memory Recurrent Neural Network Architectures for Large
    Scale Acoustic Modeling.

    Args:
        num_units: The length of c, and of the output without a projection; an int.
        use_peepholes: Whether the gates also read c, times weights; False by default.
        cell_clip: The largest absolute value of c; None (default) for no limit.
        initializer: Creates the initial weights; by default that of the variable scope.
        num_proj: The length to which the output is projected; None (default) for no projection.
        proj_clip: The largest absolute value of the projected output; None (default) for no limit.
        num_unit_shards: Unsupported; only the default is accepted.
        num_proj_shards: Unsupported; only the default is accepted.
        forget_bias: A number that is added to the forget gate; 1 by default.
        state_is_tuple: Whether the state is an `LSTMStateTuple` (default), not one tensor of c and
            h side by side.
        activation: The nonlinearity, a function of a tensor; tanh by default.
        reuse: Whether the first call reuses variables, too; by default as the variable scope.
        name: The variable scope; "lstm_cell" by default.
        dtype: The dtype of the variables; by default that of the inputs.

    Raises:
        SettingError: If ``num_units`` or ``num_proj`` is no int, ``forget_bias``, ``cell_clip`` or
            ``proj_clip`` no number, ``activation`` no function, or an unsupported argument is set.
        DTypeError: If ``dtype`` is no element type.
        ShapeError: If ``num_units`` or ``num_proj`` is a `Dimension` that is unknown.
    """

    default = "lstm_cell"

    @reject_arguments("weights are one variable each", "num_unit_shards", "num_proj_shards")
    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(reuse, name, dtype)
        self.units = require_int("LSTMCell", "num_units", num_units)
        self.projected = None if num_proj is None else require_int("LSTMCell", "num_proj", num_proj)
        self.peepholes, self.initializer = use_peepholes, initializer
        self.clips = tuple(
            None if limit is None else require_float("LSTMCell", argument, limit)
            for argument, limit in (("cell_clip", cell_clip), ("proj_clip", proj_clip))
        )
        self.forget_bias = require_float("LSTMCell", "forget_bias", forget_bias)
        self.tuples, self.activation = state_is_tuple, _nonlinearity(self, activation)

    @property
    def state_size(self) -> Any:
        """The lengths of c and h; their sum without ``state_is_tuple``."""
        sizes = LSTMStateTuple(self.units, self.output_size)
        return sizes if self.tuples else sum(sizes)

    @property
    def output_size(self) -> int:
        """The length of the projection, or the number of units without one."""
        return self.projected or self.units

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Compute one step inside the variable scope of the cell.

        Args:
            x: The input, of shape (examples, length).
            state: The last c and h: an `LSTMStateTuple`, or one tensor with both side by side
                without ``state_is_tuple``.

        Returns:
            The output h', and the next state of c' and h', in the form of ``state``.

        Raises:
            ShapeError: If the shapes do not fit each other or those of reused variables.
            GraphError: If the variables exist and the scope does not reuse variables, or the other
                way round.
            DTypeError: If ``x`` holds no floats, or ``state`` or the cell has another dtype.
            SettingError: If an initializer of the cell is neither None nor a function.
        """
        n = self.units
        c, h = state if self.tuples else arrays.split(state, [n, self.output_size], 1)
        width = int(x.shape[1]) + self.output_size
        kernel = self.weights("kernel", [width, 4 * n], x.dtype, self.initializer)
        bias = self.weights("bias", [4 * n], x.dtype, zeros_initializer())
        i, j, f, o = arrays.split(
            linear_algebra.matmul(arrays.concat([x, h], 1), kernel) + bias, 4, 1
        )
        f = f + self.forget_bias if self.forget_bias else f
        if self.peepholes:
            peephole_weights = [
                self.weights(f"w_{gate}_diag", [n], x.dtype, self.initializer) for gate in "fio"
            ]
            f, i = f + peephole_weights[0] * c, i + peephole_weights[1] * c
        new_c = _clip(sigmoid(f) * c + sigmoid(i) * self.activation(j), self.clips[0])
        if self.peepholes:
            o = o + peephole_weights[2] * new_c
        new_h = sigmoid(o) * self.activation(new_c)
        if self.projected is not None:
            projection = self.weights(
                "projection/kernel", [n, self.projected], x.dtype, self.initializer
            )
            new_h = _clip(linear_algebra.matmul(new_h, projection), self.clips[1])
        return new_h, LSTMStateTuple(new_c, new_h) if self.tuples else arrays.concat(
            [new_c, new_h], 1
        )


def _clip(x: Tensor, limit: float | None) -> Tensor:
    """Limit ``x`` to the range from -limit to limit; return ``x`` itself if ``limit`` is None."""
    return x if limit is None else clipping.clip_by_value(x, -limit, limit)


class GRUCell(LayerCell):
    """A gated recurrent unit: h' = u * h + (1 - u) * activation([x, r * h] @ kernel + bias).

    The gates r and u are sigmoid([x, h] @ kernel + bias). Source: Cho and others, Learning Phrase
    Representations using RNN Encoder-Decoder.

    Args:
        num_units: The length of the output and of the state, an int.
        activation: The nonlinearity, a function of a tensor; tanh by default.
        reuse: Whether the first call reuses variables, too; by default as the variable scope.
        kernel_initializer: Creates the initial kernels; by default that of the variable scope.
        bias_initializer: Creates the initial biases; by default ones for the gates, else zeros.
        name: The variable scope; "gru_cell" by default.
        dtype: The dtype of the variables; by default that of the inputs.

    Raises:
        SettingError: If ``num_units`` is no int, or ``activation`` no function.
        DTypeError: If ``dtype`` is no element type.
        ShapeError: If ``num_units`` is a `Dimension` that is unknown.
    """

    default = "gru_cell"

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(reuse, name, dtype)
        self.units = require_int(type(self).__name__, "num_units", num_units)
        self.activation = _nonlinearity(self, activation)
        self.kernels, self.biases = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self.units

    output_size = state_size

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Compute one step inside the variable scope of the cell.

        Args:
            x: The input, of shape (examples, length).
            state: The last h, of shape (examples, num_units).

        Returns:
            The next h, of shape (examples, num_units), twice: as output and as state.

        Raises:
            ShapeError: If the shapes do not fit each other or those of reused variables.
            GraphError: If the variables exist and the scope does not reuse variables, or the other
                way round.
            DTypeError: If ``x`` holds no floats, or ``state`` or the cell has another dtype.
            SettingError: If an initializer of the cell is neither None nor a function.
        """
        n, width = self.units, int(x.shape[1]) + self.units
        ones = self.biases or constant_initializer(1.0)
        kernel = self.weights("gates/kernel", [width, 2 * n], x.dtype, self.kernels)
        bias = self.weights("gates/bias", [2 * n], x.dtype, ones)
        gates = sigmoid(linear_algebra.matmul(arrays.concat([x, state], 1), kernel) + bias)
        r, u = arrays.split(gates, 2, 1)
        candidate_kernel = self.weights("candidate/kernel", [width, n], x.dtype, self.kernels)
        candidate_bias = self.weights(
            "candidate/bias", [n], x.dtype, self.biases or zeros_initializer()
        )
        candidate = self.activation(
            linear_algebra.matmul(arrays.concat([x, r * state], 1), candidate_kernel)
            + candidate_bias
        )
        h = u * state + (1 - u) * candidate
        return h, h


class MultiRNNCell(LayerCell):
    """A stack of cells: the output of each is the input of the next.

    Args:
        cells: The cells, first to last; one or more.
        state_is_tuple: Must be True, the default.

    Raises:
        SettingError: Without cells, for anything but a list or tuple of them, or with
            ``state_is_tuple=False``.
    """

    default = "multi_rnn_cell"

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        super().__init__(None, None, None)
        if not isinstance(cells, (list, tuple)) or not cells or state_is_tuple is not True:
            raise SettingError(
                f"MultiRNNCell needs a list of cells, and states as tuples, got {cells!r} and "
                f"state_is_tuple={state_is_tuple!r}"
            )
        self.cells: list[RNNCell] = list(cells)

    @property
    def state_size(self) -> Any:
        """A tuple with the state size of each cell."""
        return tuple(cell.state_size for cell in self.cells)

    @property
    def output_size(self) -> int:
        """The output size of the last cell."""
        return self.cells[-1].output_size

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Compute one step of all cells, each in the variable scope ``cell_`` and its number.

        Args:
            x: The input of the first cell, of shape (examples, length).
            state: A tuple or list with the state of each cell.

        Returns:
            The output of the last cell, and a tuple with the next state of each cell.

        Raises:
            ShapeError: If the shapes do not fit each other or those of reused variables.
            GraphError: If the variables exist and the scope does not reuse variables, or the other
                way round.
            DTypeError: If ``x`` holds no floats, or ``state`` or a cell has another dtype.
            ValueError: For another number of states than of cells.
            SettingError: If an initializer of a cell is neither None nor a function.
        """
        states = []
        for k, (cell, cell_state) in enumerate(zip(self.cells, state, strict=True)):
            with variable_scope(f"cell_{k}"):
                x, new_state = cell(x, cell_state)
            states.append(new_state)
        return x, tuple(states)


class DropoutWrapper(RNNCell):
    """A cell with dropout on its inputs, outputs and state.

    Args:
        cell: The cell to wrap.
        input_keep_prob: The probability of keeping an element of the input, a number or a tensor; 1
            by default.
        output_keep_prob: The same for the output.
        state_keep_prob: The same for each part of the next state.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
    """

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        seed: int | None = None,
    ) -> None:
        self.cell, self.seed = cell, seed
        self.keep = input_keep_prob, output_keep_prob, state_keep_prob

    @property
    def state_size(self) -> Any:
        """The state size of the wrapped cell."""
        return self.cell.state_size

    @property
    def output_size(self) -> int:
        """The output size of the wrapped cell."""
        return self.cell.output_size

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Tensor, Any]:
        """Compute one step of the wrapped cell, with dropout; see `RNNCell`.

        Args:
            inputs: A tensor of shape (examples, length).
            state: Tensors of shape (examples, size), in the structure of ``state_size``.
            scope: The variable scope of the first call; by default that of the cell.

        Returns:
            The output, and the next state in the structure of ``state``.

        Raises:
            SettingError: If a probability is neither a tensor nor a number above 0 and up to 1, or
                the seed is no int.
            ShapeError: As the wrapped cell, which may also raise GraphError, DTypeError and
                ArgumentError.
        """
        input_keep, output_keep, state_keep = self.keep
        output, new_state = self.cell(dropout(inputs, input_keep, seed=self.seed), state, scope)
        if not isinstance(state_keep, float) or state_keep != 1.0:
            new_state = map_tuples(lambda s: dropout(s, state_keep, seed=self.seed), new_state)
        return dropout(output, output_keep, seed=self.seed), new_state
