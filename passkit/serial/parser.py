"""Parser of the text form of graphs, which `passkit.serial.text` describes."""

from __future__ import annotations

from typing import Any

from passkit.errors import ParseError, PasskitError, nearest
from passkit.graph.call import apply
from passkit.graph.graph import Graph
from passkit.graph.nested import DEEPEST
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import get_op
from passkit.serial.text import WORDS
from passkit.serial.text_values import ValueParser
from passkit.serial.tokens import Token, tokens
from passkit.values import arguments
from passkit.values.arguments import shorten_message, shortened, shown
from passkit.values.size import has_size


def parse(text: str) -> Graph:
    """Return the graph that a text describes, in the form of `passkit.serial.text`.

    Raises:
        ParseError: The text is malformed; the message has line and column.
        PasskitError: An operator refuses its inputs or parameters; a note has line and column.
        ArgumentError: ``text`` is no text.

    Example:
        >>> import passkit as pk
        >>> pk.parse("x: f32[n, 4]; y = exp(x); return y").outputs[0].shape
        (n, 4)
    """
    parser = _Parser(tokens(arguments.text("parse: text", text)))
    graph = parser.graph()
    parser.expect("", "the end of the text")
    return graph


class _ParsedGraph:
    """The nodes and updates of a graph that is being parsed, by name."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.updates: list[tuple[Node, Entry]] = []


class _Parser(ValueParser):
    """A recursive-descent parser; ``scope`` is the innermost graph that is being parsed.

    All methods raise a ParseError with line and column where the text is malformed.
    """

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.scope = _ParsedGraph()

    def graph(self) -> Graph:
        """Parse statements up to and including ``return``; return their graph.

        Its inputs are in the order of their declarations.

        Raises: ParseError; errors of an operator that refuses its inputs or parameters.
        """
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"graphs are nested more than {DEEPEST} deep")
        outer, self.scope = self.scope, _ParsedGraph()
        self.skip_ends()
        while not self.accept("return"):
            if self.next.kind == "stop" or self.next.text == "}":
                raise self.fail(f"expected a statement or 'return', got {self.shown()}")
            self.statement()
            self.end()
        outputs: list[Entry] = []
        if self.next.kind in ("name", "string"):
            outputs.append(self.operand())
            while self.accept(","):
                outputs.append(self.operand())
        self.end()
        graph = Graph(outputs, self.scope.updates)
        inputs = set(graph.inputs)
        graph = graph.with_inputs([n for n in self.scope.nodes.values() if n in inputs])
        self.scope = outer
        self.depth -= 1
        return graph

    def statement(self) -> None:
        """Parse a declaration, an operator call or an update, and add it to the scope.

        Raises: ParseError, also for a name that is defined already; errors of an operator that
        refuses its inputs or parameters.
        """
        first = self.next
        if first.kind == "name" and first.text == "update":
            self.at += 1
            self.update()
            return
        is_state = first.kind == "name" and self.accept("state")
        token = self.next
        name = self.name()
        if name in self.scope.nodes:
            raise self.fail(f"the name {shown(name)} is defined twice", token)
        if is_state or self.next.text == ":":
            self.expect(":")
            node = self.declaration(name, is_state)
        else:
            self.expect("=", "':' and a type, or '=' and an operator")
            node = self.call(name)
        self.scope.nodes[name] = node

    def update(self) -> None:
        """Parse ``variable = value``, after ``update``, and record it in the scope.

        Raises: ParseError, also where the variable is no state variable.
        """
        token = self.next
        target = self.ref().node
        if not (target.is_variable and target.params.get("state")):
            raise self.fail(f"{shown(token.text)} is no state variable, so it has no update", token)
        self.expect("=")
        self.scope.updates.append((target, self.ref()))

    def node_called(self, token: Token, name: str) -> Node:
        """Return the node called ``name``. Raises: ParseError at ``token`` if there is none."""
        if name not in self.scope.nodes:
            hint = nearest(name, self.scope.nodes) if self.scope.nodes else "nothing is named yet"
            raise self.fail(f"there is no {shown(name)} above; {hint}", token)
        return self.scope.nodes[name]

    def ref(self) -> Entry:
        """Parse ``name`` or ``name:index``; return the entry.

        Raises: ParseError where there is no such node or result, or several without an index.
        """
        token = self.next
        node = self.node_called(token, self.name())
        if self.accept(":"):
            index = self.integer()
            if index >= len(node.entries):
                raise self.fail(
                    f"{shortened(token.text)} has {len(node.entries)} result(s), so no number "
                    f"{index}",
                    token,
                )
            return node.entries[index]
        if len(node.entries) > 1:
            called = shortened(token.text)
            raise self.fail(f"{called} has {len(node.entries)} results; write {called}:0", token)
        return node.entries[0]

    def operand(self) -> Entry:
        """Parse a reference or a nested call, such as ``exp(x)`` in ``add(exp(x), 1)``.

        Raises: ParseError, also for a nested call with several results; errors of an operator that
        refuses its inputs or parameters.
        """
        token, following = self.next, self.following
        if token.kind != "name" or following.kind != "mark" or following.text != "(":
            return self.ref()
        self.depth += 1
        if self.depth > 4 * DEEPEST:
            raise self.fail(f"operators are nested more than {4 * DEEPEST} deep")
        node = self.call("")
        self.depth -= 1
        if len(node.entries) > 1:
            raise self.fail(f"{token.text} has {len(node.entries)} results; give it a name", token)
        return node.entries[0]

    def after(self) -> list[Node]:
        """Parse ``after(name, …)``, if it follows; return the nodes, [] if it does not.

        Raises: ParseError, also for a name that is not defined above.
        """
        nodes: list[Node] = []
        if self.accept("after"):
            self.expect("(")
            while not self.accept(")"):
                token = self.next
                nodes.append(self.node_called(token, self.name()))
                if self.next.text != ")":
                    self.expect(",")
        return nodes

    def declaration(self, name: str, is_state: bool) -> Node:
        """Parse the type of a variable, and its value if there is one; return the node.

        Args:
            name: the variable's name.
            is_state: whether it is a state variable; otherwise one with a value is a constant.

        Raises: ParseError.
        """
        token = self.next
        dtype, shape = self.type(name)
        value: Any = None
        if self.accept("="):
            value = self.array(dtype, shape, token)
        params: dict[str, Any] = {"shape": shape, "dtype": dtype}
        if is_state:
            if dtype is None or has_size(shape):
                raise self.fail(
                    f"state variable {shown(name)} needs a dtype and a known shape", token
                )
            return Node(None, (), {**params, "state": True, "initial": value}, name, self.after())
        if value is not None:
            return Node(CONSTANT, (), {"value": value}, name, self.after())
        return Node(None, (), params, name, self.after())

    def call(self, name: str) -> Node:
        """Parse ``operator(inputs, parameter=value, …)``; return a node called ``name``.

        Raises: ParseError; errors of the operator where it refuses its inputs or parameters, with a
            note of line and column.
        """
        token = self.next
        try:
            op = get_op(self.name())
        except PasskitError as error:
            if isinstance(error, ParseError):
                raise
            raise self.fail(str(error), token) from None
        self.expect("(")
        inputs: list[Any] = []
        params: dict[str, Any] = {}
        while not self.accept(")"):
            following = self.following
            if self.next.kind == "name" and following.text == "=" and following.kind == "mark":
                key = self.next
                self.at += 2
                if key.text in params:
                    raise self.fail(f"parameter {shown(key.text)} is given twice", key)
                params[key.text] = self.value()
            elif params:
                raise self.fail(f"expected a parameter, got {self.shown()}; inputs come first")
            else:
                inputs.append(self.argument())
            if self.next.text != ")":
                self.expect(",")
        try:
            return apply(op, inputs, params, name, self.after())
        except PasskitError as error:
            shorten_message(error)
            error.add_note(f"at line {token.line}, column {token.column} of the text")
            raise
        except Exception as error:  # attribute functions, called with any parameters
            raise self.fail(
                f"operator {op.name} fails for these inputs and parameters with {shown(error)}; "
                f"help(pk.ops.{op.name}) says what it takes",
                token,
            ) from error

    def argument(self) -> Any:
        """Parse an input; return an entry for a reference or a nested call, else its value.

        That is a number, true or false, None for none, or what is in parentheses, such as a tuple.

        Raises: ParseError; errors of an operator that refuses its inputs or parameters.
        """
        token = self.next
        is_name = token.kind == "name" and token.text not in WORDS
        if is_name or token.kind == "string":
            return self.operand()
        return self.value() if token.text in ("(", "none") else self.number()
