"""Calls of public functions with one wrong argument: the table that `test_misuses.py` goes through.

Each `Call` has arguments that work. Every argument is replaced by each of `VALUES` in turn, which
must be refused by a PasskitError, but for the values that the table says ``fits``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

import passkit as pk
from passkit.frontends import tf_graphdef
from passkit.frontends import tinyflow as tf
from passkit.target import register_target
from tests.frontends.tf_graphdef.models import DIGITS

O = pk.ops  # noqa: E741
X = pk.var("x", (2, 3))
INDICES = pk.var("indices", (3,), "int64")
ARRAY = np.ones((2, 3), np.float32)
GRAPH = pk.Graph([O.tanh(X + 1)])

VALUES: dict[str, Any] = {
    "none": None,
    "true": True,
    "int": 3,
    "negative": -1,
    "huge": 2**62,
    "float": 1.5,
    "nan": float("nan"),
    "text": "missing",
    "bytes": b"\x00\x01",
    "empty": [],
    "nones": [None],
    "dict": {"missing": None},
    "ragged": [[1], [2, 3]],
    "objects": np.array([None, object()]),
    "masked": np.ma.masked_array(ARRAY, mask=[[1, 0, 0], [0, 0, 0]]),
    "object": object(),
    "function": len,
    "type": int,
    "entry": X,
    "graph": GRAPH,
}
TEXT = "-text"
"""In place of "text": it fits, and is not tried, since it would stay registered."""
NUMBERS = "int negative huge float nan true"


@frozen
class Argument:
    """A value that works, the labels of other values that do, and how messages may call it."""

    good: Any
    fits: str = ""
    called: str = ""


@frozen
class Call:
    """A public function, by the name that tests and messages use."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Argument]


def arg(good: Any, fits: str = "", called: str = "") -> Argument:
    """An argument of a call."""
    return Argument(good, fits, called)


def call(name: str, function: Callable[..., Any], /, **arguments: Argument) -> Call:
    """A row of the table."""
    return Call(name, function, arguments)


def making_graphs() -> list[Call]:
    """Variables, constants, nodes and graphs."""
    tanh = pk.get_op("tanh")
    return [
        call(
            "var",
            pk.var,
            name=arg("q", "text"),
            shape=arg((2,), "none empty nones", "dimension"),
            dtype=arg("float32", "none type", "element type"),
        ),
        call("state", pk.state, name=arg("q", "text"), value=arg(ARRAY, f"{NUMBERS} empty")),
        call(
            "constant",
            pk.constant,
            value=arg(ARRAY, f"{NUMBERS} empty"),
            dtype=arg("float32", "none type", "element type"),
            name=arg("c", "text"),
        ),
        call(
            "Node",
            pk.Node,
            op=arg(None, "none"),
            inputs=arg((), "empty"),
            params=arg({}, "none empty dict"),
            name=arg("", "text"),
            control=arg((), "empty graph"),
        ),
        call(
            "Entry",
            pk.Entry,
            node=arg(X.node),
            index=arg(0, "int huge"),
            shape=arg(None, "none"),
            dtype=arg(None, "none"),
        ),
        call(
            "Graph",
            pk.Graph,
            outputs=arg([X], "empty entry", "output"),
            updates=arg((), "empty"),
            attrs=arg(None, "none empty dict"),
        ),
        call("Annotation", pk.Annotation, name=arg("a", "text"), items=arg({}, "none empty dict")),
        call("Size", pk.Size, terms=arg({("n",): 1}, "dict")),
        call("Size.symbol", pk.Size.symbol, name=arg("n", "text")),
        call("tanh", tanh, **{"": arg(X, "float nan empty entry", "value|needs floats")}),
        call(
            "tanh",
            partial(tanh, X),
            name=arg("t", "text"),
            control=arg((), "empty graph"),
        ),
        call("x + o", lambda o: X + o, o=arg(1, f"{NUMBERS} entry", "value|inputs")),
        call("x[o]", lambda o: X[o], o=arg(1, "none negative", "index|axis|axes")),
        call(
            "gradients",
            pk.gradients,
            ys=arg(O.reduce_sum(X), "empty entry"),
            xs=arg([X], "empty entry"),
        ),
    ]


