"""Descriptions of operators for ``help``, ``inspect.signature``, stubs and reference pages.

Everything is derived from the registry: input names from FListInputNames, parameters from
`register_op` and TParameters, dtypes and shapes from the example call of FExample. Building and
compiling graphs does not need it, so `Op` imports this module when help is requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from inspect import signature as inspect_signature
from itertools import product
from keyword import iskeyword
from typing import Any

from attrs import frozen

from passkit.errors import DTypeError, PasskitError, RegistryError
from passkit.graph.attribute_calls import (
    call_list_input_names,
    call_operator_attribute,
    refuse_operator_result,
)
from passkit.graph.node import Entry, var
from passkit.graph.op import (
    REQUIRED,
    FCodeGen,
    FCompute,
    FExample,
    FExpand,
    FListInputNames,
    Op,
    OpPattern,
    TCounterparts,
    TParameters,
    get_op,
    list_ops,
    load_operators,
)
from passkit.values.dtype import DType, dtype_of

FAMILIES = {
    "bool": ("bool",),
    "signed integers": ("int8", "int16", "int32", "int64"),
    "unsigned integers": ("uint8", "uint16", "uint32", "uint64"),
    "floats": ("float16", "bfloat16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
}
"""All dtypes, in groups by the names that documentation gives them."""
DTYPES = tuple(dtype for family in FAMILIES.values() for dtype in family)


class UnquotedText(str):
    """A string whose repr has no quotes, for types and defaults in signatures."""

    def __repr__(self) -> str:
        return str(self)


NEW_VARIABLE = UnquotedText("<new variable>")
"""The default of an input: a call without it creates a variable ``<node>_<input>``."""
OPERAND, ENTRY, NODES = (
    UnquotedText("OperandLike"),
    UnquotedText("Entry"),
    UnquotedText("Sequence[Node]"),
)


@frozen
class ExampleCall:
    """An example call of an operator.

    Attributes:
        inputs: what it is called with.
        params: its parameters, by name.
        results: the entries that it returned.
    """

    inputs: Sequence[Entry]
    params: Mapping[str, Any]
    results: tuple[Entry, ...]

    def has(self, dtype: str) -> bool:
        """Return whether a result, or an input of the node it created, has the dtype ``dtype``.

        ``dtype`` is a name, such as "float32".
        """
        entries = (*self.results, *self.results[0].node.inputs)
        return any(e.dtype is not None and e.dtype.name == dtype for e in entries)


def input_names(op: Op) -> list[str]:
    """Return the names of an operator's inputs.

    They are those of FListInputNames; where these depend on boolean parameters, the longest list.
    Without it, an operator of any number of inputs has ``["*x"]``; another has the names of
    arguments of its functions (see `_argument_names`), else x, y, z, u, v, w, x6 and so on.

    Raises: RuleError where FListInputNames returns no list or tuple of texts.
    """
    if FListInputNames.get(op.name) is not None:
        flags = [k for k, default in op.params.items() if isinstance(default, bool)]
        settings = [dict(zip(flags, c)) for c in product((False, True), repeat=len(flags))]  # noqa: B905
        names = (call_list_input_names(op, {**op.params, **s}) for s in ({}, *settings))
        return max(names, key=len)
    if op.num_inputs in (-1, None):
        return ["*x"]
    assert op.num_inputs is not None
    letters = [*"xyzuvw"[: op.num_inputs], *(f"x{k}" for k in range(6, op.num_inputs))]
    return _argument_names(op) or letters


def _argument_names(op: Op) -> list[str]:
    """Return the names that FCodeGen, FExpand or FCompute give to the inputs; [] if none does.

    These are functions of the node and the inputs, or wrap (``__wrapped__``) a function of the
    inputs and the parameters. A function with ``*args`` or ``**kwargs``, or with another number of
    inputs than the operator declares, is passed over.
    """
    for table in (FCodeGen, FExpand, FCompute):
        function = table.get(op.name)
        if function is None:
            continue
        try:
            parameters = inspect_signature(function).parameters.values()
        except (TypeError, ValueError):  # a function of C without a signature
            continue
        if any(p.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for p in parameters):
            continue
        names = [p.name.strip("_") for p in parameters if p.name not in op.params]
        names = names if hasattr(function, "__wrapped__") else names[1:]
        if len(names) == len(set(names)) == op.num_inputs and all(names):
            return names
    return []


def call_text(op: Op) -> str:
    """Return a call as reference pages show it: inputs, then parameters with their defaults.

    Example: ``gather(x, indices, axis=0, batch_dims=0, mode='clip')``; a required parameter has no
    default.

    Raises: RuleError where FListInputNames returns no list or tuple of texts.
    """
    params = [k if v is REQUIRED else f"{k}={v!r}" for k, v in op.params.items()]
    return f"{op.name}({', '.join([*input_names(op), *params])})"


def result_type(op: Op) -> UnquotedText:
    """Return the type of the result of a call as text: "Entry", or a tuple of as many as results.

    It is "tuple[Entry, ...]" for any number of results.
    """
    if op.num_outputs == 1:
        return ENTRY
    if op.num_outputs == -1:
        return UnquotedText(f"tuple[{ENTRY}, ...]")
    return UnquotedText(f"tuple[{', '.join([ENTRY] * op.num_outputs)}]")


def parameter_type(op: Op, name: str) -> str:
    """Return the type of parameter ``name`` as text: from TParameters, else that of its default.

    It is "Any" where the default is not a bool, int, float or str.

    Raises: KeyError for a name that TParameters does not list and that is no parameter of ``op``.
    """
    stated = TParameters.get(op.name, {}).get(name)
    if stated is not None:
        return str(stated[0])
    default = op.params[name]
    kinds = {bool: "bool", int: "int", float: "float", str: "str"}
    return kinds.get(type(default), "Any")


def signature(op: Op) -> Signature:
    """Return the signature of a call.

    Inputs may be passed by keyword only where FListInputNames names them; all but the first then
    have a default, unless the operator has a fixed number of inputs and a required parameter.
    Parameters follow the inputs by position where the number of inputs is fixed, else they are
    keyword-only, as are ``name`` and ``control`` at the end. Parameters whose names Python does not
    accept are left out.

    Raises: RuleError where FListInputNames returns no list or tuple of texts.
    """
    load_operators()
    return Signature(list(_parameters(op)), return_annotation=result_type(op))


def _parameters(op: Op) -> Iterator[Parameter]:
    """Yield the parameters of a call of ``op``, as `signature` has them, in Python's order.

    Raises: RuleError where FListInputNames returns no list or tuple of texts.
    """
    names = input_names(op)
    params = {k: v for k, v in op.params.items() if k.isidentifier() and not iskeyword(k)}
    variadic = names == ["*x"]
    # An equation comes before any number of inputs: einsum("ij,jk->ik", a, b).
    leading = list(params)[:1] if variadic and REQUIRED in list(params.values())[:1] else []
    for key in leading:
        yield _parameter(op, key, Parameter.POSITIONAL_OR_KEYWORD)
    yield from _inputs(op, names, params)
    follows = op.num_inputs is not None and op.num_inputs >= 0
    kind = Parameter.POSITIONAL_OR_KEYWORD if follows else Parameter.KEYWORD_ONLY
    optional = False
    for key in params:
        if key in leading:
            continue
        if op.params[key] is REQUIRED and optional:  # Python has these by keyword only
            kind = Parameter.KEYWORD_ONLY
        optional = optional or op.params[key] is not REQUIRED
        yield _parameter(op, key, kind)
    for key, default, annotation in (("name", "", UnquotedText("str")), ("control", (), NODES)):
        if key not in params:
            yield Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _inputs(op: Op, names: Sequence[str], params: Iterable[str]) -> Iterator[Parameter]:
    """Yield the inputs of an operator as parameters of a Python signature.

    They are positional-only unless FListInputNames names them.

    Args:
        op: the operator.
        names: the names of its inputs; ``["*x"]`` is any number of them, yielded as ``*x``.
        params: the names of its parameters. If an input has the name of one, all inputs get a
            trailing underscore and are positional-only.
    """
    if names == ["*x"]:
        yield Parameter("x", Parameter.VAR_POSITIONAL, annotation=OPERAND)
        return
    clash = not set(names).isdisjoint(params)
    named = FListInputNames.get(op.name) is not None and not clash
    optional = named and not (op.num_inputs != -1 and REQUIRED in op.params.values())
    for k, name in enumerate(names):
        yield Parameter(
            f"{name}_" if clash else name,
            Parameter.POSITIONAL_OR_KEYWORD if named else Parameter.POSITIONAL_ONLY,
            default=NEW_VARIABLE if optional and k else Parameter.empty,
            annotation=OPERAND,
        )


def _parameter(op: Op, name: str, kind: Any) -> Parameter:
    """Return parameter ``name`` of an operator as one of a Python signature, with default and type.

    ``kind`` is one of `inspect.Parameter`, such as KEYWORD_ONLY.

    Raises: KeyError where ``op`` has no such parameter.
    """
    default = Parameter.empty if op.params[name] is REQUIRED else op.params[name]
    return Parameter(name, kind, default=default, annotation=UnquotedText(parameter_type(op, name)))


def documentation(op: Op) -> str:
    """Return the documentation of an operator as plain text.

    It consists of the signature, the description, parameters, dtypes, shapes, an example, aliases,
    and the names of TCounterparts, such as NumPy's, as far as each is known.

    Raises: RuleError where FListInputNames returns no list or tuple of texts.
    """
    parts = [f"{op.name}{signature(op)}", op.doc.strip(), _parameter_section(op)]
    parts += [_type_section(op), "\n".join(_names(op))]
    return "\n\n".join(p for p in parts if p)


def _parameter_section(op: Op) -> str:
    """Return the section of ``help`` that lists an operator's parameters, "" if it has none."""
    lines = [
        f"    {key} ({parameter_type(op, key)}, "
        f"{'required' if default is REQUIRED else f'default {default!r}'})"
        f"{_meaning(op, key)}"
        for key, default in op.params.items()
    ]
    return "\n".join(["Parameters:", *lines]) if lines else ""


