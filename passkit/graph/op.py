"""Operators: a name, counts, parameters, and attributes in the central registry."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

from passkit.errors import RegistryError, nearest
from passkit.graph import registry
from passkit.graph.registry import Setting, calling_place, declare
from passkit.values import arguments
from passkit.values.lazy import Lazy
from passkit.values.named import ask_hooks

if TYPE_CHECKING:
    from passkit.graph import call, describe
    from passkit.graph.node import Node
else:
    call = Lazy("passkit.graph.call")
    describe = Lazy("passkit.graph.describe")


class OpPattern(IntEnum):
    """How an operator's result elements depend on its inputs'; NNVM's TOpPattern."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCE = 3
    CONTRACT = 4
    OPAQUE = 8


_function: Any = Callable
FElement = declare("FElement", _function, "(node, index, *read) -> Expr: the value at index")
FCodeGen = declare("FCodeGen", _function, "(node, *x) -> Expr or tuple: one element of each result")
FReduce = declare("FReduce", _function, "(node) -> Reduce(axes, identity, combine, finish)")
FScan = declare("FScan", _function, "(node) -> Scan(axis, identity, combine): folds so far")
FContract = declare("FContract", _function, "(node) -> Contract(batch, m, n, k)")
FExample = declare("FExample", _function, "(dtype) -> (inputs, params): a call that shows it")
FExpand = declare("FExpand", _function, "(node, *x) -> entries by which it runs, or None")
FContractSum = declare(
    "FContractSum", _function, "(nodes) -> Entry or None: the sum of their results as one node"
)
FLibraryPattern = declare(
    "FLibraryPattern",
    _function,
    "(node) -> Entry or None: one library call for the node and its operands",
)
FSimplify = declare("FSimplify", _function, "(node) -> Entry or None: exact algebra")
FCompute = declare("FCompute", _function, "(node, *arrays) -> array or tuple, in NumPy")
FHostCall = declare(
    "FHostCall",
    _function,
    "(node, program) -> function of arrays; program(graph) compiles an inner graph",
)
FGradient = declare("FGradient", _function, "(node, *dy) -> an entry or None for each input")
FInferShape = declare("FInferShape", _function, "(node, *shapes) -> shape, or tuple of shapes")
FInferShapeBack = declare(
    "FInferShapeBack", _function, "(node, shapes, outs) -> input shapes, None where unknown"
)
FInferType = declare("FInferType", _function, "(node, *dtypes) -> dtype, or tuple of dtypes")
FInplaceOption = declare("FInplaceOption", _function, "(node) -> [(input, output)] that may share")
FInplaceIdentity = declare("FInplaceIdentity", _function, "(node) -> [bool] for FInplaceOption")
FInplaceRows = declare(
    "FInplaceRows", _function, "(node) -> [(input, output)] that may where one thread makes a row"
)
FKernel = declare("FKernel", _function, "(node, dialect) -> OwnKernel, or None: text of its own")
FListInputNames = declare("FListInputNames", _function, "(params) -> names of the inputs")
FOperator = declare("FOperator", _function, "(*sides) -> Entry: its Python operator, if not plain")
FSchedule = declare("FSchedule", _function, "(node, split, shapes) -> Split, WHOLE or Reject each")
TCounterparts = declare("TCounterparts", Mapping, "{system: what it calls this operator}")
TOpPattern = declare("TOpPattern", OpPattern, "an OpPattern")
TOpCost = declare("TOpCost", str, "'light' or 'expensive'", ("light", "expensive"))
TOperator = declare("TOperator", str, "the Python operator or protocol this op implements")
TLibraryCall = declare(
    "TLibraryCall",
    str,
    "the library routine that runs it",
    ("gemm", "gemm_sum", "convolution", "window_products"),
)
THostLibrary = declare(
    "THostLibrary", str, "the library called from Python that runs it by design: 'numpy', 'lapack'"
)
TParameters = declare("TParameters", Mapping, "{parameter: (its type, its meaning)}")
TStateful = declare("TStateful", bool, "True: reads or writes state, never moved or merged")
TZeroPreserving = declare("TZeroPreserving", bool, "True: f(0) is 0")