def using_graphs() -> list[Call]:
    """Methods of graphs; texts and JSON; what interprets, explains and draws graphs."""
    planned = pk.ApplyPasses(GRAPH, ["Fusion", "SchedulePlan"])
    (group,) = planned.attrs["subgraph"].values()
    one = "empty entry graph"
    named = arg(None, "none", "begins or ends at|group has")
    return [
        call("Graph.with_inputs", GRAPH.with_inputs, order=arg(GRAPH.inputs, "", "the inputs are")),
        call("Graph.without_attrs", GRAPH.without_attrs, keep=arg((), "empty")),
        call("Graph.shape", GRAPH.shape, entry=arg(X, "entry")),
        call("Graph.dtype", GRAPH.dtype, entry=arg(X, "entry")),
        call("Graph.replace", GRAPH.replace, values=arg({X: X}, "none empty", "key")),
        call(
            "Graph.rewrite",
            GRAPH.rewrite,
            pattern=arg(O.tanh, "function type"),
            replacement=arg(O.exp, "function type"),
            where=arg(None, "none function type"),
        ),
        call("Graph.rebuild", GRAPH.rebuild, change=arg(lambda *_: None, "function type")),
        call("Graph.transform", GRAPH.transform, change=arg(lambda node: None, "function type")),
        call("Graph.fed_as", GRAPH.fed_as, before=arg(GRAPH, "graph")),
        call("Group", pk.Group, graph=arg(GRAPH, "graph"), kind=arg(group.kind)),
        call("to_json", pk.to_json, graph=arg(GRAPH, "graph")),
        call("to_text", pk.to_text, graph=arg(GRAPH, "graph")),
        call("from_json", pk.from_json, text=arg(pk.to_json(GRAPH), "", "not JSON")),
        call("parse", pk.parse, text=arg(pk.to_text(GRAPH), "", "line 1")),
        call(
            "interpret",
            pk.interpret,
            graph=arg(GRAPH, "graph"),
            feeds=arg({"x": ARRAY}, "", "input"),
            state=arg(None, "none dict"),
        ),
        call("explain", pk.explain, graph=arg(planned, one, "outputs?"), name=named),
        call("templates", pk.templates, graph=arg(planned, one, "outputs?"), name=named),
        call(
            "plan",
            pk.viz.plan,
            graph=arg(GRAPH, one, "output"),
            detail=arg(None, "none true"),
            profile=arg(None, "none"),
            boxes=arg(50, "int huge"),
            repeats=arg(True, "-true"),
            sizes=arg(None, "none empty"),
        ),
        call(
            "diff",
            pk.viz.diff,
            before=arg(GRAPH, one, "output"),
            after=arg(GRAPH, one, "output"),
        ),
        call("nbytes", pk.viz.nbytes, shape=arg((2,), "empty"), dtype=arg(X.dtype)),
    ]


def registering() -> list[Call]:
    """Operators, passes, dialects and targets."""
    op = pk.register_op("test_misuse", num_inputs=1)
    pk.register_attr("TTestMisuse", int, "a number")
    plain = pk.register_pass("TestMisuse")
    names = arg((), "text empty")
    flag = arg(False, "true")
    return [
        call("get_op", pk.get_op, name=arg("exp", "", "operator")),
        call("op_group", pk.op_group, name=arg("test_misuse_group", "text")),
        call(
            "register_op",
            pk.register_op,
            name=arg("test_misuse_other", TEXT),
            num_inputs=arg(None, "none -negative"),
            num_outputs=arg(None, "none"),
            params=arg({}, "none empty dict"),
            doc=arg("", "text"),
        ),
        call(
            "register_attr",
            pk.register_attr,
            key=arg("TTestMisuse", TEXT),
            kind=arg(int, "type"),
            doc=arg("", "text"),
        ),
        call(
            "op.set_attr",
            op.set_attr,
            key=arg("TTestMisuse", TEXT, "key"),
            value=arg(1, "huge negative true int"),
            plevel=arg(11, "int huge"),
        ),
        call("op.get_attr", op.get_attr, key=arg("TTestMisuse", "", "attribute")),
        call("op.has_attr", op.has_attr, key=arg("TTestMisuse", "", "attribute")),
        call("op.add_alias", op.add_alias, alias=arg("test_misuse_alias", TEXT)),
        call("op.include", op.include, group=arg("test_misuse_group", "text")),
        call(
            "register_pass",
            lambda name, **k: pk.register_pass(name, **k)(lambda graph: graph),
            name=arg("TestMisuseOther", TEXT),
            depends=names,
            provides=names,
            depends_op=names,
            preserves=names,
            changes_graph=flag,
            target_dependent=flag,
            required=flag,
        ),
        call("register_pass(…)", plain, body=arg(lambda graph: graph, "function")),
        call(
            "register_fusion",
            lambda name: pk.register_fusion(name)(lambda graph: []),
            name=arg("test_misuse", TEXT),
        ),
        call("register_dialect", pk.register_dialect, dialect=arg(pk_dialect())),
        call(
            "register_schedule_rule",
            pk.register_schedule_rule,
            target=arg("cuda", TEXT),
            name=arg("test_misuse", TEXT),
            rule=arg(lambda nest, target: None, "function type"),
        ),
        call("register_target", register_target, target=arg(pk.PassContext().target)),
    ]