def parameter_meaning(op: Op, key: str) -> str:
    """Return the description of parameter ``key`` of ``op``; "" where TParameters has none."""
    stated = TParameters.get(op.name, {}).get(key)
    return "" if stated is None else str(stated[1])


def _meaning(op: Op, key: str) -> str:
    """Return the description of parameter ``key`` of ``op`` behind ": "; "" if there is none."""
    stated = TParameters.get(op.name, {}).get(key)
    return "" if stated is None or not stated[1] else f": {stated[1]}"


def _type_section(op: Op) -> str:
    """Return the section about dtypes, shape and an example; "" where the example call fails.

    It is "", too, where the operator accepts no dtype. Attribute functions may be anybody's code
    and raise anything; help must work all the same.
    """
    try:
        calls = example_calls(op)
    except Exception:
        return ""
    if not calls:
        return ""
    shown = calls.get("float32") or next(iter(calls.values()))
    lines = [f"Dtypes: {'; '.join(dtype_rule(calls))}."]
    shape = shape_rule(op)
    if shape:
        lines.append(f"Shape: {shape}")
    if shown.inputs or shown.params:
        lines.append(f"Example: {example_text(op, shown)}")
    return "\n".join(lines)


def shape_rule(op: Op) -> str:
    """Return the shape of the result in words, where it follows from OpPattern; else "".

    It does for operators with inputs that are elementwise or broadcast.
    """
    if op.pattern > OpPattern.BROADCAST or op.num_inputs == 0:
        return ""
    if op.num_inputs == 1:
        return "that of the input."
    return "the inputs broadcast as in NumPy."


