"""Running a model's bodies on values, which builds the graph: a function is what its call makes.

A `Scope` is one run of a `Body`. Operators of the table become nodes. Operators of `STRUCTURE`
call functions, choose branches, go round loops, and read variables.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from passkit.errors import ModelError, PasskitError
from passkit.frontends.tf_graphdef.body import ARGUMENT, EXITS, Body, Ref, order, reached
from passkit.frontends.tf_graphdef.library import Library
from passkit.frontends.tf_graphdef.opaque import (
    OF_UNIQUE,
    Anything,
    Dead,
    Handle,
    Missing,
    Opaque,
    Texts,
    Variable,
)
from passkit.frontends.tf_graphdef.proto import Budget, NodeDef, called, short
from passkit.frontends.tf_graphdef.table import NODE_NBYTES, TABLE, build
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.node import Entry

if TYPE_CHECKING:
    from passkit.frontends.tf_graphdef.host import HostOp

DEEPEST = 64
"""Functions may call each other so deep."""

MOST_CALLED = 30_000
"""Nodes that calls and loops may make beyond those in the file, all bodies of a model together."""

MOST_UNROLLED = 15_000
"""Nodes that one loop may become; one of more goes round when the graph runs."""


@define(eq=False)
class Work:
    """How many nodes may still be built, and loops unrolled."""

    left: int
    limit: int
    rounds: int

    def take(self, where: str) -> None:
        """Count one node. Raises: ModelError past the limit."""
        self.left -= 1
        if self.left < 0:
            raise ModelError(
                f"{where} is one node too many: functions and loops of this model make more than "
                f"{self.limit:,} nodes of it"
            )


@define(eq=False)
class Program:
    """One model on its way into a graph: what the runs of all its bodies share."""

    where: str
    budget: Budget
    library: Library
    work: Work
    variable_value: Callable[[Variable], Value]
    """Reads a variable out of the checkpoint."""
    hosts: Mapping[str, HostOp] = field(factory=dict)
    inputs: Mapping[int, Callable[[Call, Sequence[Anything]], Anything]] = field(factory=dict)
    """The nodes of the model's own graph that are its inputs, and what makes them."""
    variables: dict[str, Variable] = field(factory=dict)
    missing: dict[str, dict[tuple[str, str], str]] = field(factory=dict)
    """The operators that are not supported, and the nodes that have them, each once."""
    structures: Mapping[str, Structure] = field(factory=lambda: STRUCTURE)
    """What works on more than arrays."""
    run_number: Entry | None = None
    """In a model that is trained, what draws differ by from run to run."""
    is_set: Callable[[Variable], Value] | None = None
    """In a session, whether a variable had a value when a run began."""


