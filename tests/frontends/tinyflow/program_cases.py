"""API cases of variables, scopes, sessions, optimizers, checkpoints and summaries."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, RejectedValue, lazy, values

VARIABLE = {
    "trainable": False,
    "collections": ["variables", "mine"],
    "validate_shape": RejectedValue(False),
    "caching_device": RejectedValue("/cpu:0"),
    "constraint": lambda v: v * 0.5,
    "use_resource": RejectedValue(True),
    "synchronization": RejectedValue(1),
    "aggregation": RejectedValue(1),
}
SCOPED = {
    "initializer": tf.ones_initializer(),
    "regularizer": tf.nn.l2_loss,
    "caching_device": RejectedValue("/cpu:0"),
    "partitioner": RejectedValue(min),
    "custom_getter": RejectedValue(min),
    "dtype": tf.float64,
    "use_resource": RejectedValue(True),
    "constraint": lambda v: v * 0.5,
}


def _collections():
    held = tf.get_default_graph().collections
    return {k: [getattr(v, "name", v) for v in vs] for k, vs in held.items()}


def _observe_variable(f, *args, **k):
    variable = f(*args, **k)
    observed = [repr(variable), _collections()]
    if variable.dtype.is_float:
        step = tf.train.GradientDescentOptimizer(0.1).minimize(
            variable * variable, var_list=[variable]
        )
        observed.append(values(step))
    return [*observed, values(variable)]


def _scope(f, **k):
    """Return the names of a tensor and a variable inside a scope, or a shared variable."""
    with f(**k) as scope:
        inner_name = tf.add(1.0, 2.0).name
        variable = tf.get_variable("w", [2])
    return [str(scope), inner_name, _observe_variable(lambda: variable)]


def _name_scope(f, **k):
    with f(**k) as prefix:
        return [prefix, tf.constant(1.0).name]


def _observe_in_graph_of_values(f, see, **k):
    """Enter a scope, and return whether it found its graph by the tensors in ``values``."""
    other = tf.Graph()
    with other.as_default():
        tensor = tf.constant(1.0)
    if k.get("values"):
        k["values"] = [tensor]
    with f(**k):
        return [see(), tf.get_default_graph() is other]


def _device(f, device_name_or_function):
    with f(device_name_or_function):
        return tf.constant(1.0).device


def _session(f, target="", graph=None, config=None):
    session_graph = None if graph is None else tf.Graph()
    created = f(target, session_graph, config)
    created.close()
    return [created.options, created.check_numerics, created.graph is tf.get_default_graph()]


def _run(f, fetches, **k):
    x = tf.placeholder(tf.float32, [], "x")
    feeds = {x: k.pop("feed_dict", 1.0)}
    with tf.Session(target="interpret") as session:
        return f(session, x * 2 if fetches == 2 else x * 3, feeds, **k)


def _eval(f, feed_dict=2.0, session=None):
    x = tf.placeholder(tf.float32, [], "x")
    v = tf.Variable(1.0)
    with tf.Session(target="interpret") as one, tf.Session(target="interpret") as two:
        one.run(v.assign(5.0))
        two.run(v.assign(7.0))
        return f(x * v, {x: feed_dict}, one if session else None)


def _observe_assignment(f, **k):
    """Return the result of an assignment, and the value of the variable afterwards."""
    v = tf.Variable([1.0, 2.0], name="v")
    other = tf.Variable([7.0, 8.0], name="other")
    target = {"v": v, "other": other}[k.pop("ref", "v")]
    return [f"{r}" for r in [f(target, **k)]] + [values([f(target, **k), v, other])]


def _observe_local_variables(f, **k):
    """Return the names of local variables, one of which is under a scope."""
    tf.metrics.mean(1.0)
    tf.metrics.mean(1.0, name="s")
    result = f(**k)
    return [v.name for v in result] if isinstance(result, list) else [result]


def _optimizer(f, **k):
    """Return the variables and slots after three steps of an optimizer."""
    w = tf.Variable([1.0, -2.0, 3.0], name="w")
    rule = f(**k)
    step = rule.minimize(tf.reduce_sum(w * w * w))
    with tf.Session(target="interpret") as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        return [step.name, *(a.tobytes() for a in session.run(tf.global_variables()))]


def _observe_minimize(method):
    def observe(f, **k):
        w, u = tf.Variable([1.0, 2.0], name="w"), tf.Variable([3.0, 4.0], name="u")
        losses = {"one": w * w * u, "two": w * w * u * 3.0}
        rule = tf.train.GradientDescentOptimizer(0.5)
        if "loss" in k:
            k["loss"] = losses[k["loss"]]
        if "var_list" in k:
            k["var_list"] = [w]
        if "global_step" in k:
            k["global_step"] = tf.Variable(0, False, name="step")
        if "grads_and_vars" in k:
            k["grads_and_vars"] = [(tf.constant([k["grads_and_vars"]] * 2), w)]
        result = f(rule, **k)
        if method == "compute_gradients":
            return [[v.name for _, v in result], values([g for g, _ in result])]
        return [result.name, values(result)]

    return observe


def _saver(f, **k):
    """Return the files that three saves leave, and whether a restore succeeds."""
    a, b = tf.Variable([1.0, 2.0], name="a"), tf.Variable(3.0, name="b")
    if k.get("var_list") == "a":
        k["var_list"] = {"renamed": a}
    if k.get("var_list") == "none":
        k["var_list"] = []
    with TemporaryDirectory() as folder, tf.Session(target="interpret") as session:
        session.run(tf.global_variables_initializer())
        saver = f(**k)
        if k.get("allow_empty"):
            return len(saver.variables)
        for step in (1, 2, 3):
            if k.get("keep_checkpoint_every_n_hours") == 0:
                time.sleep(0.001)
            path = saver.save(session, f"{folder}/m", step)
        observed = [sorted(p.name for p in Path(folder).glob("m*")), sorted(np.load(f"{path}.npz"))]
        if k.get("reshape"):
            with tf.Graph().as_default(), tf.Session(target="interpret") as other:
                tf.Variable([[0.0], [0.0]], name="a"), tf.Variable([0.0], name="b")
                f(reshape=True).restore(other, path)
                observed.append("restored")
        return [*observed, b.name]


def _observe_save(f, **k):
    v = tf.Variable(1.0, name="v")
    one, other = tf.Session(target="interpret"), tf.Session(target="interpret")
    one.run(v.assign(5.0)), other.run(v.assign(6.0))
    session = other if k.pop("sess") == "other" else one
    with TemporaryDirectory() as folder:
        path = f(tf.train.Saver(), session, f"{folder}/{k.pop('save_path')}", **k)
        names = sorted(p.name for p in Path(folder).iterdir())
        return [names, path.removeprefix(folder), np.load(f"{path}.npz")["v"].item()]


def _observe_restore(f, sess, save_path):
    v = tf.Variable(1.0, name="v")
    with TemporaryDirectory() as folder, tf.Session(target="interpret") as one:
        for value in (5.0, 6.0):
            one.run(v.assign(value))
            tf.train.Saver().save(one, f"{folder}/m{value:.0f}")
        with tf.Session(target="interpret") as two:
            one.run(v.assign(0.0)), two.run(v.assign(0.0))
            f(tf.train.Saver(), two if sess == "two" else one, f"{folder}/{save_path}")
            return one.run(v), two.run(v)


def _latest(f, checkpoint_dir, **k):
    v = tf.Variable(1.0, name="v")
    with TemporaryDirectory() as folder, tf.Session(target="interpret") as session:
        session.run(v.assign(5.0))
        tf.train.Saver().save(session, f"{folder}/m")
        tf.train.Saver().save(session, f"{folder}/n", latest_filename="other")
        newest = f(f"{folder}/{checkpoint_dir}", **k)
        return newest and Path(newest).name


def _summary(f, **k):
    summary = f(**k)
    observed = [summary.name, _collections()]
    with tf.Session(target="interpret") as session:
        return [*observed, session.run(summary)]


def _observe_merged_summary(f, **k):
    first = tf.summary.scalar("one", 1.0)
    with tf.name_scope("deep"):
        second = tf.summary.scalar("two", 2.0, collections=["mine"] if "key" in k else None)
    if "inputs" in k:
        k["inputs"] = [first, second][: k["inputs"]]
    return _summary(f, **k)


def _writer(f, **k):
    with TemporaryDirectory() as folder:
        if "graph" in k:
            tf.Variable(1.0)
            k["graph"] = tf.get_default_graph()
        writer = f(f"{folder}/{k.pop('logdir')}", **k)
        for step in range(2):
            writer.add_summary(b"", step)
        size = writer.path.stat().st_size  # what has reached the disk by now
        ends = writer.path.name.rpartition(".")[2] if "filename_suffix" in k else ""
        writer.close()
        return [size, ends, writer.path.parent.name, writer.path.stat().st_size]


def _observe_added(method):
    def observe(f, **k):
        with TemporaryDirectory() as folder, tf.summary.FileWriter(folder) as writer:
            if k.get("graph") in ("plain", "other"):
                tf.Variable(1.0, name=k["graph"])
                k["graph"] = tf.get_default_graph()
            writer.flush()
            start = writer.path.stat().st_size
            f(writer, **k)
            writer.flush()
            data = writer.path.read_bytes()[start + 12 + 9 :]  # after the length and wall time
            return data[:-4]

    return observe


SIMPLE = lazy(lambda: tf.constant(2.0))
RULE = {"learning_rate": 0.2, "use_locking": RejectedValue(True)}
STEP = {
    "gate_gradients": RejectedValue(0),
    "aggregation_method": RejectedValue(1),
    "colocate_gradients_with_ops": RejectedValue(True),
}

CASES = {
    "Variable": CallCase(
        {"initial_value": [1.0, 2.0]},
        {
            **VARIABLE,
            "initial_value": [3.0, 4.0],
            "variable_def": RejectedValue(1),
            "dtype": tf.float64,
            "expected_shape": RejectedValue([3]),
            "import_scope": RejectedValue("a"),
            "shape": RejectedValue([3]),
        },
        lambda f, **k: _observe_variable(f, **k),
    ),
    "get_variable": CallCase(
        {"name": "w", "shape": [2]},
        {
            **VARIABLE,
            "name": "given",
            "shape": [3],
            "dtype": tf.float64,
            "initializer": tf.ones_initializer(),
            "regularizer": tf.nn.l2_loss,
            "partitioner": RejectedValue(min),
            "custom_getter": RejectedValue(min),
        },
        lambda f, **k: _observe_variable(f, **k),
    ),
    "name_scope": CallCase(
        {"name": "a"},
        {
            "name": "b",
            "default_name": CombinedValue("c", {"name": None}),
            "values": CombinedValue([1], {}),
        },
        lambda f, **k: [_observe_in_graph_of_values(f, lambda: tf.constant(1.0).name, **k)],
    ),
    "variable_scope": CallCase(
        {"name_or_scope": "a"},
        {
            **SCOPED,
            "name_or_scope": "b",
            "default_name": CombinedValue("c", {"name_or_scope": None}),
            "values": [1],
            "reuse": RejectedValue(True),
            "auxiliary_name_scope": False,
        },
        lambda f, **k: (
            _observe_in_graph_of_values(f, lambda: 1, **k) if "values" in k else _scope(f, **k)
        ),
    ),
    "device": CallCase(
        {"device_name_or_function": "/cpu:0"}, {"device_name_or_function": "/gpu:0"}, _device
    ),
    "Session": CallCase(
        {}, {"target": "interpret", "graph": 1, "config": tf.ConfigProto("blocks")}, _session
    ),
    "InteractiveSession": CallCase(
        {}, {"target": "interpret", "graph": 1, "config": tf.ConfigProto("blocks")}, _session
    ),
    "global_variables_initializer": CallCase({}, {}, lambda f: _observe_initializer(f)),
    "initialize_all_variables": CallCase({}, {}, lambda f: _observe_initializer(f)),
    "variables_initializer": CallCase(
        {"var_list": lazy(lambda: [tf.Variable(1.0, name="a")])},
        {"var_list": lazy(lambda: [tf.Variable(1.0, name="b")])},
        lambda f, var_list, **k: [f(var_list, **k).name, [v.name for v in var_list]],
    ),
    "trainable_variables": CallCase({}, {"scope": "s"}, lambda f, **k: _list_variables(f, **k)),
    "local_variables": CallCase(
        {}, {"scope": "s"}, lambda f, **k: _observe_local_variables(f, **k)
    ),
    "initialize_local_variables": CallCase(
        {}, {}, lambda f: [t.name for t in _observe_local_variables(f)]
    ),
    "local_variables_initializer": CallCase(
        {}, {}, lambda f: [t.name for t in _observe_local_variables(f)]
    ),
    "global_variables": CallCase({}, {"scope": "s"}, lambda f, **k: _list_variables(f, **k)),
    "get_collection": CallCase(
        {"key": "variables"},
        {"key": "trainable_variables", "scope": "s"},
        lambda f, **k: _list_variables(f, **k),
    ),
    "add_to_collection": CallCase(
        {"name": "a", "value": 1},
        {"name": "b", "value": 2},
        lambda f, **k: [f(**k), _collections()],
    ),
    "group": CallCase(
        {"*": 1},
        {"inputs": CombinedValue(None, {"*": 2}), "kwargs": CombinedValue(None, {"name": "n"})},
        lambda f, **k: _observe_group(f, **k),
    ),
    "tuple": CallCase(
        {"tensors": lazy(lambda: [tf.constant(1.0)])},
        {
            "tensors": lazy(lambda: [tf.constant(2.0)]),
            "control_inputs": lazy(lambda: [tf.Variable(3.0).assign(4.0)]),
        },
    ),
    "no_op": CallCase({}, {}, lambda f, **k: f(**k).name),
    "control_dependencies": CallCase(
        {"control_inputs": None},
        {"control_inputs": 1},
        lambda f, control_inputs: _observe_dependencies(f, control_inputs),
    ),
    "assign": CallCase(
        {"value": [5.0, 6.0]},
        {
            "ref": "other",
            "value": [7.0, 6.0],
            "validate_shape": RejectedValue(False),
            "use_locking": RejectedValue(True),
        },
        _observe_assignment,
    ),
    "assign_add": CallCase(
        {"value": [5.0, 6.0]},
        {"ref": "other", "value": [7.0, 6.0], "use_locking": RejectedValue(True)},
        _observe_assignment,
    ),
    "assign_sub": CallCase(
        {"value": [5.0, 6.0]},
        {"ref": "other", "value": [7.0, 6.0], "use_locking": RejectedValue(True)},
        _observe_assignment,
    ),
    "Variable.assign": CallCase(
        {"value": [5.0, 6.0]},
        {"value": [7.0, 6.0], "use_locking": RejectedValue(True), "read_value": False},
        _observe_assignment,
    ),
    "Variable.assign_add": CallCase(
        {"delta": [5.0, 6.0]},
        {"delta": [7.0, 6.0], "use_locking": RejectedValue(True), "read_value": False},
        _observe_assignment,
    ),
    "reset_default_graph": CallCase({}, {}, lambda f: 1),
    "get_default_graph": CallCase({}, {}, lambda f: 1),
    "get_default_session": CallCase({}, {}, lambda f: f() is None),
    "set_random_seed": CallCase(
        {"seed": 1}, {"seed": 2}, lambda f, seed: [f(seed), values(tf.random_normal([2]))]
    ),
    "Session.run": CallCase(
        {"fetches": 2},
        {
            "fetches": 3,
            "feed_dict": 4.0,
            "options": RejectedValue(1),
            "run_metadata": RejectedValue(1),
        },
        _run,
    ),
    "Tensor.eval": CallCase({}, {"feed_dict": 3.0, "session": True}, _eval),
    "train.GradientDescentOptimizer": CallCase({"learning_rate": 0.1}, RULE, _optimizer),
    "train.MomentumOptimizer": CallCase(
        {"learning_rate": 0.1, "momentum": 0.9},
        {**RULE, "momentum": 0.5, "use_nesterov": True},
        _optimizer,
    ),
    "train.AdagradOptimizer": CallCase(
        {"learning_rate": 0.1}, {**RULE, "initial_accumulator_value": 0.5}, _optimizer
    ),
    "train.AdadeltaOptimizer": CallCase({}, {**RULE, "rho": 0.5, "epsilon": 0.1}, _optimizer),
    "train.FtrlOptimizer": CallCase(
        {"learning_rate": 0.1},
        {
            **RULE,
            "learning_rate_power": -0.3,
            "initial_accumulator_value": 0.5,
            "l1_regularization_strength": 0.2,
            "l2_regularization_strength": 0.2,
            "accum_name": "a",
            "linear_name": "l",
            "l2_shrinkage_regularization_strength": 0.2,
            "beta": 0.3,
        },
        lambda f, **k: [_optimizer(f, **k), [v.name for v in tf.global_variables()]],
    ),
    "train.RMSPropOptimizer": CallCase(
        {"learning_rate": 0.1},
        {**RULE, "decay": 0.5, "momentum": 0.5, "epsilon": 0.1, "centered": True},
        _optimizer,
    ),
    "train.AdamOptimizer": CallCase(
        {},
        {
            **RULE,
            "beta1": 0.5,
            "beta2": 0.9,
            "epsilon": 0.1,
            "use_own_namescope_for_non_slot_vars": RejectedValue(True),
        },
        _optimizer,
    ),
    "train.Optimizer.minimize": CallCase(
        {"loss": "one"},
        {
            **STEP,
            "loss": "two",
            "global_step": 1,
            "var_list": 1,
            "grad_loss": np.array([2.0, 1.0], np.float32),
        },
        _observe_minimize("minimize"),
    ),
    "train.Optimizer.compute_gradients": CallCase(
        {"loss": "one"},
        {**STEP, "loss": "two", "var_list": 1, "grad_loss": np.array([2.0, 1.0], np.float32)},
        _observe_minimize("compute_gradients"),
    ),
    "train.Optimizer.apply_gradients": CallCase(
        {"grads_and_vars": 1.0},
        {
            "grads_and_vars": 2.0,
            "global_step": 1,
            "skip_gradients_aggregation": RejectedValue(True),
        },
        _observe_minimize("apply_gradients"),
    ),
    "train.Saver": CallCase(
        {},
        {
            "var_list": "a",
            "reshape": True,
            "sharded": RejectedValue(True),
            "max_to_keep": 2,
            "keep_checkpoint_every_n_hours": CombinedValue(0, {"max_to_keep": 1}),
            "name": RejectedValue("s"),
            "restore_sequentially": RejectedValue(True),
            "saver_def": RejectedValue(1),
            "builder": RejectedValue(1),
            "defer_build": RejectedValue(True),
            "allow_empty": CombinedValue(True, {"var_list": "none"}),
            "write_version": RejectedValue(1),
            "pad_step_number": True,
            "save_relative_paths": RejectedValue(True),
            "filename": RejectedValue("f"),
        },
        _saver,
    ),
    "train.Saver.save": CallCase(
        {"sess": "one", "save_path": "m"},
        {
            "sess": "other",
            "save_path": "n",
            "global_step": 7,
            "latest_filename": "last",
            "meta_graph_suffix": RejectedValue("x"),
            "write_meta_graph": RejectedValue(False),
            "write_state": False,
            "strip_default_attrs": RejectedValue(True),
            "save_debug_info": RejectedValue(True),
        },
        _observe_save,
    ),
    "train.Saver.restore": CallCase(
        {"sess": "one", "save_path": "m5"}, {"sess": "two", "save_path": "m6"}, _observe_restore
    ),
    "train.latest_checkpoint": CallCase(
        {"checkpoint_dir": "."}, {"checkpoint_dir": "none", "latest_filename": "other"}, _latest
    ),
    "train.exponential_decay": CallCase(
        {"learning_rate": 0.1, "global_step": 15, "decay_steps": 10, "decay_rate": 0.5},
        {
            "learning_rate": 0.2,
            "global_step": 16,
            "decay_steps": 20,
            "decay_rate": 0.7,
            "staircase": True,
        },
    ),
    "train.get_or_create_global_step": CallCase(
        {},
        {"graph": 1},
        lambda f, **k: [f(graph=tf.Graph() if k else None).graph is tf.get_default_graph()],
    ),
    "summary.scalar": CallCase(
        {"name": "a", "tensor": SIMPLE},
        {"name": "b", "tensor": 3.0, "collections": ["x"], "family": "f"},
        _summary,
    ),
    "summary.histogram": CallCase(
        {"name": "a", "values": SIMPLE},
        {"name": "b", "values": [3.0], "collections": ["x"], "family": "f"},
        _summary,
    ),
    "summary.merge": CallCase(
        {"inputs": 1}, {"inputs": 2, "collections": ["x"]}, _observe_merged_summary
    ),
    "summary.merge_all": CallCase({}, {"key": "mine", "scope": "deep"}, _observe_merged_summary),
    "summary.FileWriter": CallCase(
        {"logdir": "a"},
        {
            "logdir": "b",
            "graph": 1,
            "max_queue": 1,
            "flush_secs": 0,
            "graph_def": RejectedValue(1),
            "filename_suffix": ".x",
            "session": RejectedValue(1),
        },
        _writer,
    ),
    "summary.FileWriter.add_summary": CallCase(
        {"summary": b""}, {"summary": RejectedValue(1), "global_step": 3}, _observe_added("s")
    ),
    "summary.FileWriter.add_graph": CallCase(
        {"graph": "plain"},
        {"graph": "other", "global_step": 3, "graph_def": RejectedValue(1)},
        _observe_added("g"),
    ),
}


def _observe_initializer(f):
    v = tf.Variable(4.0)
    with tf.Session(target="interpret") as session:
        return [session.run(f()), session.run(v)]


def _list_variables(f, **k):
    tf.Variable(1.0, name="a"), tf.Variable(1.0, False, name="b"), tf.Variable(1.0, name="s/c")
    return [v.name for v in f(**k)]


def _observe_group(f, **k):
    count, v = k.pop("*"), tf.Variable(1.0)
    step = f(*[v.assign_add(1.0) for _ in range(count)], **k)
    return [step.name, values(step)]


def _observe_dependencies(f, control_inputs):
    v = tf.Variable(1.0)
    write = v.assign(5.0)
    with f(None if control_inputs is None else [write]):
        after = tf.identity(v)
    return values(after)