def dtype_rule(calls: Mapping[str, ExampleCall]) -> list[str]:
    """Return each set of input dtypes with the dtypes of the results: ``floats -> bool``.

    Args:
        calls: an example call for each accepted dtype, by its name, as of `example_calls`; one or
            more.
    """
    columns = zip(*([str(e.dtype) for e in call.results] for call in calls.values()), strict=True)
    named = [_relative(list(calls), list(column)) for column in columns]
    groups: dict[str, list[str]] = {}
    for dtype, *results in zip(calls, *named, strict=True):
        same = len(set(results)) == 1
        groups.setdefault(results[0] if same else ", ".join(results), []).append(dtype)
    return [f"{_families(dtypes)} -> {result}" for result, dtypes in groups.items()]


def _relative(dtypes: Sequence[str], results: Sequence[str]) -> list[str]:
    """Return the dtypes of one result, with "the same" for those that equal the input's.

    Args:
        dtypes: the dtypes of the inputs, one for each example call.
        results: the dtypes of the result in the same calls. If there are several and they are all
            equal, they stay.
    """
    if len(set(results)) == 1 < len(results):
        return list(results)
    return ["the same" if r == d else r for d, r in zip(dtypes, results, strict=True)]


def _families(dtypes: Iterable[str]) -> str:
    """Return dtypes as text, in the order of FAMILIES, with names for complete groups of them."""
    rest, names = list(dtypes), []
    for family, members in FAMILIES.items():
        inside = [d for d in members if d in rest]
        names += [family] if len(inside) == len(members) else inside
    return ", ".join(names)