@define(eq=False)
class Scope:
    """One run of a body: the results of its nodes so far."""

    program: Program
    body: Body
    prefix: str = ""
    inside: tuple[str, ...] = ()
    """The functions that this run is in, from the outermost on."""
    attrs: Mapping[str, Any] = field(factory=dict)
    """What a caller says that a function's own attributes are."""
    values: dict[int, Sequence[Anything]] = field(factory=dict)
    names: dict[Ref, str] = field(factory=dict)
    """Other names for the nodes behind a result: that of what returns it."""
    frames: dict[bytes, dict[int, Anything]] = field(factory=dict)
    """What has left each loop of TensorFlow 1, by the nodes that go round in it."""
    outer: Scope | None = None
    """For a round of a loop, the run that the loop is in."""
    frame: bytes | None = None
    """For a round of a loop of TensorFlow 1, its name."""

    def result(self, ref: Ref) -> Anything:
        """A result that was computed. Raises: ModelError when its node has no such result."""
        number, index = ref
        scope: Scope | None = self
        while scope is not None and number not in scope.values:
            scope = scope.outer
        if scope is None:
            raise ModelError(
                f"{called(self.body.nodes[number])} of {self.body.where} is inside a loop, and is "
                f"read outside of it"
            )
        found = scope.values[number]
        if not isinstance(found, Every) and index >= len(found):
            raise ModelError(
                f"{called(self.body.nodes[number])} of {self.body.where} has {len(found)} "
                f"output(s), and output {index} is asked for; they are counted from 0"
            )
        return found[index]

    def run(
        self, heads: Sequence[Ref], kind: tuple[Any, ...] = (), targets: int = 0
    ) -> list[Anything]:
        """The results at ``heads``, computing what they need.

        Runs of one ``kind`` have values for the same nodes when they begin. The last ``targets``
        are run for what they do, and need no results.
        """
        found = self.body.orders.get(kind)
        if found is None:
            found = self._order([number for number, _ in heads])
            if kind:
                self.body.orders[kind] = found
        self.compute(found)
        return [self.result(ref) for ref in heads[: len(heads) - targets]]

    def _order(self, heads: Sequence[int]) -> list[int]:
        """The nodes to compute: what the heads need, and what changes variables before that."""
        library, body, done = self.program.library, self.body, self._done()
        wanted = reached(body, heads, done)
        ordered = reached(body, [*heads, *body.effects], done, control=True)
        acting = [k for k in ordered if library.changes(body.nodes[k])]
        wanted |= reached(body, acting, done)
        return order(body, [*heads, *acting], wanted, done)

    def _done(self) -> Mapping[int, Any]:
        """The nodes that have results, here or around."""
        chain: list[MutableMapping[int, Any]] = []
        scope: Scope | None = self
        while scope is not None:
            chain.append(scope.values)
            scope = scope.outer
        return ChainMap(*chain)

    def compute(self, numbers: Sequence[int]) -> None:
        """Run these nodes, in this order."""
        for number in numbers:
            self.values[number] = self.node(number)

    def node(self, number: int) -> Sequence[Anything]:
        """The results of one node."""
        node = self.body.nodes[number]
        program = self.program
        program.work.take(called(node))
        program.budget.take(NODE_NBYTES + len(self.prefix), f"node {short(node.name)}")
        if self.inside:
            node = self._bound(node)
        name = self.prefix + node.name
        if node.op not in program.structures and node.op not in program.library:
            name = self.names.get((number, 0), name)
        call = Call(node, name, program.budget)
        reads = () if node.op in EXITS else self.body.inputs[number]  # a loop is gone round there
        inputs = [self.result(ref) for ref in reads]
        try:
            return self._results(Site(self, number, call), inputs)
        except PasskitError as error:
            error.add_note(f"in {called(node)} of {self.body.where}")
            raise

    def _bound(self, node: Any) -> Any:
        """A node of a function, with the attributes that its caller decides."""
        asked = [k for k, v in node.attr.items() if v.WhichOneof("value") == "placeholder"]
        if not asked:
            return node
        bound = NodeDef()
        bound.CopyFrom(node)
        for key in asked:
            name = node.attr[key].placeholder
            if name not in self.attrs:
                raise ModelError(
                    f"{called(node)} of {self.body.where} needs the attribute {short(name)} of "
                    f"the function, and its caller gives none"
                )
            bound.attr[key].CopyFrom(self.attrs[name])
        return bound

    def _results(self, site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
        call, program = site.call, self.program
        op = call.node.op
        if not self.inside and site.number in program.inputs:
            return (program.inputs[site.number](call, inputs),)
        structure = program.structures.get(op)
        if op in UNIQUE and any(isinstance(x, OF_UNIQUE) for x in inputs):
            structure = UNIQUE[op]
        if structure is not None:
            return structure(site, inputs)
        if any(isinstance(x, Dead) for x in inputs):
            return Every(Dead(call.name))
        for x in inputs:
            if isinstance(x, Texts):
                raise ModelError(f"{call.where} reads {short(x.name)}, which is {x.what}")
        supported = op in TABLE or op in program.library or op in program.hosts
        if not supported:
            place = (self.body.where, call.node.name)
            program.missing.setdefault(op, {}).setdefault(place, self.prefix + call.node.name)
        if not supported or any(isinstance(x, Missing) for x in inputs):
            return Every(Missing(call.name))
        if op in TABLE:
            return build(call, [site.value(x) for x in inputs])
        if op in program.library:
            return site.function(op, call.node.attr, inputs, call.name)
        return program.hosts[op].results(call, [site.value(x) for x in inputs])


class Every(Sequence[Anything]):
    """As many results as are asked for, all the same: of a node that was not computed."""

    def __init__(self, value: Opaque) -> None:
        self.value = value

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return self.value


@frozen(eq=False)
class Site:
    """One node in one run of its body: where an operator of `STRUCTURE` stands."""

    scope: Scope
    number: int
    call: Call

    @property
    def program(self) -> Program:
        """What all runs share."""
        return self.scope.program

    @property
    def where(self) -> str:
        """How messages call this node."""
        return self.call.where

    def value(self, given: Anything) -> Value:
        """An input that must be an array. Raises: ModelError for what is none."""
        if isinstance(given, Handle) and given.by_reference:
            return read(self.program, given.variable)
        if isinstance(given, Opaque):
            raise ModelError(
                f"{self.where} needs an array, and {short(given.name)} is {given.what}"
            )
        return given

    def needs(self, inputs: Sequence[Anything], low: int, high: int | None = -1) -> None:
        """Check how many inputs there are. Raises: ModelError for another number of them."""
        most = low if high == -1 else high
        if len(inputs) < low or (most is not None and len(inputs) > most):
            wanted = str(low) if most == low else f"at least {low}"
            raise ModelError(f"{self.where} needs {wanted} input(s), got {len(inputs)}")

    def function(
        self,
        name: str,
        attrs: Mapping[str, Any],
        arguments: Sequence[Anything],
        prefix: str,
        named: bool = True,
    ) -> list[Anything]:
        """What a function returns for these arguments.

        Raises: ModelError for another number of them, and for functions that call themselves or
        each other too deep.
        """
        scope = self.scope
        if name in scope.inside:
            raise ModelError(
                f"{self.where} calls the function {short(name)}, which it is itself a part of; "
                f"functions that call themselves are not supported"
            )
        if len(scope.inside) >= DEEPEST:
            raise ModelError(
                f"{self.where} calls {short(name)} from {DEEPEST} functions inside one another, "
                f"and no more than that are supported"
            )
        body = self.program.library.body(name)
        if len(arguments) != body.num_arguments:
            raise ModelError(
                f"{self.where} gives {len(arguments)} arguments to the function {short(name)}, "
                f"which takes {body.num_arguments}"
            )
        inner = Scope(self.program, body, f"{prefix}/", (*scope.inside, name), attrs)
        inner.values.update((k, (value,)) for k, value in enumerate(arguments))
        if named:
            told = [
                (scope.names[self.number, k], ref)
                for k, ref in enumerate(body.results)
                if (self.number, k) in scope.names
            ]
            inner.names.update(names_behind(body, told))
        return inner.run(body.results, ("call",))


def names_behind(body: Body, wanted: Sequence[tuple[str, Ref]]) -> dict[Ref, str]:
    """Names for the results behind those that are wanted, where what is between only passes on."""
    names: dict[Ref, str] = {}
    taken = {ref for _, ref in wanted}
    for name, first in wanted:
        ref, seen = first, {first}
        while body.nodes[ref[0]].op == "Identity" and body.inputs[ref[0]]:
            ref = body.inputs[ref[0]][0]
            if ref in seen:
                break
            seen.add(ref)
        if (ref == first or ref not in taken) and body.nodes[ref[0]].op not in _NAMED_THEMSELVES:
            names[ref] = name
            taken.add(ref)
    return names


_NAMED_THEMSELVES = (ARGUMENT, "Placeholder")


def read(program: Program, variable: Variable) -> Value:
    """The value that a variable has now."""
    return original(program, variable) if variable.value is None else variable.value


def original(program: Program, variable: Variable) -> Value:
    """The value that a variable has in the checkpoint."""
    if variable.saved is None:
        variable.saved = program.variable_value(variable)
    return variable.saved


def variable_values(program: Program) -> dict[Variable, Value | None]:
    """What was assigned to every variable so far."""
    return {v: v.value for v in program.variables.values()}


def restore_values(values: Mapping[Variable, Value | None]) -> None:
    """Put values back into variables."""
    for variable, value in values.items():
        variable.value = value


Structure = Callable[[Site, Sequence[Anything]], Sequence[Anything]]

STRUCTURE: dict[str, Structure] = {}
"""What each operator does that works on more than arrays."""

TRAINING: dict[str, Structure] = {}
"""The same for operators of models that are trained: draws, and updates of variables."""

UNIQUE: dict[str, Structure] = {}
"""What operators do with results of `Unique`, which have as many rows as only a run knows."""


def structure(*names: str, trains: bool = False) -> Callable[[Structure], Structure]:
    """Enter a function into `STRUCTURE` or `TRAINING`, for one or more TensorFlow operators."""

    def enter(function: Structure) -> Structure:
        (TRAINING if trains else STRUCTURE).update(dict.fromkeys(names, function))
        return function

    return enter


def of_unique(*names: str) -> Callable[[Structure], Structure]:
    """Enter a function into `UNIQUE`, for one or more TensorFlow operators."""

    def enter(function: Structure) -> Structure:
        UNIQUE.update(dict.fromkeys(names, function))
        return function

    return enter