def pk_dialect() -> pk.Dialect:
    """A dialect that is registered already."""
    from passkit.dialects.base import dialect_of

    return dialect_of("cxx")


def differentiating() -> list[Call]:
    """Gradients and vectorized functions."""
    x = pk.xp.ones((2, 3))
    options = {
        "function": arg(O.exp, "none function type"),
        "argnums": arg(0, "int negative huge"),
        "has_aux": arg(False, "true"),
    }
    return [
        call("grad", pk.grad, **options),
        call("value_and_grad", pk.value_and_grad, **options),
        call(
            "vjp",
            lambda function, primal: pk.vjp(function, primal),
            function=arg(lambda *x: 0.0, "function type"),
            primal=arg(x, "none float nan empty nones dict -masked", "argument|asarray"),
        ),
        call(
            "jvp",
            pk.jvp,
            function=arg(lambda *x: 0.0, "function type"),
            primals=arg([x], "-empty -nones -masked", "argument|leaves|asarray"),
            tangents=arg([x], "-masked", "leaves|shape|asarray"),
        ),
        call(
            "vmap",
            lambda function, in_axes, out_axes: pk.vmap(function, in_axes, out_axes)(x),
            function=arg(lambda x: x, "-none function type"),
            in_axes=arg(0, "negative", "axis"),
            out_axes=arg(0, "negative", "axis"),
        ),
        call(
            "tree_map",
            lambda function, value: pk.tree_map(function, value),
            function=arg(str, "function type"),
            value=arg((), " ".join(VALUES)),
        ),
    ]


def running(folder: Path) -> list[Call]:
    """Passes, compiling and executables; ``folder`` takes what they write."""
    stateful = pk.Graph([O.assign(pk.state("w", ARRAY), X)])
    compiled, interpreted = pk.compile(stateful), pk.compile(GRAPH, target="interpret")
    state = pk.State({"w": ARRAY})
    saved, npz = folder / "saved", folder / "state.npz"
    compiled.save(saved)
    state.save(npz)
    one = "empty entry graph"
    calls = [
        call(
            "ApplyPasses",
            pk.ApplyPasses,
            graph=arg(GRAPH, "graph", "Graph"),
            passes=arg(["InferShape"], "empty", "pass"),
        ),
        call(
            "compile",
            partial(pk.compile, target="interpret"),
            graph=arg(GRAPH, one, "output"),
            state=arg(None, "none"),
        ),
        call(
            "Executable",
            pk.Executable,
            graph=arg(GRAPH, "graph"),
            options=arg({"target": "interpret"}, "none empty", "option"),
            state=arg(None, "none"),
        ),
        call("load", pk.load, folder=arg(saved, "", "holds no saved executable")),
        call("jit", pk.jit, function=arg(O.exp, "none function type")),
        *differentiating(),
        call(
            "jit(f)(x)",
            pk.jit(lambda x: O.tanh(x), target="interpret"),
            **{
                "": arg(ARRAY, "float nan", "value|input|argument|floats|return|element type"),
            },
        ),
        call("State", pk.State, arrays=arg({"w": ARRAY}, "none empty", "State: missing")),
        call("state[name]", lambda name: state[name], name=arg("w", "", "variable")),
        call(
            "state[name] = value",
            lambda name, value: state.__setitem__(name, value),
            name=arg("w", "", "variable"),
            value=arg(ARRAY, "", "variable 'w' needs"),
        ),
        call("State.holding", pk.State().holding, graph=arg(stateful, "graph")),
        call("State.of", pk.State.of, graph=arg(stateful, "graph")),
        call("State.save", state.save, path=arg(npz, "text")),
        call("State.load", state.load, path=arg(npz, "", "has no state")),
        call(
            "render",
            pk.viz.render,
            drawing=arg(pk.viz.plan(GRAPH)),
            path=arg(folder / "plan.dot", "", "cannot draw"),
        ),
        call(
            "profile",
            partial(compiled.profile, runs=1, copies=False),
            feeds=arg(None, "none", "input"),
        ),
        call("profile", partial(compiled.profile, copies=False), runs=arg(1, "int -huge")),
        call("profile", partial(compiled.profile, runs=1), copies=arg(False, "-true")),
    ]
    for each in (compiled, interpreted):
        calls += [
            call("exe(x=…)", lambda x, each=each: each(x=x), x=arg(ARRAY)),
            call(
                "exe(feeds)",
                lambda feeds, each=each: each(feeds),
                feeds=arg({"x": ARRAY}, "", "input"),
            ),
            call(
                "exe(out=…)",
                lambda out, each=each: each(x=ARRAY, out=out),
                out=arg(None, "none nones"),
            ),
            call("exe.save", each.save, folder=arg(folder / "again", "-text")),
        ]
    return calls