def example_text(op: Op, call: ExampleCall) -> str:
    """Return a call with dtypes and shapes: ``exp(float32[4,6]) -> float32[4,6]``."""
    params = [f"{k}={v!r}" for k, v in call.params.items()]
    given = ", ".join([*map(_typed, call.inputs), *params])
    return f"{op.name}({given}) -> {', '.join(map(_typed, call.results))}"


def _typed(entry: Entry) -> str:
    """Return dtype and shape of an entry as text: ``float32[4,6]``, ``[?]`` for an unknown rank."""
    shape = "?" if entry.shape is None else ",".join(map(str, entry.shape))
    return f"{entry.dtype}[{shape}]"


def _names(op: Op) -> Iterator[str]:
    """Yield a line of aliases, if there are any, and one for each system in TCounterparts."""
    aliases = [n for n in list_ops(aliases=True) if n != op.name and get_op(n) is op]
    if aliases:
        yield f"Also called: {', '.join(aliases)}"
    for system, name in TCounterparts.get(op.name, {}).items():
        yield f"{system}: {name}"


def example_calls(op: Op) -> dict[str, ExampleCall]:
    """Return the example call for each dtype that the operator accepts, by the dtype's name.

    A dtype is left out where the call of `example` raises a DTypeError, or neither its inputs nor
    its results have that dtype.

    Raises: RegistryError where the call raises another PasskitError. Other errors of FExample
    propagate.
    """
    load_operators()
    calls = {d: call for d in DTYPES if (call := example(op, dtype_of(d))) is not None}
    return {d: call for d, call in calls.items() if call.has(d)}


def example(op: Op, dtype: DType) -> ExampleCall | None:
    """Return an operator's example call for ``dtype``, or None where it does not accept that.

    The call is that of FExample, by default of variables of shape (4, 6). It is None where calling
    the operator raises a DTypeError.

    Raises: RegistryError where the call, or FExample, raises another PasskitError. Other errors of
    FExample propagate.
    """
    try:
        call_in = _default_call if FExample.get(op.name) is None else _call_of_example
        inputs, params = call_in(op, dtype)
        out = op(*inputs, **params)
    except DTypeError:
        return None
    except PasskitError as error:
        raise RegistryError(
            f"the example call of operator {op.name} fails: {error}; set FExample on it to a "
            f"function of a dtype that returns inputs and parameters of a valid call"
        ) from None
    return ExampleCall(inputs, params, tuple(out) if isinstance(out, (tuple, list)) else (out,))


def _call_of_example(op: Op, dtype: DType) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs and parameters that FExample of an operator gives for ``dtype``.

    Raises: RuleError where it takes other arguments than a dtype, or does not return a list of
    inputs and a dict of parameters.
    """
    where = f"op {op.name}"
    example = call_operator_attribute(FExample, op.name, where, dtype)
    is_pair = isinstance(example, tuple) and len(example) == 2
    if not is_pair or not isinstance(example[0], (tuple, list)) or not isinstance(example[1], dict):
        refuse_operator_result(FExample, where, "(a list of inputs, a dict of parameters)", example)
    return list(example[0]), example[1]


def _default_call(op: Op, dtype: DType) -> tuple[list[Entry], dict[str, Any]]:
    """Return the inputs and parameters of an example call of an operator without FExample.

    The inputs are variables of shape (4, 6) and dtype ``dtype``, one for an operator of any number;
    there are no parameters.

    Raises: RuleError where FListInputNames returns no list or tuple of texts.
    """
    named = FListInputNames.get(op.name) is not None
    names = call_list_input_names(op, op.params) if named else input_names(op)
    return [var(f"x{k}", (4, 6), dtype) for k in range(len(names))], {}
