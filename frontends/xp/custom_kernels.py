"""`xp.kernel`: an elementwise operation of the user's own, which fuses like any other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from passkit import ast
from passkit.errors import ArgumentError, DTypeError, RegistryError, RuleError, nearest
from passkit.frontends.xp.array import Array, operand_value, wrap
from passkit.frontends.xp.elementwise_operations import cast, common_dtype
from passkit.frontends.xp.formulas import TextFormula
from passkit.frontends.xp.runtime import OPERATIONS, apply, apply_several, operation
from passkit.frontends.xp.view_rules import MASKED, RULES, Rule, intersection, union
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, var
from passkit.graph.op import OpPattern, list_ops, register_op
from passkit.program.executable import Executable
from passkit.program.planning import planned
from passkit.values.arguments import refuse, shown
from passkit.values.dtype import DType, dtype_of, float64

REGISTERS_FOR_CALLERS = True
"""Operators that this module registers belong to the files that call it, see `calling_place`."""

VIEW_RULES: dict[str, Rule | None] = {
    "entire": None,
    "union": union,
    "intersection": intersection,
}
"""The rules of views by name."""

ViewRuleName = Literal["entire", "union", "intersection"]
_kernels: dict[str, CustomKernel] = {}


class CustomKernel:
    """An elementwise function of arrays, which `passkit.xp.kernel` creates.

    Creating it registers its operator, its operation and its rule of views, see `view_of`.

    Attributes:
        name: its name, also that of its operator in `passkit.ops`.
        operands: the names of its operands.
        num_results: the number of its results.
        view: its rule of views.
        definition: the formula, the dtype, the rule of views and the function of NumPy arrays.
    """

    def __init__(
        self,
        definition: tuple[Any, str, ViewRuleName, Callable[..., Any] | None],
        name: str,
        formula: Callable[..., Any],
        operands: tuple[str, ...],
        num_results: int,
    ) -> None:
        self.definition = definition
        text, self._dtype, self.view, self._numpy = definition
        self.name, self.operands, self.num_results = name, operands, num_results
        self._formula = formula
        doc = text if isinstance(text, str) else inspect.getdoc(text) or ""
        self._operator = register_op(name, len(operands), num_results, doc=doc)
        self._operator.set_attr("FCodeGen", self._element)
        self._operator.set_attr("TOpPattern", OpPattern.ELEMWISE)
        on_arrays = None if self._numpy is None else self._on_arrays
        OPERATIONS.define(f"kernel.{name}", self._build, on_arrays)
        rule = VIEW_RULES[self.view]
        if rule is not None:
            RULES[f"kernel.{name}"] = rule
        if self.view == "intersection":
            MASKED.add(f"kernel.{name}")

    def _element(self, node: Node, *operands: Any) -> Any:
        """Return the expression of an element of the result for those of the operands.

        It is a tuple of them for several results; ``node`` is not read. Errors of the formula pass.
        """
        return self._formula(*operands)

    def _domain(self, dtypes: Sequence[DType]) -> DType:
        """Return the dtype to compute in, for the dtypes of the operands.

        It is the kernel's own; or the common one, for "float" a float.

        Raises: DTypeError if they have no common one.
        """
        if self._dtype in ("float", "common"):
            return common_dtype(dtypes, "float" if self._dtype == "float" else "")
        return dtype_of(self._dtype)

    def _build(self, *operands: Entry) -> Any:
        """Build the operator on operands, which are converted to the dtype to compute in.

        Returns: An entry, or a tuple of them for several results.

        Raises: DTypeError if an operand is complex; ShapeError if the shapes do not broadcast;
            RuleError if the formula returns something else than expressions.
        """
        dtype = self._domain([e.dtype for e in operands if e.dtype is not None])
        return self._operator(*[cast(e, dtype) for e in operands])

    def _on_arrays(self, *arrays: Any) -> Any:
        """Return the results by the function of NumPy arrays, in the dtype to compute in.

        Only for a kernel with such a function; the result is what that returns, and its errors
        pass.
        """
        assert self._numpy is not None
        dtype = self._domain([dtype_of(a.dtype) for a in arrays]).numpy
        return self._numpy(*[a.astype(dtype, copy=False) for a in arrays])

    def __call__(self, *operands: Any) -> Any:
        """Apply the kernel to arrays and numbers, which are broadcast.

        The result is queued, or computed at once by the function of NumPy arrays if the operands
        are small and computed.

        Returns: An array, or a tuple of them if the formula has several results.

        Raises:
            ArgumentError: The number of operands differs, or one is no array and no number.
            DTypeError: An operand is complex, or a Python integer does not fit the others' dtype.
            ShapeError: The shapes do not broadcast, or to too many elements.
            DeviceError: The arrays are on several devices.
        """
        if len(operands) != len(self.operands):
            raise ArgumentError(
                f"{self.name} takes {', '.join(self.operands)}, got {len(operands)} operands"
            )
        dtypes = [x.dtype for x in operands if isinstance(x, (Array, np.ndarray, np.generic))]
        like = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        values = [operand_value(x, like) for x in operands]
        op = operation(f"kernel.{self.name}")
        if self.num_results == 1:
            return wrap(apply(op, *values))
        return tuple(wrap(v) for v in apply_several(op, *values))

    def __repr__(self) -> str:
        return f"xp.kernel({self.name!r}: {', '.join(self.operands)})"

    def source(self, target: str = "cpu", dtype: Any = "float32") -> str:
        """Return the source text of the kernel that this function is by itself, for vectors.

        Args:
            target: "cpu" for C++, "opencl" for OpenCL C, "cuda" for CUDA C++. The device need not
                be there.
            dtype: the dtype of the operands.

        Raises: SettingError if there is no such target; DTypeError if there is no such dtype, or it
            is complex.
        """
        element_type = dtype_of(dtype)
        inputs = [var(name, ("n",), element_type) for name in self.operands]
        kernels = planned(self._graph(inputs), "CodeGen", target=target).attrs["kernel"].values()
        return "\n".join(str(kernel) for kernel in kernels)

    def verify(self, *operands: Any, rtol: float = 1e-12) -> None:
        """Check the compiled kernel against the function of NumPy, if there is one.

        Also check its rule of views "union" or "intersection", on the first result. Without a
        function of NumPy and such a rule, nothing is checked.

        Args:
            *operands: arrays or numbers to check it with, one for each operand; without any,
                random matrices of float64 from -2 to 2, the same each time.
            rtol: the relative error that is allowed.

        Raises:
            ArgumentError: The number of operands differs, or ``rtol`` is no number.
            DTypeError: An operand is complex, or has no dtype of passkit.
            ShapeError: The shapes do not broadcast, or to too many elements.
            RuleError: A result differs, the number of results does, or the first one is not 0 where
                the rule says so.
        """
        if operands and len(operands) != len(self.operands):
            raise ArgumentError(
                f"{self.name} takes {', '.join(self.operands)}, got {len(operands)} operands"
            )
        if not isinstance(rtol, (int, float)):
            refuse(f"{self.name}.verify: rtol", rtol, "a number")
        arrays = [np.asarray(a) for a in operands]
        if not arrays:
            rng = np.random.default_rng(0)
            arrays = [rng.uniform(-2, 2, (24, 24)) for _ in self.operands]
        if self._numpy is not None:
            self._compare(arrays, rtol)
        if self.view == "union":
            self._check_zero([np.zeros_like(a) for a in arrays], "all operands are")
        elif self.view == "intersection":
            for k, name in enumerate(self.operands):
                zeros = [np.zeros_like(a) if j == k else a for j, a in enumerate(arrays)]
                self._check_zero(zeros, f"{name} is")

    def _check_zero(self, arrays: list[Any], reason: str) -> None:
        """Check that all elements of the first result for these operands are 0.

        Raises: RuleError if one is not. ``reason`` says in it which operands are 0.
        """
        result = self._compiled(arrays)[0]
        if np.any(result != 0):
            raise RuleError(
                f"{self.name}: by the view rule {self.view!r} it must be 0 where {reason} 0, got "
                f"{result[result != 0][0]}"
            )

    def _compare(self, arrays: list[Any], rtol: float) -> None:
        """Compare the compiled results for these operands with those of the function of NumPy.

        Raises: RuleError if an element differs by more than ``rtol`` times NumPy's, or the number
        of results does; NaN equals NaN. DTypeError or ShapeError as `_build`.
        """
        results = self._compiled(arrays)  # first, as it has the better messages
        expected = self._on_arrays(*arrays)
        expected = expected if isinstance(expected, tuple) else (expected,)
        if len(expected) != self.num_results:
            raise RuleError(
                f"{self.name}: the formula has {self.num_results} results, and the function of "
                f"NumPy {len(expected)}"
            )
        for k, (result, array) in enumerate(zip(results, expected, strict=True)):
            array = np.broadcast_to(array, result.shape)
            close = np.isclose(result, array, rtol=rtol, atol=0, equal_nan=True)
            if not close.all():
                index = np.unravel_index(int(np.argmin(close)), close.shape)
                raise RuleError(
                    f"{self.name}: result {k} at {tuple(map(int, index))} is {result[index]}, and "
                    f"{array[index]} by NumPy"
                )

    def _compiled(self, arrays: list[Any]) -> list[Any]:
        """Return the results of the compiled kernel for these operands, NumPy arrays in a list.

        Raises: DTypeError, ShapeError or RuleError, as `_build`.
        """
        named = dict(zip(self.operands, arrays, strict=True))
        inputs = [var(name, a.shape, dtype_of(a.dtype)) for name, a in named.items()]
        return list(Executable(self._graph(inputs), {})(named))

    def _graph(self, inputs: Sequence[Entry]) -> Graph:
        """Return the graph whose outputs are the results for inputs, one for each operand.

        Raises: DTypeError, ShapeError or RuleError, as `_build`.
        """
        results = self._build(*inputs)
        return Graph([results] if isinstance(results, Entry) else list(results))


def kernel(
    name: str,
    formula: str | Callable[..., Any],
    /,
    *,
    dtype: Any = "float",
    view: ViewRuleName = "entire",
    numpy: Callable[..., Any] | None = None,
) -> CustomKernel:
    """Define an elementwise operation, which is compiled into the kernels of its neighbours.

    Its shape, dtype, gradient and meaning in NumPy follow from the formula.

    Args:
        name: its name, an identifier that no operator has.
        formula: the result in Python's syntax, such as ``"cap * tanh(x / cap)"``: operands are the
            names that it reads, in the order of their appearance, and functions are those of
            `passkit.ast`. Assignments may precede the result, and several results have commas
            between them. Or a function of expressions of `passkit.ast`.
        dtype: the dtype that operands are converted to: "float" keeps the common dtype of floats
            and converts integers, as `exp` does; "common" keeps the common dtype; or a real one or
            its name.
        view: what is known of zeros, for triangular arrays: "union" if the result is 0 where all
            operands are, "intersection" if it is 0 where one is, "entire" if neither.
        numpy: the same function of NumPy arrays: small arrays are computed by it, and
            `CustomKernel.verify` compares with it. None: small arrays are queued, too.

    Returns: A function of arrays. A call with the name and all arguments of an earlier one returns
        the same function.

    Raises:
        ParseError: The text of the formula is not understood.
        ArgumentError: The formula is neither text nor a function of positional operands, or reads
            none, or returns no expressions; there is no such view rule; ``numpy`` is no function;
            or the name is no identifier.
        DTypeError: There is no such dtype, it is complex, or a function of the formula does not
            take it; "float" and "common" are tried with float64.
        RegistryError: There is an operator of this name.

    >>> from passkit import xp
    >>> softcap = xp.kernel("doc_softcap", "cap * tanh(x / cap)")
    >>> round(float(softcap(30.0, xp.asarray(100.0))), 3)
    29.924
    """
    is_named = isinstance(dtype, str) and dtype in ("float", "common")
    probe = float64 if is_named else dtype_of(dtype)
    definition = formula, dtype if is_named else probe.name, view, numpy
    earlier = _kernels.get(name) if isinstance(name, str) else None
    if earlier is not None and earlier.definition == definition:
        return earlier  # a cell of a notebook that runs again
    if not isinstance(view, str) or view not in VIEW_RULES:
        raise ArgumentError(
            f"kernel {name}: there is no view rule {shown(view)}; {nearest(str(view), VIEW_RULES)}"
        )
    if numpy is not None and not callable(numpy):
        raise ArgumentError(f"kernel {name}: numpy must be a function, got {shown(numpy)}")
    if probe.kind == "c":
        raise DTypeError(f"kernel {name}: dtype must be real, got {probe}")
    if isinstance(formula, str):
        parsed = TextFormula(f"kernel {name}", formula)
        function: Callable[..., Any] = parsed
        operands = parsed.operands
    else:
        function, operands = formula, _parameters(name, formula)
    if not operands:
        raise ArgumentError(f"kernel {name}: the formula reads no operand")
    result = function(*[ast.Var(operand, probe) for operand in operands])
    results = result if isinstance(result, tuple) else (result,)
    if not results or not all(isinstance(each, ast.Expr) for each in results):
        raise ArgumentError(
            f"kernel {name}: the formula must return an expression of passkit.ast, or a tuple of "
            f"them, got {shown(result)}"
        )
    if name in list_ops():
        raise RegistryError(f"kernel {name}: there is an operator of this name; choose another")
    custom = CustomKernel(definition, name, function, operands, len(results))
    _kernels[name] = custom
    return custom


def _parameters(name: str, formula: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a formula that is a function.

    ``name`` is that of the kernel, for messages. Raises: ArgumentError if the formula is no
    function, or its parameters are not all positional.
    """
    if not callable(formula):
        raise ArgumentError(
            f"kernel {name}: a formula is text or a function of expressions, got {shown(formula)}"
        )
    parameters = inspect.signature(formula).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind not in kinds for p in parameters):
        raise ArgumentError(f"kernel {name}: a formula has one positional parameter per operand")
    return tuple(p.name for p in parameters)
