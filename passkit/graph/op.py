"""Operators: registration by name, attributes, groups, and lookup.

An operator has a name, numbers of inputs and outputs, and parameters. Everything else is an
attribute in the central registry (`passkit.graph.registry`): functions such as FCodeGen, whose
names begin with F, and values such as TOpPattern, whose names begin with T. This module declares
the attributes that passkit itself uses; each signature documents what the function is called with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

from passkit.errors import RegistryError, SettingError, nearest
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
    """How the elements of a result depend on those of the inputs (NNVM's TOpPattern)."""

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
FScheduleRule = declare(
    "FScheduleRule",
    _function,
    "(node, nest, target) -> a sequence of schedule actions for its loop nest, or None",
)
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
TCommutative = declare(
    "TCommutative", bool, "True: f(x, y) is f(y, x), so that Simplify merges the two"
)
TZeroPreserving = declare("TZeroPreserving", bool, "True: f(0) is 0")

REQUIRED = object()
"""The default of a parameter without a default: a call must specify it."""


class _Derived:
    """A descriptor that is computed for an instance and fixed for the class.

    With it ``help(softmax)`` describes the operator, and ``help(Op)`` the class.
    """

    def __init__(self, compute: Callable[[Op], Any], of_class: Any = None) -> None:
        self.compute, self.of_class = compute, of_class

    def __get__(self, op: Op | None, owner: type) -> Any:
        return self.of_class if op is None else self.compute(op)


class Op:
    """A registered operator: a name, counts, parameters; everything else is an attribute.

    `register_op` creates operators. Calling one creates a node of a graph.

    Attributes:
        name: the name; aliases are other names of the same operator.
        num_inputs: the number of inputs, -1 for any number, None where it is not declared.
        num_outputs: the number of results, -1 where FInferShape determines it.
        params: the parameters with their defaults, or `REQUIRED`.
        doc: a description, for ``help`` and reference pages.
        place: file and line of the registration.
        groups: the op groups whose attributes it takes.

    >>> square = register_op("square_of_doc", num_inputs=1)
    >>> _ = square.set_attr("FCodeGen", lambda node, x: x * x)
    >>> square.has_attr("FCodeGen"), square.get_attr("TOpCost", "light")
    (True, 'light')
    """

    # No __slots__: instances have a __module__ of their own, which needs a dictionary.

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
        """Create a node and return its entry, or a tuple of entries if it has several results.

        Args:
            *inputs: entries; arrays, which become constants; or Python scalars, which become
                constants of the other inputs' dtype, or of a higher kind: 0.5 beside int32 is
                float64. Parameters may follow them by position. An operator of any number of inputs
                takes one list or tuple of them, too.
            name: a name of the node, for messages and feeds.
            control: nodes that must run before this one.
            **params: the parameters; inputs by name, where FListInputNames names them: those that
                are missing then become new variables.

        Raises:
            GraphError: The number of inputs is wrong, or a parameter is unknown, missing, passed
                twice or of a wrong type.
            ArgumentError: ``name`` is no string, ``control`` no sequence of nodes, or an input is
                neither an entry, an array nor a number, or a Python int beyond 64 bits.
            ShapeError: The shapes of the inputs do not fit, or a parameter does not.
            DTypeError: The dtypes of the inputs do not fit, a parameter does not, or a Python int
                does not fit the integer dtype of the other inputs.
            RuleError: An attribute function of the operator returns something else than it must.
        """
        entries = call.apply(self, inputs, params, name, control).entries
        return entries[0] if self.num_outputs == 1 else entries

    def set_attr(self, key: str, value: Any, plevel: int = 10) -> Op:
        """Register an attribute of this operator and return the operator.

        Args:
            key: the attribute, such as ``"FCodeGen"``. One that is not declared is declared with
                the type of this value; `register_attr` does so with a description.
            value: its value, of the type that the attribute declares.
            plevel: the priority, above 0. A value of a higher priority stays; one of a lower is
                replaced, as is one of the same that the same line of source has set.

        Raises:
            RegistryError: The attribute is not declared and nearly has the name of one that is, the
                value has another type or is none of the allowed ones, ``plevel`` is 0 or less, or
                another place has set it with the same priority.
            ArgumentError: ``key`` is no identifier, or ``plevel`` no int.
        """
        registry.register_value(
            key, self.name, Setting(value, plevel, calling_place(), f"op {self.name}")
        )
        return self

    def get_attr(self, key: str, *default: Any) -> Any:
        """Return the value of attribute ``key``, or ``default`` where this operator lacks it.

        Raises: RegistryError when no such attribute is declared, even with a default, or when this
        operator lacks it and no default is passed; ArgumentError when ``key`` is no text.
        """
        table = registry.table(arguments.text(f"op {self.name}: attribute", key))
        if self.name not in table.rows and not default:
            raise RegistryError(
                f"attribute {key} is not registered for operator {self.name}; "
                f"set_attr({key!r}, …) gives it: {table.signature}"
            )
        return table.get(self.name, *default)

    def has_attr(self, key: str) -> bool:
        """Return whether this operator has the attribute ``key``.

        Raises: RegistryError where no such attribute is declared, ArgumentError where ``key`` is no
        text.
        """
        return self.name in registry.table(arguments.text(f"op {self.name}: attribute", key)).rows

    def add_alias(self, alias: str) -> Op:
        """Make ``alias`` another name of this operator and return the operator.

        Raises: RegistryError where it is the name or an alias of another operator that is loaded,
        ArgumentError where it is no identifier.
        """
        other = _ops.get(arguments.name(f"op {self.name}: alias", alias, "swish"))
        if other is not None and other is not self:
            raise RegistryError(
                f"alias {alias!r} of op {self.name} is already the name of op {other.name}"
            )
        _ops[alias] = self
        return self

    def include(self, group: str) -> Op:
        """Take the attributes of an op group, also those that the group is given later.

        Attributes of the operator itself have the higher default priority. A group that does not
        exist is created; including one again changes nothing. Returns the operator.

        Raises: RegistryError where the group and another place have set an attribute with the same
        priority; ArgumentError where ``group``, its name, is no text.
        """
        if arguments.text(f"op {self.name}: group", group) not in self.groups:
            self.groups.append(group)
            op_group = _groups.setdefault(group, OpGroup(group))
            op_group.members.append(self)
            for key, setting in op_group.settings.items():
                registry.register_value(key, self.name, setting)
        return self

    @property
    def pattern(self) -> OpPattern:
        """Return the TOpPattern; OPAQUE if none is registered."""
        return TOpPattern.get(self.name, OpPattern.OPAQUE)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Op({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return get_op, (self.name,)


setattr(Op, "__doc__", _Derived(lambda op: describe.documentation(op), Op.__doc__))  # noqa: B010


class OpGroup:
    """Attributes shared by several operators, by default with priority 1."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.settings: dict[str, Setting] = {}
        self.members: list[Op] = []

    def set_attr(self, key: str, value: Any, plevel: int = 1) -> OpGroup:
        """Register an attribute for every member, present and future, and return the group.

        Args:
            key: the attribute's name; an undeclared one is declared with the type of the value.
            value: its value for each member.
            plevel: its priority, above 0; where several values are registered the highest wins.

        Raises: RegistryError for a misspelt attribute, a wrong type of value, a priority of 0 or
        less, or a value of the same priority from another place. These are checked even if the
        group has no members yet. ArgumentError where ``key`` is no identifier or ``plevel`` no int.
        """
        setting = Setting(value, plevel, calling_place(), f"op group {self.name}")
        registry.checked_table(key, setting)
        if registry.store(key, setting, self.settings, key):
            for op in self.members:
                registry.register_value(key, op.name, setting)
        return self


_ops: dict[str, Op] = {}
_pending_modules: list[str] = []
# Modules given to `register_later`; they do not wait for each other when they register operators.
_operator_modules: set[str] = set()
_loading = RLock()
_groups: dict[str, OpGroup] = {}


def register_op(
    name: str,
    num_inputs: int | None = None,
    num_outputs: int | None = None,
    params: Mapping[str, Any] | None = None,
    doc: str = "",
) -> Op:
    """Register an operator, or return the one that is registered, to add attributes to it.

    Args:
        name: the name of the operator.
        num_inputs: the number of inputs, -1 for any number. None means 1 for a new operator, and
            the registered number for an existing one.
        num_outputs: the number of results, from 1 on, or -1 for as many as FInferShape returns.
            None means the same as for ``num_inputs``.
        params: names of parameters and their defaults, `REQUIRED` for those without a default. A
            registered operator gets those that it does not have; its other defaults stay.
        doc: a description; unless it is "", it replaces that of a registered operator.

    Returns:
        The operator; its ``set_attr`` registers what it computes.

    Raises:
        RegistryError: The operator is registered with other numbers of inputs or outputs.
        ArgumentError: ``name`` is no identifier, ``params`` no mapping or ``doc`` no string.
        SettingError: A number of inputs or outputs is no int or below -1, or there are no outputs.
    """
    arguments.name("register_op: name", name, "swish")
    for which, counted in (("num_inputs", num_inputs), ("num_outputs", num_outputs)):
        if counted is not None:
            arguments.count(f"register_op({name!r}): {which}", counted, -1)
    if num_outputs == 0:
        raise SettingError(
            f"register_op({name!r}): num_outputs must be at least 1, or -1 for any number, got 0"
        )
    params = arguments.mapping(f"register_op({name!r}): params", params)
    arguments.text(f"register_op({name!r}): doc", doc)
    in_library = sys._getframe(1).f_globals.get("__name__") in _operator_modules
    op = _ops.get(name) if in_library else _load(name)
    if op is None:
        count = 1 if num_inputs is None else num_inputs
        op = Op(name, count, num_outputs or 1, params or {}, doc, calling_place())
        _ops[name] = op
        return op
    for which, counted, registered in (
        ("num_inputs", num_inputs, op.num_inputs),
        ("num_outputs", num_outputs, op.num_outputs),
    ):
        if counted is not None and counted != registered:
            raise RegistryError(
                f"op {name} is registered at {op.place} with {which}={registered}, now with "
                f"{counted}"
            )
    for key, default in (params or {}).items():
        op.params.setdefault(key, default)
    op.doc = doc or op.doc
    return op


def register_later(*modules: str) -> None:
    """Import ``modules``, which register operators, when an unknown operator is looked up.

    They are names of modules, imported in order, behind those given before, until the operator is
    registered, so that a program that uses few operators imports few modules.
    """
    _pending_modules.extend(modules)
    _operator_modules.update(modules)


def load_operators() -> bool:
    """Import all modules given to `register_later`; return whether any was not imported yet."""
    with _loading:
        any_pending = bool(_pending_modules)
        while _pending_modules:
            import_module(_pending_modules.pop(0))
        return any_pending


def _load(name: str) -> Op | None:
    """Return the operator called ``name``, importing pending modules until it is registered.

    Returns: None if no pending module registers it.
    """
    with _loading:  # another thread may be half way through a module
        while name not in _ops and _pending_modules:
            import_module(_pending_modules.pop(0))
        return _ops.get(name)


def op_group(name: str) -> OpGroup:
    """Return the op group called ``name``, created at its first use.

    Raises: ArgumentError where ``name`` is no text.
    """
    return _groups.setdefault(arguments.text("op_group: name", name), OpGroup(name))


def get_op(name: str) -> Op:
    """Return a registered operator, by name or alias, loading plug-ins if it is unknown.

    Raises: RegistryError with the nearest name of a loaded operator where there is none;
    ArgumentError where ``name`` is no text.
    """
    op = _load(arguments.text("get_op: name", name))
    if op is None:
        ask_hooks("operator", name)
        op = _load(name)
    if op is None:
        raise RegistryError(
            f"operator {arguments.shown(name)} is not registered; {nearest(name, _ops)}"
        )
    return op


def list_ops(aliases: bool = False) -> list[str]:
    """Return the sorted names of all operators; with ``aliases`` also their other names.

    All operator modules are imported for it.
    """
    load_operators()
    return sorted(n for n, op in _ops.items() if aliases or n == op.name)