def options() -> list[Call]:
    """Options of passes, one by one, and those of the tuner that are refused before it runs."""
    nodes = arg([], "none empty")
    fitting = {
        "target": arg("cpu", "none"),
        "fusion": arg("stitch", "none"),
        "numerics": arg("strict", "none"),
        "disabled": arg([], "none empty"),
        "timing": arg(False, "none true"),
        "fuel": arg(3, "none int huge"),
        "keep_together": evolved(nodes, called="keep_together|iterated"),
        "keep_apart": evolved(nodes, called="keep_apart|iterated"),
        "no_fuse": arg([], "none text empty dict entry graph"),
        "templates": arg({}, "none"),
        "evaluator": arg("model", "none"),
    }
    calls = [call("PassContext", pk.PassContext, **{k: v}) for k, v in fitting.items()]
    calls.append(call("PassContext", pk.PassContext, dump=arg(None, "none text")))
    tuned = partial(pk.tune, pk.Graph([pk.var("n", (2,))]), budget=1, rivals=0)
    for key, argument in {
        "shapes": arg(None, "none empty", "shapes"),
        "executor": arg(None, "none"),
        "clock": arg(None, "none function type"),
        "again": arg(False, "true"),
        "operators": arg(False, "true"),
        "report": arg(None, "none function type"),
    }.items():
        calls.append(call("tune", tuned, **{key: argument}))
    for key in ("budget", "at_once", "rivals"):
        limited = partial(pk.tune, pk.Graph([pk.var("n", (2,))]), **{"budget": 1, "rivals": 0})
        calls.append(call("tune", limited, **{key: arg(1, "int huge")}))
    return calls


def evolved(argument: Argument, called: str) -> Argument:
    """The same argument, called otherwise in messages."""
    return Argument(argument.good, argument.fits, called)


def kernels() -> list[Call]:
    """Builders of kernel expressions."""
    v = pk.ast.Var("v", X.dtype)
    return [
        call("ast.exp", pk.ast.exp, **{"": arg(v, "", "expression")}),
        call(
            "ast.where",
            lambda condition, a: pk.ast.where(condition, a, v),
            condition=arg(v < 1),
            a=arg(v, NUMBERS, "operand|would be"),
        ),
        call("ast.cast", pk.ast.cast, x=arg(v), dtype=arg("float32", "type", "element type")),
        call("ast.const", pk.ast.const, value=arg(1.0, NUMBERS), dtype=arg(X.dtype)),
        call("ast.call", lambda name: pk.ast.call(name, v), name=arg("exp", "text")),
        call(
            "ast.binary",
            pk.ast.binary,
            op=arg("+"),
            a=arg(v, NUMBERS, "operand|would be"),
            b=arg(v, NUMBERS, "operand|would be"),
        ),
        call(
            "ast.compare",
            pk.ast.compare,
            op=arg("<"),
            a=arg(v, NUMBERS, "operand|would be"),
            b=arg(v, NUMBERS, "operand|would be"),
        ),
        call("ast.size_of", pk.ast.size_of, extent=arg(3, "int huge negative")),
    ]