REQUIRED = object()
"""The default of a parameter that a call must give."""


class _Derived:
    """An attribute that instances compute when they are asked, and that the class has otherwise.

    ``help(softmax)`` is to describe the operator, and ``help(Op)`` the class.
    """

    def __init__(self, compute: Callable[[Op], Any], of_class: Any = None) -> None:
        self.compute, self.of_class = compute, of_class

    def __get__(self, op: Op | None, owner: type) -> Any:
        return self.of_class if op is None else self.compute(op)


class Op:
    """A registered operator: a name, counts, parameters; everything else is an attribute.

    >>> square = register_op("square_of_doc", num_inputs=1)
    >>> _ = square.set_attr("FCodeGen", lambda node, x: x * x)
    >>> square.has_attr("FCodeGen"), square.get_attr("TOpCost", "light")
    (True, 'light')
    """

    # A __module__ of an instance's own lies in a dictionary, so that there are no slots.

    __signature__ = _Derived(lambda op: describe.signature(op))

    def __init__(
        self,
        name: str,
        num_inputs: int | None,
        num_outputs: int,
        params: Mapping[str, Any],
        doc: str,
        place: str,
    ) -> None:
        self.name, self.num_inputs, self.num_outputs = name, num_inputs, num_outputs
        self.params, self.doc, self.place = dict(params), doc, place
        self.groups: list[str] = []
        self.__name__ = self.__qualname__ = name
        self.__module__ = "passkit.ops"  # where any operator is found by its name

    def __call__(
        self, *inputs: Any, name: str = "", control: Sequence[Node] = (), **params: Any
    ) -> Any:
        """Make a node; its entry, or a tuple of entries when there are several results.

        Inputs are entries, arrays (they become constants) or Python scalars (weak constants).
        """
        entries = call.apply(self, inputs, params, name, control).entries
        return entries[0] if self.num_outputs == 1 else entries

    def set_attr(self, key: str, value: Any, plevel: int = 10) -> Op:
        """Register an attribute; a higher ``plevel`` wins, and the same place replaces itself.

        Raises: RegistryError for a misspelt attribute (`register_attr` declares one of your own),
        for a value of another type, and when two places set it at one level.
        """
        registry.put(key, self.name, Setting(value, plevel, calling_place(), f"op {self.name}"))
        return self

    def get_attr(self, key: str, *default: Any) -> Any:
        """The value of an attribute.

        Raises: RegistryError when this operator lacks it and no default is given.
        """
        column = registry.table(arguments.text(f"op {self.name}: attribute", key))
        if self.name not in column.rows and not default:
            raise RegistryError(
                f"attribute {key} is not registered for operator {self.name}; "
                f"set_attr({key!r}, …) gives it: {column.signature}"
            )
        return column.get(self.name, *default)

    def has_attr(self, key: str) -> bool:
        """Whether this operator has the attribute."""
        return self.name in registry.table(arguments.text(f"op {self.name}: attribute", key)).rows

    def add_alias(self, alias: str) -> Op:
        """Make ``alias`` another name of this operator."""
        other = _ops.get(arguments.name(f"op {self.name}: alias", alias, "swish"))
        if other is not None and other is not self:
            raise RegistryError(
                f"alias {alias!r} of op {self.name} is already the name of op {other.name}"
            )
        _ops[alias] = self
        return self

    def include(self, group: str) -> Op:
        """Take the attributes of an op group, those set later too; own attributes win."""
        if arguments.text(f"op {self.name}: group", group) not in self.groups:
            self.groups.append(group)
            found = _groups.setdefault(group, OpGroup(group))
            found.members.append(self)
            for key, setting in found.settings.items():
                registry.put(key, self.name, setting)
        return self

    @property
    def pattern(self) -> OpPattern:
        """The TOpPattern; OPAQUE if none is registered."""
        return TOpPattern.get(self.name, OpPattern.OPAQUE)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Op({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return get_op, (self.name,)


setattr(Op, "__doc__", _Derived(lambda op: describe.documentation(op), Op.__doc__))  # noqa: B010


class OpGroup:
    """Attributes shared by several operators, at plevel 1 unless told otherwise."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.settings: dict[str, Setting] = {}
        self.members: list[Op] = []

    def set_attr(self, key: str, value: Any, plevel: int = 1) -> OpGroup:
        """Register an attribute for every member, present and future.

        Raises: RegistryError as `Op.set_attr` does, also while the group has no members.
        """
        setting = Setting(value, plevel, calling_place(), f"op group {self.name}")
        registry.checked(key, setting)
        if registry.wins(key, setting, self.settings, key):
            for op in self.members:
                registry.put(key, op.name, setting)
        return self


_ops: dict[str, Op] = {}
_later: list[str] = []
_homes: set[str] = set()  # modules that do not wait for each other when they register operators
_loading = RLock()
_groups: dict[str, OpGroup] = {}


def register_op(
    name: str,
    num_inputs: int | None = None,
    num_outputs: int | None = None,
    params: Mapping[str, Any] | None = None,
    doc: str = "",
) -> Op:
    """The operator called ``name``: a new one, or the existing one, re-opened.

    ``num_inputs`` and ``num_outputs`` default to 1; with -1 an operator takes any number of inputs,
    and has as many results as its FInferShape gives. ``params`` maps names to defaults, or to
    `REQUIRED`.

    Raises: RegistryError when it exists with other counts or parameters.
    """
    arguments.name("register_op: name", name, "swish")
    for which, counted in (("num_inputs", num_inputs), ("num_outputs", num_outputs)):
        if counted is not None:
            arguments.count(f"register_op({name!r}): {which}", counted, -1)
    params = arguments.mapping(f"register_op({name!r}): params", params)
    arguments.text(f"register_op({name!r}): doc", doc)
    ours = sys._getframe(1).f_globals.get("__name__") in _homes
    op = _ops.get(name) if ours else _found(name)
    if op is None:
        count = 1 if num_inputs is None else num_inputs
        op = Op(name, count, num_outputs or 1, params or {}, doc, calling_place())
        _ops[name] = op
        return op
    for what, wanted, found in (
        ("num_inputs", num_inputs, op.num_inputs),
        ("num_outputs", num_outputs, op.num_outputs),
    ):
        if wanted is not None and wanted != found:
            raise RegistryError(
                f"op {name} is registered at {op.place} with {what}={found}, now with {wanted}"
            )
    for key, default in (params or {}).items():
        op.params.setdefault(key, default)
    op.doc = doc or op.doc
    return op


def register_later(*modules: str) -> None:
    """Import ``modules``, which register operators, once a name is asked for that is not known.

    A program that needs a few operators then pays for few modules.
    """
    _later.extend(modules)
    _homes.update(modules)


def load_operators() -> bool:
    """Import what `register_later` was told; whether there was anything."""
    with _loading:
        found = bool(_later)
        while _later:
            import_module(_later.pop(0))
        return found


def _found(name: str) -> Op | None:
    """The operator called ``name``, from a module not imported yet if need be."""
    with _loading:  # another thread may be half way through a module
        while name not in _ops and _later:
            import_module(_later.pop(0))
        return _ops.get(name)


def op_group(name: str) -> OpGroup:
    """The op group called ``name``; made on first use."""
    return _groups.setdefault(arguments.text("op_group: name", name), OpGroup(name))


def get_op(name: str) -> Op:
    """A registered operator, by name or alias.

    Raises: RegistryError with the nearest name.
    """
    op = _found(arguments.text("get_op: name", name))
    if op is None:
        ask_hooks("operator", name)
        op = _found(name)
    if op is None:
        raise RegistryError(
            f"operator {arguments.shown(name)} is not registered; {nearest(name, _ops)}"
        )
    return op


def list_ops(aliases: bool = False) -> list[str]:
    """The names of all operators, sorted; with ``aliases`` the other names too."""
    load_operators()
    return sorted(n for n, op in _ops.items() if aliases or n == op.name)