def operators() -> list[Call]:
    """Sizes, axes and counts that operators take."""
    x = partial
    axis = arg(0, "negative")
    axes = arg(0, "none negative empty")
    elements = "elements"
    return [
        call("tile", x(O.tile, X), repetitions=arg((2, 1), "int empty", elements)),
        call("repeat", x(O.repeat, X), repeats=arg(2, "int", f"{elements}|extents|repeat needs")),
        call("pad", x(O.pad, X), pad_width=arg(1, "int negative", elements)),
        call("reshape", x(O.reshape, X), shape=arg((3, 2), "negative", elements)),
        call("broadcast_to", x(O.broadcast_to, X), shape=arg((2, 3), "", "stretch|extents|rank")),
        call("transpose", x(O.transpose, X), axes=arg((1, 0), "none", "axis")),
        call("reduce_sum", x(O.reduce_sum, X), axis=axes),
        call("argmax", x(O.argmax, X), axis=arg(0, "none negative empty")),
        call("expand_dims", x(O.expand_dims, X), axis=arg(0, "negative empty")),
        call("squeeze", x(O.squeeze, X[:1]), axis=arg(0, "none empty", "length")),
        call("softmax", x(O.softmax, X), axis=axes),
        call("cumsum", x(O.cumsum, X), axis=axis),
        call("concat", x(O.concat, X), axis=axis),
        call("stack", x(O.stack, X), axis=axis),
        call("gather", x(O.gather, X, INDICES), axis=axis),
        call("take", x(O.take, X, INDICES), axis=arg(0, "none negative")),
        call("roll", x(O.roll, X), shift=arg(1, "int huge negative")),
        call("top_k", x(O.top_k, X), k=arg(1, "int")),
        call("cast", x(O.cast, X), dtype=arg("int32", "type", "element type")),
        call("one_hot", x(O.one_hot, INDICES), depth=arg(3, "int", elements)),
        call("zeros", O.zeros, shape=arg((2,), "int empty", "extents|elements")),
        call("full", x(O.full, fill_value=1), shape=arg((2,), "int empty", "extents|elements")),
        call("arange", x(O.arange, start=0), stop=arg(3, "none int negative float", elements)),
        call("linspace", x(O.linspace, start=0.0, stop=1.0), num=arg(3, "int", elements)),
        call("eye", O.eye, n_rows=arg(2, "int", elements)),
        call(
            "split",
            lambda num_or_sizes: O.split(X, num_or_sizes),
            num_or_sizes=arg(1, "", "axis 0|add up"),
        ),
    ]


def frontends() -> list[Call]:
    """TensorFlow models, and programs in the style of TensorFlow 1."""
    p = tf.placeholder(tf.float32, [2])
    session = tf.Session(target="interpret")
    square = tf.ones([2, 2])
    dtype = arg(tf.float32, "type", "element type")
    return [
        call(
            "tf_graphdef.load",
            tf_graphdef.load,
            source=arg(DIGITS, "", "GraphDef|file"),
            outputs=arg(None, "none", "to return"),
            shapes=arg(None, "none empty", "input"),
        ),
        call(
            "tf_graphdef.save",
            tf_graphdef.save,
            graph=arg(GRAPH, "graph", "Graph|float32|tanh"),
            path=arg(None, "none -text"),
        ),
        call(
            "tf_graphdef.ModelSession",
            tf_graphdef.ModelSession,
            source=arg(DIGITS, "", "GraphDef|file"),
        ),
        call(
            "tf.placeholder",
            tf.placeholder,
            dtype=dtype,
            shape=arg([2], "none true int empty nones", "variable|placeholder"),
            name=arg(None, "none text"),
        ),
        call(
            "tf.constant",
            tf.constant,
            value=arg(1.0, f"{NUMBERS} text bytes empty", "numbers"),
            dtype=arg(tf.float32, "none type", "element type"),
            shape=arg(None, "none true int empty", "constant"),
        ),
        call(
            "tf.Variable",
            tf.Variable,
            initial_value=arg(1.0, f"{NUMBERS} empty function type entry", "value"),
        ),
        call("tf.Session", tf.Session, target=arg("interpret", "text")),
        call(
            "tf.Session.run",
            session.run,
            fetches=arg(p * 2, "empty", "fetch|variables by name"),
            feed_dict=arg({p: [1, 2]}, "", "feed|placeholder"),
        ),
        call(
            "tf.reshape",
            tf.reshape,
            tensor=arg(p, "", "reshape|value"),
            shape=arg([2, 1], "negative", "reshape"),
        ),
        call(
            "tf.matmul", lambda a: tf.matmul(a, square), a=arg(square, "", "matmul|value|operand")
        ),
        call(
            "tf.reduce_sum",
            tf.reduce_sum,
            input_tensor=arg(p, "empty entry", "value|axis"),
            axis=arg(0, "none negative empty"),
        ),
    ]
